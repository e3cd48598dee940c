"""The sweep: expiry, decay materialization and embedding backfill, and the thread that repeats it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import NamedTuple

from agent_memory.errors import AgentMemoryError, EmbeddingError
from agent_memory.service.embedding import BACKFILL_BATCH, BEFORE_ALL, Embedding
from agent_memory.service.ports import Clock, Store

log = logging.getLogger(__name__)


class SweepReport(NamedTuple):
    """How many memories a sweep deleted as expired, gave a new decay score, and embedded."""

    expired: int
    rescored: int
    backfilled: int


class Lifecycle:
    """Runs sweeps over one store."""

    def __init__(self, store: Store, embedding: Embedding, clock: Clock) -> None:
        self._store = store
        self._embedding = embedding
        self._clock = clock
        self._backfilled_to = BEFORE_ALL

    def sweep(self) -> SweepReport:
        """One sweep. An embedder that does not work only puts the backfill off.

        Raises:
            StorageError: The database failed.
        """
        now = self._clock()
        with self._store.writing("sweep") as writer:
            expired = writer.delete_expired(now)
        report = SweepReport(expired, self._materialize_decay(now), self._backfill())
        log.info(
            "lifecycle sweep complete: expired=%d, rescored=%d, backfilled=%d",
            report.expired,
            report.rescored,
            report.backfilled,
        )
        return report

    def _materialize_decay(self, now: int) -> int:
        # In batches, so that other writers get their turn between them.
        rescored = 0
        after: int | None = BEFORE_ALL
        while after is not None:
            with self._store.writing("sweep") as writer:
                count, after = writer.materialize_decay(after, now)
            rescored += count
        return rescored

    def _backfill(self) -> int:
        """Embed one batch from where the last full one with refusals ended, filled up from the lowest id."""
        if self._embedding.obstacle is not None:
            return 0
        try:
            start, self._backfilled_to = self._backfilled_to, BEFORE_ALL
            written, last = self._embedding.backfill(start)
            if last is None and start > BEFORE_ALL and written < BACKFILL_BATCH:
                more, last = self._embedding.backfill(BEFORE_ALL, BACKFILL_BATCH - written)
                written += more
        except EmbeddingError as error:
            log.debug("backfill put off: %s", error)
            return 0
        if last is not None and written < BACKFILL_BATCH:
            # Texts that the embedder refuses must not keep those behind them waiting for ever.
            self._backfilled_to = last
        return written


class Sweeper:
    """A background thread that sweeps at once and then every ``interval`` seconds until stopped."""

    def __init__(self, sweep: Callable[[], object], interval: float) -> None:
        self._sweep = sweep
        self._interval = interval
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sweeper", daemon=True)

    def start(self) -> None:
        """Begin with the first sweep."""
        self._thread.start()

    def stop(self) -> None:
        """Begin no further sweep."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._sweep()
            except AgentMemoryError as error:
                if not self._stopped.is_set():
                    log.warning("lifecycle sweep failed: %s", error)
            except Exception:  # whatever one sweep meets, the next one must come
                log.exception("lifecycle sweep failed unexpectedly")
            self._stopped.wait(self._interval)
