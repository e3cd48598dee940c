"""The database file: schema, migrations, backups, permissions, many processes."""
