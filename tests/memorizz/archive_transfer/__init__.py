"""Corners of exporting and importing: what clashes, what fails half-way, what must not be touched."""
