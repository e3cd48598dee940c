"""Embedding that never fails its caller: what cannot be embedded now stays pending."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from agent_memory.domain.embedding import Embedder, Health
from agent_memory.errors import EmbedderUnreachable, EmbeddingError, EmbeddingRejected, StorageError
from agent_memory.service.breaker import CircuitBreaker
from agent_memory.service.ports import Store

log = logging.getLogger(__name__)

BACKFILL_BATCH: Final = 128
EMBED_BATCH: Final = 32
"""Small enough for a slow machine to answer in time."""
BEFORE_ALL: Final = -(2**63)
"""An id below every other."""


class Backfill(NamedTuple):
    """How many vectors were written, and the last id of a full batch, above which there may be more."""

    written: int
    last: int | None


class Embedding:
    """The embedder of one store, used only while its vectors may be compared with those of the file."""

    def __init__(self, store: Store, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder
        self._breaker = CircuitBreaker(embedder)
        self._fault = ""
        self.obstacle = self._find_obstacle()
        if self.obstacle is not None:
            log.warning("%s; searching by keyword only", self.obstacle)

    def for_storing(self, content: str) -> bytes | None:
        """The vector of ``content``, or ``None`` when it has to wait for the sweep."""
        return self._attempt(content, "storing with embedding_status = 0")

    def for_searching(self, query: str) -> bytes | None:
        """The vector of ``query``, or ``None`` when the search has to do with keywords."""
        return self._attempt(query, "falling back to keyword search")

    def backfill(self, after: int, limit: int = BACKFILL_BATCH) -> Backfill:
        """Embed up to ``limit`` pending memories with an id above ``after``, lowest first.

        A memory that was edited or deleted meanwhile is left as it is, and so is one whose text the embedder
        refuses. The embedder is asked even if it was unreachable a moment ago.

        Raises:
            EmbeddingError: The embedder does not work at all; nothing was written.
            StorageError: The database failed.
        """
        if self.obstacle is not None:
            raise EmbedderUnreachable(self.obstacle)
        with self._store.reading("sweep") as reader:
            rows = reader.pending(after, limit)
        if not rows:
            return Backfill(0, None)
        vectors = self._embed_each([content for _, content in rows])
        return Backfill(self._write("sweep", rows, vectors), rows[-1][0] if len(rows) == limit else None)

    def embed_now(self, rows: Sequence[tuple[int, str]]) -> None:
        """Embed memories that were just added, given as id and content; what cannot be embedded stays pending."""
        if self.obstacle is not None:
            return
        for start in range(0, len(rows), EMBED_BATCH):
            batch = rows[start : start + EMBED_BATCH]
            try:
                vectors = self._breaker.embed([content for _, content in batch])
            except EmbeddingError as error:
                log.debug("embedding failed (%s); the sweep will try again", error)
                return
            try:
                self._write("import", batch, vectors)
            except StorageError as error:
                # The memories themselves are in the file already.
                log.warning("%s; the new memories are pending their vectors", error)
                return

    def _write(self, operation: str, rows: Sequence[tuple[int, str]], vectors: Sequence[bytes | None]) -> int:
        """Keep each vector whose memory still holds the text it was made of, and return how many did."""
        written = 0
        with self._store.writing(operation) as writer:
            for (memory_id, content), vector in zip(rows, vectors, strict=True):
                if vector is not None and writer.waits_for(memory_id, content):
                    writer.set_vector(memory_id, vector)
                    written += 1
        return written

    def health(self) -> Health:
        """Whether the embedder could be used now. Asks it."""
        return self._embedder.health()

    def report(self) -> None:
        """Log one line that says whether the embedder is ready."""
        if self.obstacle is not None:
            return
        health = self.health()
        if health == "ready":
            log.info("semantic search ready (%s)", self._embedder.model)
        elif health == "model_missing":
            log.warning("Ollama has no model %s — run `ollama pull %s`", self._embedder.model, self._embedder.model)
        else:
            log.warning("Ollama unreachable at %s — search falls back to keyword", self._embedder.url)

    def close(self) -> None:
        """End running requests to the embedder."""
        self._embedder.close()

    def _find_obstacle(self) -> str | None:
        if not self._store.has_vectors:
            return "sqlite-vec is not installed for this platform"
        with self._store.reading("open") as reader:
            pin = reader.embedding_pin()
        ours = (self._embedder.model, str(self._embedder.dim))
        if pin != ours:
            return (
                f"the vectors in {self._store.path} are of the model {pin[0] or '(unknown)'} with "
                f"{pin[1] or '(unknown)'} dimensions, the embedder's of {ours[0]} with {ours[1]}"
            )
        return None

    def _attempt(self, text: str, consequence: str) -> bytes | None:
        if self.obstacle is not None:
            return None
        try:
            vector = self._breaker.embed([text])[0]
        except EmbedderUnreachable as error:
            # The circuit breaker has logged the outage, once.
            log.debug("embedding failed (%s); %s", error, consequence)
        except EmbeddingRejected as error:
            # The same fault again is no news.
            log.log(
                logging.DEBUG if str(error) == self._fault else logging.WARNING,
                "embedding failed (%s); %s",
                error,
                consequence,
            )
            self._fault = str(error)
        else:
            self._fault = ""
            return vector
        return None

    def _embed_each(self, contents: Sequence[str]) -> list[bytes | None]:
        """The vectors of ``contents`` in one request, or around those that the embedder refuses or hangs on."""
        try:
            return [*self._breaker.embed(contents, insist=True)]
        except EmbeddingError as error:
            # One text that the model chokes on must not hold up all others; a model that takes no text at all
            # (it is not pulled, or nothing answers) is a failure of the whole.
            self._breaker.embed(["memory"], insist=True)
            return self._around_refused(contents, error)

    def _around_refused(self, contents: Sequence[str], error: EmbeddingError) -> list[bytes | None]:
        if len(contents) == 1:
            log.warning("embedding failed (%s); a memory stays pending: %.60r", error, contents[0])
            return [None]
        middle = len(contents) // 2
        vectors: list[bytes | None] = []
        for half in (contents[:middle], contents[middle:]):
            try:
                vectors += self._breaker.embed(half, insist=True)
            except EmbeddingError as refused:
                vectors += self._around_refused(half, refused)
        return vectors
