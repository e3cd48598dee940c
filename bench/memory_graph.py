"""How long an export, a preview and a restore of a memory graph take, on each provider, and how much memory they use.

    python bench/memory_graph.py [--records 1000 10000 100000]

One agent with conversations (half of the records), knowledge (three in ten), entities and tool calls (one in ten each),
about 80 characters of text in each record. Each step runs in a process of its own and is timed inside of it; peak
memory is that of the process, Python and imports included.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from harness import machine, progress, table

from memorizz import (
    FileSystemConfig,
    FileSystemProvider,
    MemoryArchive,
    MemoryProvider,
    MemoryType,
    SQLiteConfig,
    SQLiteProvider,
)

_TEXT: Final = "The barometer fell six points since noon, so we ought to look at the gauge again: entry {}."
_SHARES: Final = {
    MemoryType.CONVERSATION_MEMORY: 0.5,
    MemoryType.KNOWLEDGE_BASE: 0.3,
    MemoryType.ENTITY_MEMORY: 0.1,
    MemoryType.TOOL_LOG: 0.1,
}
_LIMITS: Final = {"max_bytes": 10**10, "max_records": 10**9}
_STEPS: Final = ("export", "preview", "apply", "copy with new ids")


def open_provider(kind: str, path: Path) -> MemoryProvider:
    """A provider of that kind at a path without ending."""
    if kind == "folder":
        return FileSystemProvider(FileSystemConfig(path))
    return SQLiteProvider(SQLiteConfig(path.with_suffix(".sqlite3")))


def records(store: MemoryType, number: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """That many records of a store."""
    for index in range(number):
        id = f"{store}-{index}"
        record: dict[str, Any] = {
            "_id": id,
            "id": id,
            "content": _TEXT.format(index),
            "memory_id": "ns",
            "agent_id": "keel",
            "user_id": "ana",
            "timestamp": "2026-03-02T13:00:00+00:00",
        }
        if store is MemoryType.ENTITY_MEMORY:
            record |= {"entity_id": id, "name": f"entity {index}", "attributes": [], "relations": []}
        if store is MemoryType.TOOL_LOG:
            record |= {"tool_log_id": id, "tool_name": "read_gauge", "arguments": '{"depth_m": 3}', "success": True}
        yield id, record


def fill(kind: str, path: Path, number: int) -> None:
    """A memory of one agent with that many records."""
    with open_provider(kind, path) as provider:
        agent = {"_id": "keel", "id": "keel", "agent_id": "keel", "name": "Keel", "memory_ids": ["ns"]}
        provider.put(MemoryType.MEMAGENT, [("keel", agent)])
        for store, share in _SHARES.items():
            provider.put(store, list(records(store, int(number * share))))


def run(step: str, kind: str, directory: Path, number: int) -> None:
    """One step, and a line of JSON with its seconds and the peak memory in MB."""
    if step == "fill":
        fill(kind, directory / "source", number)
        return
    archive = directory / "archive.memorizz.json"
    source = directory / ("source" if step == "export" else "target")
    options: dict[str, Any] = {} if step == "preview" else {"dry_run": False}
    if step == "copy with new ids":
        options["id_strategy"] = "new"
    with open_provider(kind, source) as provider:
        started = time.perf_counter()
        if step == "export":
            MemoryArchive(provider).export_file(archive, **_LIMITS)
        elif not (report := MemoryArchive(provider).import_file(archive, **options, **_LIMITS))["ok"]:
            raise RuntimeError(report["errors"])
        seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(json.dumps({"seconds": seconds, "peak": peak}))


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--step", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        step, kind, directory, number = arguments.step
        run(step, kind, Path(directory), int(number))
        return 0
    rows = []
    for kind in ("folder", "sqlite"):
        cells: dict[str, list[str]] = {step: [] for step in _STEPS}
        for number in arguments.records:
            with tempfile.TemporaryDirectory() as directory:
                progress(f"{kind}: {number} records")
                # A child's peak counts what its parent held when it was started, so this process holds nothing.
                for step in ("fill", *_STEPS):
                    done = subprocess.run(
                        [sys.executable, __file__, "--step", step, kind, directory, str(number)],
                        stdout=subprocess.PIPE,
                        text=True,
                        check=True,
                    )
                    if step != "fill":
                        found = json.loads(done.stdout)
                        cells[step].append(f"{found['seconds']:.2f} s / {found['peak']:.0f} MB")
        rows += [[f"{kind}: {step}", *cells[step]] for step in _STEPS]
    print(f"{machine()}\n")
    print(table(["step", *(f"{number:,} records" for number in arguments.records)], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
