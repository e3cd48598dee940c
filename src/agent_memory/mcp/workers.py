"""Daemon threads that run calls side by side."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from typing import Final

log = logging.getLogger(__name__)

MAX_WORKERS: Final = 128


class Workers:
    """Up to 128 threads, started as they are needed. None of them keeps the process alive.

    So many because most may wait for an embedder that hangs, and the other calls should not wait with them.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._state = threading.Condition()
        self._threads = 0
        self._unfinished = 0

    def submit(self, job: Callable[[], None]) -> None:
        """Run ``job``, which raises nothing, as soon as a thread is free; here and now where there can be none."""
        with self._state:
            self._unfinished += 1
            if self._unfinished > self._threads and self._threads < MAX_WORKERS:
                self._start_one()
            alone = self._threads == 0
        if alone:
            self._run(job)
        else:
            self._jobs.put(job)

    def wait(self, seconds: float) -> bool:
        """Wait until nothing is running or waiting; False when ``seconds`` passed before."""
        with self._state:
            return self._state.wait_for(lambda: self._unfinished == 0, seconds)

    def _start_one(self) -> None:
        try:
            threading.Thread(target=self._work, name=f"call-{self._threads + 1}", daemon=True).start()
        except RuntimeError as error:
            # The system allows no more threads: those that run do the work.
            log.warning("%d threads for calls: %s", self._threads, error)
        else:
            self._threads += 1

    def _work(self) -> None:
        while True:
            self._run(self._jobs.get())

    def _run(self, job: Callable[[], None]) -> None:
        try:
            job()
        finally:
            with self._state:
                self._unfinished -= 1
                self._state.notify_all()
