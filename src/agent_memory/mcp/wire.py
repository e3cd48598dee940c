"""Newline-delimited JSON over standard input and output, which belong to the protocol alone."""

from __future__ import annotations

import io
import json
import logging
import os
import queue
import sys
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from agent_memory.domain.bounds import replace_surrogates

log = logging.getLogger(__name__)

LONGEST_LINE: Final = 16 * 1024 * 1024


class NotJson(Exception):
    """A line is not one JSON value in UTF-8, or is too long."""


class Wire:
    """Reads lines from one stream and writes messages to one descriptor, in the order they are sent.

    Sending is safe from many threads and never waits for the other side: a thread of its own writes, so that
    a client that does not read cannot keep the server from seeing that its input has ended.
    """

    def __init__(self, source: BinaryIO, sink: int, *, longest: int = LONGEST_LINE) -> None:
        """``longest`` is the most bytes that a line may have."""
        self._source = source
        self._sink = sink
        self._longest = longest
        self._outgoing: queue.SimpleQueue[bytes | threading.Event] = queue.SimpleQueue()
        threading.Thread(target=self._write, name="writer", daemon=True).start()

    def messages(self) -> Iterator[Any]:
        """Each line's JSON value, or the :class:`NotJson` that says why it has none, until the stream ends."""
        while line := self._source.readline(self._longest + 1):
            if len(line) > self._longest and not line.endswith(b"\n"):
                self._skip_rest_of_line()
                yield NotJson(f"a line is longer than {self._longest} bytes")
            elif not line.isspace():
                yield _parse(line)

    def send(self, message: object) -> None:
        """Have one message written."""
        self._outgoing.put(_dump(message))

    def drain(self, seconds: float) -> bool:
        """Wait until everything sent so far is written; False when ``seconds`` passed before."""
        written = threading.Event()
        self._outgoing.put(written)
        return written.wait(seconds)

    def _write(self) -> None:
        gone = False
        while True:
            data = self._outgoing.get()
            if isinstance(data, threading.Event):
                data.set()
            while not gone and isinstance(data, bytes) and data:
                try:
                    data = data[os.write(self._sink, data) :]
                except OSError as error:
                    log.info("the client is gone: %s", error)
                    gone = True

    def _skip_rest_of_line(self) -> None:
        while (rest := self._source.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
            pass


def take_standard_streams(*, longest: int = LONGEST_LINE) -> Wire:
    """The wire over this process's standard streams.

    From here on whatever else is printed, by Python or by a library below it, goes to standard error.
    """
    sink = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(sink, os.O_BINARY)
    # Whoever started this process may have shared a non-blocking end of the pipe.
    os.set_blocking(sink, True)
    if sys.stdin is not None:
        os.set_blocking(sys.stdin.fileno(), True)
    source = io.BytesIO() if sys.stdin is None else sys.stdin.buffer
    return Wire(source, sink, longest=longest)


def _parse(line: bytes) -> Any:
    try:
        # Some shells put a byte order mark before the first line.
        return json.loads(line.decode("utf-8-sig"), parse_constant=_refuse_constant, parse_int=_integer)
    except (ValueError, RecursionError) as error:
        return NotJson(f"not a JSON value in UTF-8: {error}")


def _integer(digits: str) -> int | float:
    # Python refuses to read thousands of digits; one such argument must not make the whole line unreadable.
    return int(digits) if len(digits) <= 100 else float(digits)


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _dump(message: object) -> bytes:
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        # An echo of what the client sent; an escape of it would not be read by every JSON parser.
        return replace_surrogates(text).encode() + b"\n"
