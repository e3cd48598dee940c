"""Pure values and rules of the typed memory: no I/O, no clock, no third party."""
