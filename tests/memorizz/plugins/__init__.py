"""The plugins of coding agents, and `memorizz plugin`."""
