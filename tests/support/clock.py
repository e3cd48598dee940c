"""A clock that stands until it is told to move."""

from __future__ import annotations


class Clock:
    """Unix seconds, starting at 1,000."""

    def __init__(self, now: int = 1_000) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def advance(self, seconds: int) -> None:
        """Move on."""
        self.now += seconds
