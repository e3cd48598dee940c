"""What the benchmarks share: percentiles, Markdown tables, a description of the machine, an MCP client over stdio."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self, cast

import apsw

PROTOCOL_VERSION: Final = "2025-11-25"
NOWHERE: Final = "http://127.0.0.1:9"
"""An address where no embedder answers."""


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest of ``values`` that at least ``share`` of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)), 1) - 1]


def median(values: Iterable[float]) -> float:
    """The 50th percentile."""
    return percentile(values, 0.5)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table: the first column as text, the others aligned to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def machine() -> str:
    """What the numbers depend on, in one line."""
    return (
        f"{os.cpu_count()} CPUs, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}"
    )


def progress(message: str) -> None:
    """Tell the person who waits, on stderr."""
    print(message, file=sys.stderr, flush=True)


class StdioServer:
    """A child process that speaks newline-delimited JSON-RPC on its stdin and stdout."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._stdin = cast("IO[bytes]", self._process.stdin)
        self._stdout = cast("IO[bytes]", self._process.stdout)
        self._last_id = 0

    def initialize(self) -> None:
        """The handshake."""
        client = {"name": "bench", "version": "1"}
        self.request("initialize", {"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result of one request."""
        self._last_id += 1
        self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        while line := self._stdout.readline():
            answer = json.loads(line)
            if answer.get("id") == self._last_id:
                if "result" not in answer:
                    raise RuntimeError(f"{method}: {answer}")
                return cast("dict[str, Any]", answer["result"])
        raise RuntimeError(f"the server ended instead of answering {method}")

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The result of one tool call, which has to succeed."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise RuntimeError(f"{tool}: {result}")
        return result

    def elapsed(self) -> float:
        """Seconds since the process was started."""
        return time.perf_counter() - self.started

    def cpu(self) -> float:
        """CPU seconds, user and system, that all threads of the process have used."""
        # Linux names the CPU clock of another process like this; /proc counts in steps of 10 ms only.
        return time.clock_gettime((~self._process.pid << 3) | 2)

    def resident(self) -> float:
        """Resident memory in MB (10^6 bytes)."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        fields = dict(line.split(":", 1) for line in status.splitlines())
        return int(fields["VmRSS"].split()[0]) * 1024 / 1e6

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stdout.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        self._stdin.write(json.dumps(message).encode() + b"\n")
        self._stdin.flush()
