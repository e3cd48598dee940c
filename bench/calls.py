"""How long one tool call takes over stdio, and how many memories a second can be stored.

    python bench/calls.py [--python PYTHON] [--calls 300]

Calls: ``agent-memory serve`` on a file of 1,000 memories (``corpus.py``), one client that waits for each answer,
no embedder, so searches run in keyword mode; the time is that of the whole round trip. Searches are two-word
queries with limit 10. Rate: ``store`` of the Python API in a loop, one transaction a memory, by one process and
by four on the same file, with a vector of 768 dimensions each and without; the embedder answers at once.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, Final

from corpus import Corpus, NoEmbedder, PreparedEmbedder, fill
from harness import NOWHERE, StdioServer, machine, median, percentile, progress, table

import agent_memory

_MEMORIES: Final = 1_000
_STORES: Final = 2_000
_PROCESSES: Final = 4


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time single calls and stores.")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--calls", type=int, default=300)
    arguments = parser.parse_args()
    progress("single calls")
    latencies = _latencies(arguments.python, arguments.calls)
    print(f"{machine()}\n")
    rows = [
        [name, f"{median(timings):.2f}", f"{percentile(timings, 0.95):.2f}", f"{max(timings):.1f}"]
        for name, timings in latencies.items()
    ]
    print(table(["call over stdio", "p50 ms", "p95 ms", "max ms"], rows))
    rows = []
    for vectors in (False, True):
        for processes in (1, _PROCESSES):
            progress(f"storing, {processes} processes")
            rate, timings = _store_rate(processes, vectors=vectors)
            spread = [f"{median(timings):.2f}", f"{percentile(timings, 0.95):.2f}", f"{max(timings):.1f}"]
            rows.append([str(processes), "yes" if vectors else "no", f"{rate:,.0f}", *spread])
    print()
    print(table(["processes", "vectors", "memories/s in all", "p50 ms", "p95 ms", "max ms"], rows))


def _latencies(python: str, calls: int) -> dict[str, list[float]]:
    corpus = Corpus()
    contents = [memory.content for memory in corpus.memories(_MEMORIES)]
    pairs = corpus.pairs(contents, calls)
    fresh = [memory.content for memory in corpus.memories(calls)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        fill(path, _MEMORIES)
        command = [python, "-m", "agent_memory", "--db", str(path), "serve"]
        with StdioServer(command, {"AGENT_MEMORY_OLLAMA_URL": NOWHERE}) as server:
            server.initialize()
            # Let the sweep that follows the handshake end.
            time.sleep(1)
            stored: list[int] = []

            def store(index: int) -> None:
                answer = server.call("memory_store", {"content": fresh[index], "type": "PATTERN", "tags": ["bench"]})
                stored.append(int(answer["content"][0]["text"]))

            def call(tool: str, arguments: Callable[[int], dict[str, Any]]) -> Callable[[int], object]:
                return lambda index: server.call(tool, arguments(index))

            actions: dict[str, Callable[[int], object]] = {
                "store": store,
                "search, limit 10": call("memory_search", lambda index: {"query": pairs[index], "limit": 10}),
                "list, limit 20": call("memory_list", lambda _: {"limit": 20}),
                "update": call("memory_update", lambda index: {"id": stored[index], "content": pairs[index]}),
                "link": call(
                    "memory_link", lambda index: {"from_id": stored[index], "to_id": index + 1, "kind": "caused_by"}
                ),
                "forget": call("memory_forget", lambda index: {"id": stored[index]}),
            }
            return {name: _timed(action, calls) for name, action in actions.items()}


def _timed(action: Callable[[int], object], calls: int) -> list[float]:
    """Milliseconds of each call."""
    timings = []
    for index in range(calls):
        before = time.perf_counter()
        action(index)
        timings.append((time.perf_counter() - before) * 1_000)
    return timings


def _store_rate(processes: int, *, vectors: bool) -> tuple[float, list[float]]:
    """Memories a second of all processes together, and milliseconds of each store."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        agent_memory.open(path, embedder=NoEmbedder()).close()
        start = context.Barrier(processes + 1)
        results: multiprocessing.Queue[list[float]] = context.Queue()
        share = _STORES // processes
        workers = [
            context.Process(target=_store, args=(path, number, share, vectors, start, results))
            for number in range(processes)
        ]
        for worker in workers:
            worker.start()
        start.wait()
        begun = time.perf_counter()
        timings = [timing for _ in workers for timing in results.get()]
        elapsed = time.perf_counter() - begun
        for worker in workers:
            worker.join()
    return processes * share / elapsed, timings


def _store(
    path: Path, number: int, count: int, vectors: bool, start: Barrier, results: multiprocessing.Queue[list[float]]
) -> None:
    memories = list(Corpus().memories((number + 1) * count))[-count:]
    embedder = PreparedEmbedder(number) if vectors else NoEmbedder()
    with agent_memory.open(path, embedder=embedder) as memory:
        start.wait()
        results.put(_timed(lambda index: memory.store(memories[index].content, "PATTERN", tags=["bench"]), count))


if __name__ == "__main__":
    main()
