"""Pure rules: decay, fusion, words, memory types."""
