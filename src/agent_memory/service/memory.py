"""The operations of the typed memory, the same behind every door."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Self, TypeAlias

from agent_memory.domain import bounds
from agent_memory.domain.embedding import Embedder, Health
from agent_memory.domain.links import Edge, LinkKind, LinkResult, UnlinkResult
from agent_memory.domain.memory import (
    UNSET,
    Filters,
    ForgetResult,
    Memory,
    MemoryType,
    NewMemory,
    Patch,
    SearchAnswer,
    UnsetType,
    UpdateResult,
)
from agent_memory.errors import EmbeddingError, InvalidArgument
from agent_memory.service import recall
from agent_memory.service.embedding import BEFORE_ALL, EMBED_BATCH, Embedding
from agent_memory.service.lifecycle import Lifecycle, SweepReport
from agent_memory.service.ports import Clock, Progress, Reader, Store
from agent_memory.service.recency import Recency

if TYPE_CHECKING:
    from agent_memory.domain.statistics import Statistics
    from agent_memory.domain.transfer import ExportReport, GsdReport, ImportReport
    from agent_memory.service.transfer import Transfer

# Inside the class the name `list` is the operation.
Memories: TypeAlias = list[Memory]


class AgentMemory:
    """One memory file, opened. Safe to use from many threads and beside other processes; close it when done.

    Every method raises :class:`~agent_memory.errors.InvalidArgument` (or ``InvalidType``) for a value outside
    its bounds, before anything is read or written, and :class:`~agent_memory.errors.StorageError` when the
    database fails. An id that no memory has is an answer, not an error.
    """

    def __init__(
        self, store: Store, embedder: Embedder, clock: Clock, *, strict_query: bool = False, counts_uses: bool = True
    ) -> None:
        """Use :func:`agent_memory.open` instead; this takes the parts it would assemble.

        Without ``counts_uses`` a search leaves the memories that it finds as they are.
        """
        self._store = store
        self._embedding = Embedding(store, embedder)
        self._lifecycle = Lifecycle(store, self._embedding, clock)
        self._recency = Recency(store)
        self._clock = clock
        self._strict_query = strict_query
        self._counts_uses = counts_uses
        self._closed = False

    @property
    def path(self) -> Path:
        """The database file."""
        return self._store.path

    def store(
        self,
        content: str,
        type: MemoryType | str,
        *,
        tags: Sequence[str] = (),
        source: str | None = None,
        scope: str | None = None,
        ttl_secs: int | None = None,
    ) -> int:
        """Keep a new memory and return its id.

        ``scope`` is a project or area, ``None`` for global; ``ttl_secs`` (1 to 3155760000) lets it expire that
        long after now. With the embedder down it is kept all the same, and embedded later.
        """
        new = NewMemory(
            content=bounds.check_content(content),
            type=MemoryType.parse(type),
            tags=bounds.check_tags(tags),
            source=bounds.check_optional_text("source", source),
            scope=bounds.check_optional_text("scope", scope),
            ttl_secs=bounds.check_ttl(ttl_secs),
        )
        vector = self._embedding.for_storing(new.content)
        with self._store.writing("store") as writer:
            return writer.insert(new, vector, self._clock())

    def search(
        self,
        query: str,
        *,
        type: MemoryType | str | None = None,
        tag: str | None = None,
        scope: str | None = None,
        limit: int | None = None,
        expand_links: bool = False,
    ) -> SearchAnswer:
        """The memories that answer ``query`` best, by keyword and, when the embedder answers, by meaning.

        No text is a wrong query: FTS5 syntax keeps its meaning, anything else is read as words. ``limit`` is 1
        to 200, 50 by default. Each returned memory counts as used now; nothing else does.
        """
        query = bounds.check_query(query)
        filters = _filters(type, tag, scope)
        count = bounds.check_limit(limit) or bounds.DEFAULT_SEARCH_LIMIT
        bounds.check_flag("expand_links", expand_links)
        vector = self._embedding.for_searching(query)
        now = self._clock()
        with self._store.reading("search") as reader:
            if vector is None:
                ids = reader.keyword_blended(query, filters, count, now, strict=self._strict_query)
            else:
                ids = recall.hybrid(reader, query, vector, filters, count, now, strict=self._strict_query)
            found = reader.by_id(ids, now)
            results = [found[memory_id] for memory_id in ids]
            if expand_links:
                results = _with_related(reader, results)
        if self._counts_uses:
            self._recency.bump(ids, now)
        return SearchAnswer("keyword" if vector is None else "hybrid", tuple(results))

    def list(
        self,
        *,
        type: MemoryType | str | None = None,
        tag: str | None = None,
        scope: str | None = None,
        limit: int | None = None,
        expand_links: bool = False,
    ) -> Memories:
        """Memories newest first, all of them without a ``limit`` (1 to 200), which ``expand_links`` requires."""
        filters = _filters(type, tag, scope)
        bounds.check_limit(limit)
        if bounds.check_flag("expand_links", expand_links) and limit is None:
            raise InvalidArgument(
                "limit is required when expand_links is true; "
                f"pass a limit between {bounds.MIN_LIMIT} and {bounds.MAX_LIMIT}"
            )
        with self._store.reading("list") as reader:
            results = reader.newest(filters, limit, self._clock())
            return _with_related(reader, results) if expand_links else results

    def get(self, id: int) -> Memory | None:
        """The memory of that id with its links, or ``None`` when there is none. It does not count as a use."""
        bounds.check_id("id", id)
        with self._store.reading("show") as reader:
            memory = reader.get(id, self._clock())
            return None if memory is None else _with_related(reader, [memory])[0]

    def update(
        self,
        id: int,
        *,
        content: str | UnsetType = UNSET,
        tags: Sequence[str] | UnsetType | None = UNSET,
        scope: str | UnsetType | None = UNSET,
        ttl_secs: int | UnsetType | None = UNSET,
    ) -> UpdateResult:
        """Patch a memory in place; it counts as used now.

        What is not given stays. ``None`` clears tags, scope or expiry; ``ttl_secs`` counts from now.
        """
        bounds.check_id("id", id)
        patch = _patch(content, tags, scope, ttl_secs)
        vector = None if patch.content is UNSET else self._embedding.for_storing(patch.content)
        now = self._clock()
        with self._store.writing("update") as writer:
            old = writer.get(id, now)
            if old is None:
                return UpdateResult(id, None)
            writer.patch(id, patch, now)
            if vector is not None or (patch.content is not UNSET and patch.content != old.content):
                writer.set_vector(id, vector)
            return UpdateResult(id, writer.get(id, now))

    def link(self, from_id: int, to_id: int, kind: LinkKind | str) -> LinkResult:
        """Relate two memories; a relation that exists already is left as it is."""
        edge = _edge(from_id, to_id, kind)
        if from_id == to_id:
            raise InvalidArgument(f"from_id and to_id must differ (got {from_id})")
        now = self._clock()
        with self._store.writing("link") as writer:
            present = writer.decay_inputs([from_id, to_id])
            for end in (from_id, to_id):
                if end not in present:
                    return LinkResult(edge, missing_id=end)
            writer.link(edge.stored(), now)
        return LinkResult(edge)

    def unlink(self, from_id: int, to_id: int, kind: LinkKind | str) -> UnlinkResult:
        """Remove a relation; a symmetric one from either end."""
        edge = _edge(from_id, to_id, kind)
        with self._store.writing("unlink") as writer:
            return UnlinkResult(edge, writer.unlink(edge.stored()))

    def forget(self, id: int) -> ForgetResult:
        """Delete a memory with its vector and all its links."""
        bounds.check_id("id", id)
        with self._store.writing("forget") as writer:
            return ForgetResult(id, writer.delete(id))

    def sweep(self) -> SweepReport:
        """Delete expired memories, write decay scores and embed up to 128 pending memories. Servers do it hourly."""
        self._recency.flush()
        return self._lifecycle.sweep()

    def statistics(self) -> Statistics:
        """How much of what the file holds."""
        with self._store.reading("stats") as reader:
            return reader.statistics(self._clock())

    def count_pending(self) -> int:
        """How many memories wait for their vector."""
        with self._store.reading("embed") as reader:
            return reader.count_pending()

    def embed_pending(self, progress: Progress | None = None) -> int:
        """Embed every pending memory now, in batches of 32, and return how many were embedded.

        What is written stays when it is interrupted; running it again goes on. ``progress`` is called with how many
        are embedded so far and how many there are in all.

        Raises:
            EmbeddingError: The embedder does not work, or stopped working.
        """
        if self._embedding.obstacle is not None:
            raise EmbeddingError(self._embedding.obstacle)
        pending = self.count_pending()
        total = 0
        after: int | None = BEFORE_ALL
        while after is not None:
            written, after = self._embedding.backfill(after, EMBED_BATCH)
            total += written
            if progress is not None:
                progress(total, pending)
        return total

    def export_jsonl(self, file: BinaryIO, progress: Progress | None = None) -> ExportReport:
        """Write every memory and link to ``file`` as JSON Lines, as of one moment.

        ``file`` is opened for writing bytes. ``progress`` is called now and then with how many records
        are done and how many there are.

        Raises:
            OSError: ``file`` cannot be written; it holds a part.
        """
        return self._transfer().export_jsonl(file, progress)

    def import_jsonl(self, file: BinaryIO, progress: Progress | None = None) -> ImportReport:
        """Add what a file of :meth:`export_jsonl` holds and is not there yet: all of it or, if it fails, nothing.

        ``file`` is opened for reading bytes, at its beginning. The new memories are pending their vectors.

        Raises:
            InvalidFile: The file has a defect; ``line`` says where.
            FormatTooNew: A newer version wrote it.
            OSError: ``file`` cannot be read.
        """
        return self._transfer().import_jsonl(file, progress)

    def import_gsd_state(self, text: str, scope: str | None = None) -> GsdReport:
        """Add the decisions, concerns and todos of a GSD project's state file that are not there yet."""
        return self._transfer().import_gsd_state(text, scope)

    def check_health(self) -> Health:
        """Read one memory, then ask the embedder whether it is ``ready``, ``model_missing`` or ``unreachable``.

        Asking an embedder that hangs takes up to 10 seconds.
        """
        self.list(limit=1)
        return self._embedding.health()

    def report_embedder(self) -> None:
        """Say in the log, in one line, whether search by meaning is available."""
        self._embedding.report()

    def end_embedding(self) -> None:
        """Let running and later calls go on without the embedder, at once."""
        self._embedding.close()

    def close(self) -> None:
        """Release the file; calling it again does nothing."""
        if self._closed or self._store.inherited:
            return
        self._closed = True
        self._embedding.close()
        self._recency.close()
        self._store.close()

    def _transfer(self) -> Transfer:
        # A starting server should not wait for what only imports and exports need.
        from agent_memory.service.transfer import Transfer

        return Transfer(self._store, self._embedding, self._clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _filters(type: MemoryType | str | None, tag: str | None, scope: str | None) -> Filters:
    return Filters(
        type=None if type is None or type == "" else MemoryType.parse(type),
        tag=bounds.check_optional_text("tag", tag),
        scope=bounds.check_optional_text("scope", scope),
    )


def _patch(
    content: str | UnsetType,
    tags: Sequence[str] | UnsetType | None,
    scope: str | UnsetType | None,
    ttl_secs: int | UnsetType | None,
) -> Patch:
    if content is UNSET and tags is UNSET and scope is UNSET and ttl_secs is UNSET:
        raise InvalidArgument("at least one of content, tags, scope, ttl_secs must be provided")
    if content is None:
        raise InvalidArgument("content must be a non-empty string (got null)")
    return Patch(
        content=UNSET if content is UNSET else bounds.check_content(content),
        tags=UNSET if tags is UNSET else bounds.check_tags(tags or ()),
        scope=UNSET if scope is UNSET else bounds.check_optional_text("scope", scope),
        ttl_secs=UNSET if ttl_secs is UNSET else bounds.check_ttl(ttl_secs),
    )


def _edge(from_id: int, to_id: int, kind: LinkKind | str) -> Edge:
    return Edge(bounds.check_id("from_id", from_id), bounds.check_id("to_id", to_id), LinkKind.parse(kind))


def _with_related(reader: Reader, results: Sequence[Memory]) -> list[Memory]:
    related = reader.related([memory.id for memory in results])
    return [memory._replace(related=related[memory.id]) for memory in results]
