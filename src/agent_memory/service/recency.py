"""Counting uses without making a search wait for a writer."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from typing import Final

from agent_memory.errors import Closed, StorageError
from agent_memory.service.ports import Store

log = logging.getLogger(__name__)

_WAIT_SECS: Final = 0.1
_LAST_WAIT_SECS: Final = 0.3
_MOST_KEPT: Final = 1_000


class Recency:
    """Writes recency bumps at once where it can, and keeps those that another process's write held up."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: deque[tuple[Sequence[int], int]] = deque(maxlen=_MOST_KEPT)
        self._flushing = threading.Lock()

    def bump(self, ids: Sequence[int], now: int) -> None:
        """Count one use of each of ``ids`` at ``now``: at once, or with a later bump, sweep or close."""
        if ids:
            self._kept.append((ids, now))
            self.flush()

    def flush(self, wait: float = _WAIT_SECS) -> None:
        """Write what is kept, unless the database stays locked for ``wait`` seconds."""
        # One thread writes for all: the others need not wait for a lock each.
        while self._kept and self._flushing.acquire(blocking=False):
            try:
                written = self._write(list(self._kept), wait)
                for _ in range(written):
                    self._kept.popleft()
            finally:
                self._flushing.release()
            if not written:
                return

    def close(self) -> None:
        """Write what is kept, for the last time."""
        self.flush(_LAST_WAIT_SECS)

    def _write(self, bumps: Sequence[tuple[Sequence[int], int]], wait: float) -> int:
        try:
            with self._store.writing("recency bump", wait, logging.DEBUG) as writer:
                for ids, now in bumps:
                    writer.touch(ids, now)
        except (StorageError, Closed) as error:
            # The answer goes out all the same; a use that is counted late changes a rank a little.
            log.debug("%s", error)
            return 0
        return len(bumps)
