"""The files that travel, read without any database."""
