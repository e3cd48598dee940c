"""The time and the ids that tests give."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from memorizz import FileSystemConfig, FileSystemProvider, MemoryProvider, SQLiteConfig, SQLiteProvider

BEGIN = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
BACKENDS = ("filesystem", "sqlite")


class TestClock:
    """Stands still unless it is told otherwise, or goes on by ``tick`` with each look."""

    __test__ = False

    def __init__(self, tick: timedelta = timedelta(0)) -> None:
        self.time = BEGIN
        self.tick = tick

    def __call__(self) -> datetime:
        self.time += self.tick
        return self.time

    def forward(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


def counted(name: str = "id") -> Callable[[], str]:
    """Ids that count from 1."""
    numbers = count(1)
    return lambda: f"{name}-{next(numbers)}"


def open_provider(backend: str, directory: Path) -> MemoryProvider:
    """A provider whose data is in that directory."""
    if backend == "filesystem":
        return FileSystemProvider(FileSystemConfig(root_path=directory / "memory"))
    return SQLiteProvider(SQLiteConfig(directory / "memory.sqlite3"))
