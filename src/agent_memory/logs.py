"""Logging to standard error: standard output belongs to the protocol or to the user's data."""

from __future__ import annotations

import logging
import sys


def log_to_stderr(level: str) -> None:
    """Write this package's log records of at least ``level`` to standard error, one a line.

    A terminal or pipe with a narrow encoding gets escapes instead of an error.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    if hasattr(sys.stderr, "reconfigure"):
        sys.stderr.reconfigure(errors="backslashreplace")
    logger = logging.getLogger("agent_memory")
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
