"""The archive format: canonical bytes, seal, validation, files."""
