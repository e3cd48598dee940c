"""A minimal JSON-RPC client over the standard streams of a subprocess."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from tests.support.ollama import NOBODY
from tests.support.zygote import Forked

TIMEOUT = 30.0
"""Seconds until a missing answer fails the test."""


def command(*arguments: str) -> list[str]:
    """The command line of `agent-memory` with ``arguments``."""
    return [sys.executable, "-m", "agent_memory", *arguments]


def environment(**more: str) -> dict[str, str]:
    """This process's environment without an embedder, and ``more``."""
    return {**os.environ, "AGENT_MEMORY_OLLAMA_URL": NOBODY, **more}


class StdioServer:
    """A started server. Every line of its standard output and error is kept."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        preexec_fn: Callable[[], None] | None = None,
        started: Forked | None = None,
    ) -> None:
        self._process = started or subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            preexec_fn=preexec_fn,
        )
        self.lines: list[bytes] = []
        self.stderr: list[str] = []
        self._replies: dict[object, dict[str, Any]] = {}
        self._ids = itertools.count(1)
        self._changed = threading.Condition()
        self._ended = False
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._read_out, self._read_err)]
        for thread in self._threads:
            thread.start()

    @classmethod
    def fork(cls, db: os.PathLike[str], **variables: str) -> Self:
        """`agent-memory serve` on ``db``, without the time that loading it takes."""
        env = environment(**variables, AGENT_MEMORY_DB=str(db))
        return cls((), env, started=Forked(["serve"], env))

    @classmethod
    def serve(cls, db: os.PathLike[str], **environment: str) -> Self:
        """`agent-memory serve` on ``db``, with nothing of our own AGENT_MEMORY_* environment."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_MEMORY_")}
        env.update(environment, AGENT_MEMORY_DB=str(db))
        return cls(command("serve"), env)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def initialize(self, version: str = "2025-11-25") -> dict[str, Any]:
        """The handshake; its result."""
        reply = self.request(
            "initialize",
            {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}},
        )
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        result: dict[str, Any] = reply["result"]
        return result

    def begin(self, method: str, params: Any = None) -> int:
        """Send a request and return its id, for :meth:`reply`."""
        number = next(self._ids)
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)
        return number

    def request(self, method: str, params: Any = None, timeout: float = TIMEOUT) -> dict[str, Any]:
        """Send a request and return the whole answer."""
        return self.reply(self.begin(method, params), timeout)

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message."""
        self.send_line(json.dumps(message).encode())

    def send_line(self, line: bytes) -> None:
        """Send one raw line."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()

    def reply(self, request_id: object, timeout: float = TIMEOUT) -> dict[str, Any]:
        """The answer to an id; fails when the server ends or the deadline passes without one."""
        with self._changed:
            arrived = self._changed.wait_for(lambda: request_id in self._replies or self._ended, timeout)
            if request_id in self._replies:
                return self._replies.pop(request_id)
        raise AssertionError(f"no answer to {request_id} ({'server ended' if arrived else 'time-out'}): {self.stderr}")

    def logged(self, part: str, count: int = 1, timeout: float = TIMEOUT) -> None:
        """Return when ``part`` stands in ``count`` lines of standard error."""
        with self._changed:
            found = self._changed.wait_for(lambda: sum(part in line for line in self.stderr) >= count, timeout)
        assert found, f"{part!r} was not logged {count} times: {self.stderr}"

    def log_count(self, part: str) -> int:
        """In how many lines of standard error ``part`` stands by now."""
        with self._changed:
            return sum(part in line for line in self.stderr)

    def kill(self) -> None:
        """End the server as a power cut would."""
        self._process.kill()
        self.close()

    def close(self) -> int:
        """Close standard input, wait for the end and return the exit code."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            code = self._process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"the server did not end with its input: {self.stderr}") from None
        finally:
            for thread in self._threads:
                thread.join(TIMEOUT)
            for stream in (self._process.stdout, self._process.stderr):
                assert stream is not None
                stream.close()
        return code

    def _read_out(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self.lines.append(line)
                try:
                    message = json.loads(line)
                except ValueError:
                    continue
                if isinstance(message, dict) and "method" not in message:
                    self._replies[message.get("id")] = message
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _read_err(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            with self._changed:
                self.stderr.append(line.decode("utf-8", "replace").rstrip())
                self._changed.notify_all()
