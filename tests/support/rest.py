"""A started REST daemon, and a client that keeps its connection."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

from tests.support.ollama import NOBODY
from tests.support.stdio import TIMEOUT, command, environment
from tests.support.zygote import Forked


class Answer(NamedTuple):
    """One answer: status, headers with lower-case names, body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The JSON value of the body, which has to be declared as such."""
        assert self.headers["content-type"] == "application/json", self
        return json.loads(self.body)

    @property
    def text(self) -> str:
        """The body, which has to be declared as plain text."""
        assert self.headers["content-type"] == "text/plain; charset=utf-8", self
        return self.body.decode()

    @property
    def error(self) -> str:
        """The message of a JSON refusal."""
        assert list(self.json) == ["error"], self
        message: str = self.json["error"]
        return message


class Daemon:
    """A process that says where it listens. Every line of standard error is kept."""

    def __init__(self, process: Forked | subprocess.Popen[bytes], ready: str) -> None:
        self._process = process
        self.stderr: list[str] = []
        self._changed = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        line = self.logged(ready)
        match = re.search(r"listening on (?:http://)?(?:\[(.+)\]|([\d.]+)):(\d+)", line)
        assert match, line
        self.host, self.port = match[1] or match[2], int(match[3])
        self._connection = self.connect()

    @property
    def url(self) -> str:
        """The base of every path."""
        return f"http://{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        """The process, for signals."""
        return self._process.pid

    def connect(self) -> http.client.HTTPConnection:
        """A connection of one's own."""
        return http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT)

    def request(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, *, raw: bool = False
    ) -> Answer:
        """One request on the kept connection; ``body`` as JSON, or as the bytes it is with ``raw``."""
        return exchange(self._connection, method, path, body, headers, raw=raw)

    def get(self, path: str, **headers: str) -> Answer:
        """One GET request."""
        return self.request("GET", path, headers=headers)

    def post(self, path: str, body: Any) -> Answer:
        """One POST request with a JSON body."""
        return self.request("POST", path, body)

    def logged(self, part: str, count: int = 1) -> str:
        """The line of standard error that is the ``count``-th with ``part`` in it, once it is there."""
        with self._changed:

            def found() -> list[str]:
                return [line for line in self.stderr if part in line]

            self._changed.wait_for(lambda: len(found()) >= count or self._ended, TIMEOUT)
            assert len(found()) >= count, f"{part!r} was not logged {count} times: {self.stderr}"
            return found()[count - 1]

    def log_count(self, part: str) -> int:
        """In how many lines of standard error ``part`` stands by now."""
        with self._changed:
            return sum(part in line for line in self.stderr)

    def signal(self, number: int) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def wait(self) -> int:
        """The exit code, once it ended by itself or by a signal that was sent."""
        try:
            code = self._process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"the daemon did not end: {self.stderr}") from None
        finally:
            self._reader.join(TIMEOUT)
            self._connection.close()
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
                assert stream is not None
                stream.close()
        return code

    def close(self) -> int:
        """End the daemon by a signal and return its exit code."""
        if self._process.returncode is None:
            self._process.terminate()
            return self.wait()
        return self._process.returncode

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            with self._changed:
                self.stderr.append(line.decode("utf-8", "replace").rstrip())
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()


class RestServer(Daemon):
    """`agent-memory serve-rest` on a free port of this machine."""

    def __init__(
        self, db: Path, *arguments: str, addr: str = "127.0.0.1:0", fork: bool = False, **variables: str
    ) -> None:
        env = environment(**{"AGENT_MEMORY_OLLAMA_URL": NOBODY, **variables, "AGENT_MEMORY_DB": str(db)})
        arguments = ("serve-rest", "--addr", addr, *arguments)
        process: Forked | subprocess.Popen[bytes]
        if fork:
            process = Forked(arguments, env)
        else:
            pipe = subprocess.PIPE
            process = subprocess.Popen(command(*arguments), env=env, stdin=pipe, stdout=pipe, stderr=pipe)
        super().__init__(process, "REST listening on ")


def exchange(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    *,
    raw: bool = False,
) -> Answer:
    """One request and its answer."""
    headers = dict(headers or {})
    if body is not None and not raw:
        body = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
        headers.setdefault("Content-Type", "application/json")
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    content = response.read()
    return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, content)
