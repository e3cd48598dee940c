"""An agent's whole memory graph and its portable archives.

This version of the distribution holds the typed memory (``agent_memory``) only; the package reserves the name.
"""
