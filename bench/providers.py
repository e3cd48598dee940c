"""How long an export, a preview and a restore of a memory graph take on each provider.

    python bench/providers.py [--records 1000 10000]

Records are as those of ``bench/memory_graph.py``; the bridge to the typed memory gets the knowledge base only.
PostgreSQL, MongoDB and Notion are the servers of the tests on this machine: a real PostgreSQL, a server that speaks
MongoDB's protocol, and a small one that speaks Notion's, without its limit of requests. What is timed is the provider
with its driver and the server; a network adds its own.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from harness import machine, progress, table
from memory_graph import records

sys.path.insert(0, str(Path(__file__).parent.parent))

from memorizz import MemoryArchive, MemoryProvider, MemoryType
from memorizz.providers.registry import open_provider
from tests.memorizz.providers.backends import BACKENDS, Backend

_LIMITS: Final = {"max_bytes": 10**10, "max_records": 10**9}
_SHARES: Final = {MemoryType.CONVERSATION_MEMORY: 0.7, MemoryType.KNOWLEDGE_BASE: 0.3}
_SLOW: Final = {"notion": 1_000}
"""The most records where each is a request of its own."""


def source(directory: Path, number: int, kind: str) -> dict[str, Any]:
    """The archive that is restored: made from a SQLite file with that many records."""
    with open_provider("sqlite", {"path": directory / "source.sqlite3"}) as provider:
        for store, share in _SHARES.items():
            if kind != "agent-memory":
                provider.put(store, list(records(store, int(number * share))))
            elif store is MemoryType.KNOWLEDGE_BASE:
                provider.put(store, list(records(store, number)))
        return MemoryArchive(provider).export(**_LIMITS)


def seconds(call: Callable[[], Any]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(kind: str, open_one: Callable[[], MemoryProvider], archive: dict[str, Any]) -> list[float]:
    """Seconds of a preview, a restore and an export."""
    with open_one() as provider:
        transfer = MemoryArchive(provider)
        taken = [seconds(lambda: transfer.import_archive(archive, **_LIMITS))]
        report: dict[str, Any] = {}
        taken.append(seconds(lambda: report.update(transfer.import_archive(archive, dry_run=False, **_LIMITS))))
        assert report["ok"], (kind, report["errors"])
        taken.append(seconds(lambda: transfer.export(**_LIMITS)))
    return taken


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, nargs="+", default=[1_000, 10_000])
    chosen = parser.parse_args()
    rows = []
    bridge = Backend("agent-memory", lambda directory: {"path": str(directory / "memory.db")})
    for backend in (*BACKENDS, bridge):
        for number in chosen.records:
            if number > _SLOW.get(backend.kind, number):
                continue
            progress(f"{backend.kind}, {number:,} records")
            with tempfile.TemporaryDirectory() as directory:
                archive = source(Path(directory), number, backend.kind)
                taken = measure(backend.kind, backend.at(Path(directory)).open, archive)
                rows.append([backend.kind, f"{number:,}", *(f"{one:.2f}" for one in taken)])
    print(machine())
    print(table(["provider", "records", "preview s", "apply s", "export s"], rows))


if __name__ == "__main__":
    main()
