"""The `memorizz` command in processes of its own."""
