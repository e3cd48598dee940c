"""Remembering that the embedder is down, so that each call does not wait for it anew."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from agent_memory.domain.embedding import Embedder
from agent_memory.errors import EmbedderUnreachable, EmbeddingError, EmbeddingRejected

log = logging.getLogger(__name__)

FIRST_PAUSE_SECS: Final = 0.5
LONGEST_PAUSE_SECS: Final = 60.0
COST_FACTOR: Final = 20


class CircuitBreaker:
    """Asks an embedder, and after an outage leaves it alone for a time that doubles while the outage lasts.

    The first call after the pause tries again, alone: others keep failing at once until it is answered. The
    pause is never longer than 20 times what the failed call cost, so an embedder that refuses at once is asked
    again almost at once. One that answers with an error is not an outage.
    """

    def __init__(self, embedder: Embedder, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._embedder = embedder
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._pause = FIRST_PAUSE_SECS
        self._closed_until: float | None = None
        self._outage = ""
        self._state = 0

    def embed(self, texts: Sequence[str], *, insist: bool = False) -> list[bytes]:
        """One vector per text; with ``insist`` the embedder is asked even during the pause.

        Raises:
            EmbedderUnreachable: It did not answer, or did not a moment ago.
            EmbeddingRejected: It answered with an error, or not with one vector of its dimension per text.
        """
        state = self._admit(insist=insist)
        started = self._monotonic()
        try:
            vectors = self._embedder.embed(texts)
        except EmbedderUnreachable as error:
            self._remember(error, state, self._monotonic() - started)
            raise
        except EmbeddingError:
            self._forget()
            raise
        except Exception as error:  # an embedder may be the caller's own; it must not fail a store
            self._forget()
            raise EmbeddingRejected(f"the embedder failed: {type(error).__name__}: {error}") from error
        self._forget()
        if [len(vector) for vector in vectors] != [4 * self._embedder.dim] * len(texts):
            raise EmbeddingRejected(
                f"invalid embedding response: expected {len(texts)} embeddings of {self._embedder.dim} float32"
            )
        return vectors

    def _admit(self, *, insist: bool) -> int:
        with self._lock:
            if self._closed_until is not None:
                now = self._monotonic()
                if now < self._closed_until and not insist:
                    raise EmbedderUnreachable(self._outage)
                # This call is the trial; until it ends the others stay out.
                self._change(now + LONGEST_PAUSE_SECS)
            return self._state

    def _remember(self, error: EmbedderUnreachable, state: int, cost: float) -> None:
        with self._lock:
            if state != self._state:
                return  # it began before the outage was known, and tells nothing new
            if self._closed_until is None:
                log.warning("%s; working without embeddings until it answers again", error)
            self._outage = str(error)
            self._change(self._monotonic() + min(self._pause, COST_FACTOR * cost))
            self._pause = min(self._pause * 2, LONGEST_PAUSE_SECS)

    def _forget(self) -> None:
        with self._lock:
            if self._closed_until is not None:
                log.info("the embedder answers again")
                self._change(None)
            self._pause = FIRST_PAUSE_SECS

    def _change(self, closed_until: float | None) -> None:
        self._closed_until = closed_until
        self._state += 1
