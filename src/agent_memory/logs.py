"""Logging to standard error: standard output belongs to the protocol or to the user's data."""

from __future__ import annotations

import logging
import queue
import sys
import threading
from collections.abc import Sequence
from typing import Final

_MOST_WAITING: Final = 1_000
_FLUSH_SECS: Final = 0.2
_NUMBERS: Final = logging.getLevelNamesMapping()


def log_to_stderr(level: str, *, background: bool = False, libraries: Sequence[str] = ()) -> None:
    """Write this package's log records of at least ``level`` to standard error, one a line.

    Of ``libraries`` only warnings and errors are written, however low ``level`` is.

    In the ``background`` nobody who logs waits for the reader of standard error: a client may leave it unread.
    A terminal or pipe with a narrow encoding gets escapes instead of an error.
    """
    if sys.stderr is None:
        return
    if hasattr(sys.stderr, "reconfigure"):
        sys.stderr.reconfigure(errors="backslashreplace")
    handler = _BackgroundHandler() if background else logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name in ("agent_memory", *libraries):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level.upper() if name == "agent_memory" else max(logging.WARNING, _NUMBERS[level.upper()]))
        logger.propagate = False


class _BackgroundHandler(logging.Handler):
    """Has a thread of its own write; records beyond the thousandth that waits are dropped."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: queue.SimpleQueue[str | threading.Event] = queue.SimpleQueue()
        threading.Thread(target=self._write, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        if self._waiting.qsize() < _MOST_WAITING:
            self._waiting.put(self.format(record))

    def flush(self) -> None:
        written = threading.Event()
        self._waiting.put(written)
        written.wait(_FLUSH_SECS)

    def _write(self) -> None:
        while True:
            line = self._waiting.get()
            if isinstance(line, threading.Event):
                line.set()
                continue
            try:
                sys.stderr.write(line + "\n")
                sys.stderr.flush()
            except (OSError, ValueError):
                pass  # standard error is closed; there is nobody to tell
