"""Waiting for what happens in another thread or process, up to a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(check: Callable[[], T], timeout: float = 20.0) -> T:
    """The first true value of ``check()``, asked again and again; fails at the deadline."""
    deadline = time.monotonic() + timeout
    pause = threading.Event()
    while True:
        value = check()
        if value:
            return value
        assert time.monotonic() < deadline, f"still {value!r} after {timeout} s"
        pause.wait(0.01)
