"""Starting the program hundreds of times: one process has loaded it, and forks for each start.

What runs is the whole command in a process of its own, with its own environment and standard streams, only without
the third of a second that Python needs to load it. That it also starts from nothing is for `tests/cli`, `tests/mcp`
and `tests/rest` to show.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import IO

_MODULES = (
    "agent_memory.__main__", "agent_memory.cli", "agent_memory.cli.memories", "agent_memory.cli.links",
    "agent_memory.cli.upkeep", "agent_memory.cli.setup", "agent_memory.doctor", "agent_memory.mcp.server",
    "agent_memory.rest.server", "agent_memory.web.address", "uvicorn.protocols.http.httptools_impl",
    "uvicorn.lifespan.on", "uvloop", "http.client", "difflib",
)  # fmt: skip
_STATUS = struct.Struct("i")
_zygotes: dict[int, tuple[socket.socket, subprocess.Popen[bytes]]] = {}


class Forked:
    """A started `agent-memory`, with the part of :class:`subprocess.Popen` that the tests use."""

    def __init__(self, arguments: Sequence[str], env: Mapping[str, str]) -> None:
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        ours_err, theirs_err = os.pipe()
        self._status, theirs_status = os.pipe()
        request = json.dumps({"arguments": list(arguments), "env": dict(env)}).encode()
        handed = [theirs_in, theirs_out, theirs_err, theirs_status]
        socket.send_fds(_zygote(), [request], handed)
        for descriptor in handed:
            os.close(descriptor)
        self.stdin: IO[bytes] = open(ours_in, "wb", buffering=0)  # noqa: SIM115
        self.stdout: IO[bytes] = open(ours_out, "rb")  # noqa: SIM115
        self.stderr: IO[bytes] = open(ours_err, "rb")  # noqa: SIM115
        (self.pid,) = _STATUS.unpack(os.read(self._status, _STATUS.size))
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, the negative signal after one."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("agent-memory", timeout or 0.0)
            (status,) = _STATUS.unpack(os.read(self._status, _STATUS.size))
            os.close(self._status)
            self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal to the program, if it still runs."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


def _zygote() -> socket.socket:
    """The connection to this test process's zygote, started when it is first needed."""
    if os.getpid() not in _zygotes:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.zygote", str(theirs.fileno())], pass_fds=[theirs.fileno()]
        )
        theirs.close()
        _zygotes[os.getpid()] = ours, process
        atexit.register(_end, ours, process)
    return _zygotes[os.getpid()][0]


def _end(requests: socket.socket, process: subprocess.Popen[bytes]) -> None:
    # It ends when nobody can ask any more.
    requests.close()
    process.wait()


def _serve(requests: socket.socket) -> None:
    from importlib import import_module

    for name in _MODULES:
        import_module(name)
    while True:
        request, handed, _, _ = socket.recv_fds(requests, 1 << 20, 4)
        if not request:
            return
        if os.fork() == 0:
            requests.close()
            _supervise(json.loads(request), handed)
        for descriptor in handed:
            os.close(descriptor)


def _supervise(request: Mapping[str, object], handed: Sequence[int]) -> None:
    """Start the program and report its process and, when it ended, its status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, status = handed
    program = os.fork()
    if program == 0:
        os.close(status)
        _run(request, streams)
    for descriptor in streams:
        os.close(descriptor)
    os.write(status, _STATUS.pack(program))
    os.write(status, _STATUS.pack(os.waitpid(program, 0)[1]))
    os._exit(0)


def _run(request: Mapping[str, object], streams: Sequence[int]) -> None:
    from agent_memory.__main__ import main

    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    env, arguments = request["env"], request["arguments"]
    assert isinstance(env, dict)
    assert isinstance(arguments, list)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["agent-memory", *arguments]
    code = 1
    try:
        code = main()
    finally:
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    _serve(socket.socket(fileno=int(sys.argv[1])))
