"""How long a request over HTTP takes, by route and size of the memory, and how many a second the daemon answers.

    python bench/rest.py [--sizes 1000 10000 100000] [--keep DIR]

`agent-memory serve-rest` runs in a process of its own on a copy of each seeded database (``corpus.py``), without an
embedder. Latency: one request after the other on one kept connection, for ``--seconds`` a route, median and 95th
percentile. Throughput: eight connections in two client processes keep the daemon busy for ``--seconds``; clients and
daemon share the CPUs, so this is what a small machine gives in all. `GET /openapi.json`, which touches no memory, is
the price of HTTP itself.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from corpus import Corpus, prepared
from harness import NOWHERE, machine, median, percentile, progress, table

_CONNECTIONS: Final = 8
_CLIENTS: Final = 2


def request(method: str, path: str, body: object = None) -> bytes:
    """The bytes of one request."""
    content = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


def routes() -> dict[str, list[bytes]]:
    """For each route to measure, requests to send in turn."""
    corpus = Corpus()
    contents = [memory.content for memory in corpus.memories(1_000)]
    pairs = corpus.pairs(contents, 30)
    return {
        "GET /openapi.json": [request("GET", "/openapi.json")],
        "GET /api/memories, limit 20": [request("GET", "/api/memories?limit=20")],
        "POST /api/search, two words": [request("POST", "/api/search", {"query": pair, "limit": 10}) for pair in pairs],
        "POST /api/search, question": [
            request("POST", "/api/search", {"query": f"what did we decide about the {pair}?", "limit": 10})
            for pair in pairs
        ],
        "PATCH /api/memories/{id}": [request("PATCH", f"/api/memories/{id}", {"scope": "s"}) for id in range(1, 31)],
        "POST /api/memories": [
            request("POST", "/api/memories", {"content": content, "type": "PATTERN"}) for content in contents[:30]
        ],
    }


def send(connection: socket.socket, message: bytes) -> None:
    """Send one request and read its whole answer, which has to be a success."""
    connection.sendall(message)
    answer = connection.recv(65_536)
    head, _, body = answer.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 20"):
        raise RuntimeError(answer[:200])
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65_536)


def latency(port: int, messages: Sequence[bytes], seconds: float) -> list[float]:
    """Milliseconds of each request of one client."""
    timings = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        send(connection, messages[0])
        until = time.perf_counter() + seconds
        for message in itertools.cycle(messages):
            before = time.perf_counter()
            send(connection, message)
            after = time.perf_counter()
            timings.append((after - before) * 1_000)
            if after > until and len(timings) >= 5:
                return timings
    raise AssertionError


def _busy(port: int, messages: Sequence[bytes], until: float, answered: multiprocessing.Queue[int]) -> None:
    counts = []

    def client() -> None:
        count = 0
        with socket.create_connection(("127.0.0.1", port)) as connection:
            for message in itertools.cycle(messages):
                if time.time() > until:
                    break
                send(connection, message)
                count += 1
        counts.append(count)

    threads = [threading.Thread(target=client) for _ in range(_CONNECTIONS // _CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answered.put(sum(counts))


def throughput(port: int, messages: Sequence[bytes], seconds: float) -> float:
    """Answers a second to all clients together."""
    answered: multiprocessing.Queue[int] = multiprocessing.Queue()
    until = time.time() + seconds
    clients = [multiprocessing.Process(target=_busy, args=(port, messages, until, answered)) for _ in range(_CLIENTS)]
    for client in clients:
        client.start()
    total = sum(answered.get() for _ in clients)
    for client in clients:
        client.join()
    return total / seconds


@contextmanager
def daemon(db: Path) -> Iterator[int]:
    """The port of a daemon on ``db``."""
    with subprocess.Popen(
        [sys.executable, "-m", "agent_memory", "--db", str(db), "serve-rest", "--addr", "127.0.0.1:0"],
        env={**os.environ, "AGENT_MEMORY_OLLAMA_URL": NOWHERE},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "REST listening" in line)
        yield int(line.rpartition(":")[2])
        process.send_signal(signal.SIGTERM)


def copy(filled: Path, scratch: str) -> Path:
    """A copy of a database, in place of the last one."""
    for left in Path(scratch).glob("run.db*"):
        left.unlink()
    return Path(shutil.copyfile(filled, Path(scratch) / "run.db"))


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--keep", type=Path, help="directory that caches the filled databases")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each route is measured")
    arguments = parser.parse_args()
    sizes: list[int] = arguments.sizes
    table_of_latencies: dict[str, list[str]] = {name: [] for name in routes()}
    with tempfile.TemporaryDirectory() as scratch:
        for size in sizes:
            filled = prepared(arguments.keep or Path(scratch), size)
            with daemon(copy(filled, scratch)) as port:
                for name, messages in routes().items():
                    progress(f"{size}: {name}")
                    taken = latency(port, messages, arguments.seconds)
                    table_of_latencies[name].append(f"{median(taken):.2f} / {percentile(taken, 0.95):.2f}")
        # Anew: what was stored meanwhile would be read as well.
        with daemon(copy(prepared(arguments.keep or Path(scratch), sizes[0]), scratch)) as port:
            found = {name: throughput(port, messages, arguments.seconds) for name, messages in routes().items()}
        base = found["GET /openapi.json"]
        rates = [(name, f"{rate:,.0f}", f"{rate / base:.2f} x") for name, rate in found.items()]
    print(f"{machine()}\n")
    header = ["one connection", *(f"{size:,} (p50 / p95 ms)" for size in sizes)]
    print(table(header, [[name, *cells] for name, cells in table_of_latencies.items()]))
    print()
    print(table([f"{_CONNECTIONS} connections, {sizes[0]:,} memories", "requests/s", "against HTTP alone"], rates))
    return 0


if __name__ == "__main__":
    sys.exit(main())
