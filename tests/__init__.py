"""The tests. They mirror ``src``; ``contract`` runs one body over every door."""
