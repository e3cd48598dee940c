"""What it costs to start a memory server: time, CPU and resident memory, beside two others.

    python -m compileall -q SITE_PACKAGES
    python bench/startup.py [--python PYTHON] [--server-memory DIR] [--runs 21]

Compared are:

- ours: ``agent-memory serve``, on a fresh database each time
- official SDK: the same tools over the same memory on the high-level server of ``mcp`` (``official_sdk_server.py``)
- server-memory: the npm package ``@modelcontextprotocol/server-memory``, a knowledge graph in a JSON lines file,
  which ``npm install`` has put into ``DIR``; left out without that option

``PYTHON`` is an interpreter that has this project installed as a wheel (an editable install starts slower) and
``mcp``, with compiled byte code. No embedder answers. The runs of the servers take turns. Time counts from just
before the process is started to the arrival of the answer; CPU time is user and system of all its threads up to
the answer to tools/list.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness import NOWHERE, StdioServer, machine, median, percentile, progress, table

_STORES: Final = 10
_MEASURES: Final = {
    "initialize": "ms",
    "tools/list": "ms",
    "CPU": "ms",
    "RSS after tools/list": "MB",
    f"RSS after {_STORES} stores and a search": "MB",
}

Call = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Contender:
    """How to start one server in an empty folder, and which tools keep a text and look for it."""

    name: str
    command: Callable[[Path], list[str]]
    environment: Callable[[Path], dict[str, str]]
    store: Callable[[str], Call]
    search: Call


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time the start of memory servers.")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--server-memory", type=Path, metavar="DIR")
    parser.add_argument("--runs", type=int, default=21)
    arguments = parser.parse_args()
    contenders = [_ours(arguments.python), _official(arguments.python)]
    if arguments.server_memory:
        contenders.append(_server_memory(arguments.server_memory))
    results: dict[str, list[list[float]]] = {contender.name: [] for contender in contenders}
    for run in range(arguments.runs + 1):
        progress(f"run {run} of {arguments.runs}")
        for contender in contenders:
            measured = _measure(contender)
            # The first run of each only warms the file cache.
            if run:
                results[contender.name].append(measured)
    print(f"{machine()}, {arguments.runs} runs\n")
    _print(results)


def _ours(python: str) -> Contender:
    return _python("ours", lambda folder: [python, "-m", "agent_memory", "--db", str(folder / "memory.db"), "serve"])


def _official(python: str) -> Contender:
    script = str(Path(__file__).with_name("official_sdk_server.py"))
    return _python("official SDK", lambda folder: [python, script, "--db", str(folder / "memory.db")])


def _python(name: str, command: Callable[[Path], list[str]]) -> Contender:
    return Contender(
        name,
        command,
        environment=lambda _: {"AGENT_MEMORY_OLLAMA_URL": NOWHERE},
        store=lambda text: ("memory_store", {"content": text, "type": "DECISION", "tags": ["bench"]}),
        search=("memory_search", {"query": "which storage"}),
    )


def _server_memory(installed: Path) -> Contender:
    script = installed / "node_modules" / "@modelcontextprotocol" / "server-memory" / "dist" / "index.js"
    return Contender(
        "server-memory",
        command=lambda _: ["node", str(script)],
        environment=lambda folder: {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")},
        store=lambda text: (
            "create_entities",
            {"entities": [{"name": text[:16], "entityType": "DECISION", "observations": [text]}]},
        ),
        search=("search_nodes", {"query": "storage"}),
    )


def _measure(contender: Contender) -> list[float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with StdioServer(contender.command(folder), contender.environment(folder)) as server:
            server.initialize()
            initialized = server.elapsed()
            server.request("tools/list", {})
            listed, cpu, at_start = server.elapsed(), server.cpu(), server.resident()
            for index in range(_STORES):
                server.call(*contender.store(f"Decision {index}: the storage of part {index} is one SQLite file."))
            server.call(*contender.search)
            return [initialized * 1_000, listed * 1_000, cpu * 1_000, at_start, server.resident()]


def _print(results: Mapping[str, list[list[float]]]) -> None:
    rows = []
    ours = [median(values) for values in zip(*results["ours"], strict=True)]
    for index, (measure, unit) in enumerate(_MEASURES.items()):
        for name, runs in results.items():
            values = [run[index] for run in runs]
            ratio = f"{median(values) / ours[index]:.2f} x"
            rows.append(
                [measure, name, f"{median(values):.1f} {unit}", f"{percentile(values, 0.95):.1f} {unit}", ratio]
            )
    print(table(["measure", "server", "median", "p95", "against ours"], rows))


if __name__ == "__main__":
    main()
