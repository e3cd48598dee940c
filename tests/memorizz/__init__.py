"""The memory graph and its archives."""
