"""What the tests share: a fake Ollama, the doors, direct access to database files, old schemas."""
