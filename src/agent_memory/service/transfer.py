"""A whole memory out to one portable file and in again, and the import of a GSD project's state."""

from __future__ import annotations

import logging
from collections import Counter
from typing import BinaryIO, Final

from agent_memory._version import __version__
from agent_memory.domain import bounds
from agent_memory.domain.transfer import Arrival, ExportReport, GsdReport, ImportReport
from agent_memory.errors import StorageError
from agent_memory.formats import gsd_state, jsonl
from agent_memory.service.embedding import Embedding
from agent_memory.service.ports import Arrivals, Clock, Progress, Reader, Store

log = logging.getLogger(__name__)

_PROGRESS_STEP: Final = 1_000
_TOLERATED_SKEW_SECS: Final = 3_600


class Transfer:
    """Moves the contents of one store."""

    def __init__(self, store: Store, embedding: Embedding, clock: Clock) -> None:
        self._store = store
        self._embedding = embedding
        self._clock = clock

    def export_jsonl(self, file: BinaryIO, progress: Progress | None) -> ExportReport:
        """Write everything to ``file``, as of one moment.

        Raises:
            StorageError: The database failed.
            OSError: ``file`` cannot be written.
        """
        with self._store.reading("export") as reader:
            header = self._header(reader)
            steps = _Steps(header, progress)
            file.write(jsonl.line(header))
            for memory in reader.all_memories(header.exported_at):
                record = jsonl.MemoryRecord(
                    key=memory.id,
                    type=memory.type,
                    content=memory.content,
                    # Another program may have left half of a pair of surrogates there, as an escape.
                    tags=[bounds.replace_surrogates(tag) for tag in memory.tags],
                    source=memory.source,
                    scope=memory.scope,
                    created_at=memory.created_at,
                    last_accessed=memory.last_accessed,
                    access_count=memory.access_count,
                    expires_at=memory.expires_at,
                )
                defect = jsonl.defect_of(record)
                if defect is not None:
                    log.warning("memory %d is exported, but no import will accept the file: %s", memory.id, defect)
                file.write(jsonl.line(record))
                steps.advance()
            for edge, created_at in reader.all_links():
                link = jsonl.LinkRecord(from_key=edge.from_id, to_key=edge.to_id, kind=edge.kind, created_at=created_at)
                file.write(jsonl.line(link))
                steps.advance()
        return ExportReport(header.exported_rows, header.exported_links)

    def import_jsonl(self, file: BinaryIO, progress: Progress | None) -> ImportReport:
        """Add what an exported file holds, all of it or, at any defect or fault, nothing.

        Raises:
            InvalidFile: The file has a defect.
            FormatTooNew: A newer version wrote it.
            StorageError: The database failed.
        """
        now = self._clock()
        counts: Counter[str] = Counter()
        with self._store.writing("import") as writer, writer.arriving() as arrivals:
            for record in jsonl.read(file):
                if isinstance(record, jsonl.Header):
                    _check_skew(record.exported_at, now)
                    steps = _Steps(record, progress)
                else:
                    counts[_add(arrivals, record, now)] += 1
                    steps.advance()
        return ImportReport(**counts)

    def import_gsd_state(self, text: str, scope: str | None) -> GsdReport:
        """Add the items of a GSD state file that are not there yet, and embed them where that works.

        Raises:
            StorageError: The database failed; nothing was added.
        """
        scope = bounds.check_optional_text("scope", scope)
        state = gsd_state.read(text)
        now = self._clock()
        added: list[tuple[int, str]] = []
        with self._store.writing("import") as writer, writer.arriving() as arrivals:
            for item in state.items:
                arrival = Arrival(item.type, item.content, item.tags, gsd_state.SOURCE, scope, now)
                memory_id, is_new = arrivals.add(arrival, now)
                added += [(memory_id, item.content)] if is_new else []
        self._embedding.embed_now(added)
        return GsdReport(len(added), len(state.items) - len(added), state.malformed)

    def _header(self, reader: Reader) -> jsonl.Header:
        now = self._clock()
        counted = reader.statistics(now)
        if counted.embedding_dim is None or not counted.embedding_model:
            log.error("export failed: the file does not say which model its vectors are of")
            raise StorageError("export")
        links, broken = reader.count_links()
        if broken:
            log.warning("%d links lead to no memory and are left out; `agent-memory doctor` names them", broken)
        return jsonl.Header(
            exported_at=now,
            embedding_model=counted.embedding_model,
            embedding_dim=counted.embedding_dim,
            schema_version=counted.schema_version,
            agent_memory_version=__version__,
            exported_rows=counted.memories,
            exported_links=links,
        )


def check_jsonl(file: BinaryIO, progress: Progress | None = None) -> None:
    """Read an exported file to its end. No database is needed.

    Raises:
        InvalidFile: The file has a defect.
        FormatTooNew: A newer version wrote it.
    """
    for record in jsonl.read(file):
        if isinstance(record, jsonl.Header):
            steps = _Steps(record, progress)
        else:
            steps.advance()


class _Steps:
    """Reports progress now and then instead of at each record."""

    def __init__(self, header: jsonl.Header, progress: Progress | None) -> None:
        self._total = header.exported_rows + header.exported_links
        self._progress = progress
        self._done = 0

    def advance(self) -> None:
        self._done += 1
        if self._progress is not None and (self._done % _PROGRESS_STEP == 0 or self._done == self._total):
            self._progress(self._done, self._total)


def _add(arrivals: Arrivals, record: jsonl.MemoryRecord | jsonl.LinkRecord, now: int) -> str:
    """Add one record and return the field of the report that counts it."""
    if isinstance(record, jsonl.LinkRecord):
        return _LINKS[arrivals.link(record.from_key, record.to_key, record.kind, record.created_at)]
    if record.expires_at is not None and record.expires_at <= now:
        return "skipped_expired"
    arrival = Arrival(
        type=record.type,
        content=record.content,
        tags=tuple(record.tags),
        source=record.source,
        scope=record.scope,
        created_at=record.created_at,
        access_count=record.access_count,
        expires_at=record.expires_at,
    )
    _, is_new = arrivals.add(arrival, now, record.key)
    return "imported" if is_new else "skipped_duplicates"


_LINKS: Final = {
    "imported": "links_imported",
    "duplicate": "links_skipped_duplicates",
    "dropped": "links_dropped",
}


def _check_skew(exported_at: int, now: int) -> None:
    ahead = exported_at - now
    if ahead > _TOLERATED_SKEW_SECS:
        log.warning(
            "clock skew: the file says it was exported %d seconds after now; one of the two clocks is wrong, and "
            "times to live and ages follow the local one",
            ahead,
        )
