"""Remembering that the embedder is down, so that each call does not wait for it anew."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from agent_memory.domain.embedding import Embedder, Health
from agent_memory.errors import EmbedderUnreachable

log = logging.getLogger(__name__)

FIRST_PAUSE_SECS: Final = 0.5
LONGEST_PAUSE_SECS: Final = 60.0


class CircuitBreaker:
    """An embedder that, after an outage, is left alone for a short time that doubles while the outage lasts.

    The first call after the pause tries again, alone: others keep failing at once until it is answered. An
    embedder that answers with an error is not an outage.
    """

    def __init__(self, embedder: Embedder, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._embedder = embedder
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._pause = FIRST_PAUSE_SECS
        self._closed_until: float | None = None
        self._outage = ""

    @property
    def model(self) -> str:
        """The embedder's model."""
        return self._embedder.model

    @property
    def dim(self) -> int:
        """The embedder's dimension."""
        return self._embedder.dim

    @property
    def url(self) -> str:
        """Where the embedder is."""
        return self._embedder.url

    def health(self) -> Health:
        """The embedder's health, asked of it now."""
        return self._embedder.health()

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """As the embedder's own.

        Raises:
            EmbedderUnreachable: It did not answer, or did not a moment ago.
            EmbeddingRejected: It answered with an error.
        """
        self._admit()
        try:
            vectors = self._embedder.embed(texts)
        except EmbedderUnreachable as error:
            self._remember(error)
            raise
        except BaseException:
            self._forget()
            raise
        self._forget()
        return vectors

    def close(self) -> None:
        """Close the embedder."""
        self._embedder.close()

    def _admit(self) -> None:
        with self._lock:
            if self._closed_until is None:
                return
            now = self._monotonic()
            if now < self._closed_until:
                raise EmbedderUnreachable(self._outage)
            # This call is the trial; until it ends the others stay out.
            self._closed_until = now + LONGEST_PAUSE_SECS

    def _remember(self, error: EmbedderUnreachable) -> None:
        with self._lock:
            if self._closed_until is None:
                log.warning("%s; working without embeddings until it answers again", error)
            self._outage = str(error)
            self._closed_until = self._monotonic() + self._pause
            self._pause = min(self._pause * 2, LONGEST_PAUSE_SECS)

    def _forget(self) -> None:
        with self._lock:
            if self._closed_until is not None:
                log.info("the embedder answers again")
            self._closed_until = None
            self._pause = FIRST_PAUSE_SECS
