"""The providers that the conformance suite runs over. A new provider is one more row of ``BACKENDS``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from memorizz.providers.base import MemoryProvider
from tests.memorizz.providers.opening import opened
from tests.support import mongodb, notion, postgres


class Backend(NamedTuple):
    """A kind of provider, and the options, as JSON, of a store of its own for a test with that directory.

    ``longest_text`` is less than half a megabyte where the provider has a limit of its own, tested with it.
    """

    kind: str
    options: Callable[[Path], dict[str, Any]]
    longest_text: int = 500_000

    def at(self, directory: Path) -> Place:
        return Place(self.kind, self.options(directory))


class Place(NamedTuple):
    """Where one test keeps its records; any process can open it."""

    kind: str
    options: dict[str, Any]

    def open(self, **more: Any) -> MemoryProvider:
        return opened(self.kind, {**self.options, **more})

    def run(self, command: str, *arguments: object) -> None:
        """Let another process do ``command`` of ``worker.py`` there."""
        with self.start(command, *arguments) as process:
            assert process.wait(60) == 0

    def start(self, command: str, *arguments: object) -> subprocess.Popen[str]:
        """A process that does ``command`` of ``worker.py`` there."""
        words = [json.dumps([self.kind, self.options]), command, *map(str, arguments)]
        return subprocess.Popen(
            [sys.executable, "-m", "tests.memorizz.providers.worker", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        )


BACKENDS = [
    Backend("filesystem", lambda directory: {"path": str(directory / "memory")}),
    Backend("sqlite", lambda directory: {"path": str(directory / "memory.sqlite3")}),
    Backend("postgres", lambda _: {"url": postgres.url(), "schema": postgres.fresh_schema()}),
    Backend("mongodb", lambda _: {"uri": mongodb.uri(), "db_name": mongodb.fresh_database()}),
    Backend("oracle", lambda directory: {"path": str(directory / "oracle.sqlite3")}),
    Backend("notion", lambda directory: notion.options(notion.shared(), directory), 180_000),
]
