"""Exporting and importing a memory graph, over real providers."""
