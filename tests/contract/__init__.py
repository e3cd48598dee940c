"""One test per sentence of the contract, over every door."""
