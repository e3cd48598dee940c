"""Newline-delimited JSON over standard input and output, which belong to the protocol alone."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from agent_memory.domain.bounds import replace_surrogates

LONGEST_LINE: Final = 16 * 1024 * 1024


class NotJson(Exception):
    """A line is not one JSON value in UTF-8, or is longer than 16 MiB."""


class Wire:
    """Reads lines from one stream and writes messages to one descriptor. Writing is safe from many threads."""

    def __init__(self, source: BinaryIO, sink: int) -> None:
        self._source = source
        self._sink = sink
        self._lock = threading.Lock()

    def messages(self) -> Iterator[Any]:
        """Each line's JSON value, or the :class:`NotJson` that says why it has none, until the stream ends."""
        while line := self._source.readline(LONGEST_LINE + 1):
            if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
                self._skip_rest_of_line()
                yield NotJson(f"a line is longer than {LONGEST_LINE} bytes")
            elif not line.isspace():
                yield _parse(line)

    def send(self, message: object) -> None:
        """Write one message.

        Raises:
            OSError: The other side is gone.
        """
        data = _dump(message)
        with self._lock:
            while data:
                data = data[os.write(self._sink, data) :]

    def _skip_rest_of_line(self) -> None:
        while (rest := self._source.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
            pass


def take_standard_streams() -> Wire:
    """The wire over this process's standard streams.

    From here on whatever else is printed, by Python or by a library below it, goes to standard error.
    """
    sink = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(sink, os.O_BINARY)
    source = io.BytesIO() if sys.stdin is None else sys.stdin.buffer
    return Wire(source, sink)


def _parse(line: bytes) -> Any:
    try:
        return json.loads(line.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        return NotJson(f"not a JSON value in UTF-8: {error}")


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _dump(message: object) -> bytes:
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        # An echo of what the client sent; an escape of it would not be read by every JSON parser.
        return replace_surrogates(text).encode() + b"\n"
