"""The SQLite file: connections, schema, and the rows of the typed memory."""
