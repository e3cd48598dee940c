"""The stores of a memory graph, each with the methods of its noun, over any provider."""
