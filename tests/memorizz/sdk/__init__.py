"""The memory graph through its Python interface."""
