"""Writing pages: what is begun stands in the journal first, and what is not known is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agent_memory.errors import shorten
from memorizz.errors import ProviderFault, RecordExists
from memorizz.providers import notion_journal as journal
from memorizz.providers.notion_area import Area
from memorizz.providers.notion_http import NotionClient, NotionUnsure, Timer
from memorizz.providers.notion_journal import LIVE, NOT_PROJECTED, Entry, Journal
from memorizz.providers.notion_pages import Draft, Row, draft
from memorizz.providers.notion_reading import Reader
from memorizz.records import Record
from memorizz.taxonomy import MemoryType


class Writer:
    """Adds, changes and removes pages, for whoever holds the lock."""

    def __init__(
        self, area: Area, journal: Journal, reader: Reader, client: NotionClient, timer: Timer, max_retries: int
    ) -> None:
        self._area = area
        self._journal = journal
        self._reader = reader
        self._client = client
        self._timer = timer
        self._attempts = max_retries + 1

    def put(self, store: MemoryType, records: Mapping[str, Record], *, replace: bool) -> None:
        """Write records.

        Raises:
            RecordExists: One is there already and is not to be replaced; nothing was written.
        """
        known = self._known(store, records) if replace else {}
        there = self._reader.locate(store, [id for id in records if id not in known])
        if there and not replace:
            first = next(id for id in records if id in there)
            raise RecordExists(f"{store} {shorten(first)!r}: a record of this id is there already")
        places = {**known, **{id: (row.page_id, row.added) for id, row in there.items()}}
        for id, record in records.items():
            if id not in places or not self._replaced(store, id, record, *places[id]):
                self._create(store, id, record)

    def delete(self, store: MemoryType, ids: Iterable[str]) -> int:
        """Move the pages of records to the trash, and return how many records there were."""
        found = self._reader.pages_of(store, ids)
        for id, rows in found.items():
            self._write(store, id, rows[0].page_id, rows[0].fingerprint, journal.DELETE_PENDING, rows[0].added)
            try:
                for row in rows:
                    self._area.trash(row.page_id)
            except ProviderFault:
                self._journal.mark(store, id, journal.DELETE_UNCERTAIN)
                raise
            self._journal.mark(store, id, journal.DELETED)
            if self._reader.block is not None:
                self._reader.block.remove(store, id)
        return len(found)

    def _known(self, store: MemoryType, records: Iterable[str]) -> dict[str, tuple[str, int]]:
        """The pages of records that the journal, or the block, knows: they need not be looked for."""
        known = {}
        block = self._reader.block
        for id in records:
            if block is not None and block.knows(store, id):
                continue
            entry = self._journal.entry(store, id)
            if entry is not None and entry.page_id is not None and entry.status in LIVE:
                known[id] = (entry.page_id, entry.added)
        return known

    def _replaced(self, store: MemoryType, id: str, record: Record, page_id: str, added: int) -> bool:
        made = draft(store, id, record, added)
        if not self._area.update(page_id, made.properties):
            # Somebody has thrown it away; there may be another one.
            self._journal.mark(store, id, journal.DELETED)
            if self._reader.block is not None:
                self._reader.block.remove(store, id)
            second = next((row for row in self._area.with_ids(store, [id]) if (row.store, row.id) == (store, id)), None)
            return second is not None and self._replaced(store, id, record, second.page_id, second.added)
        self._done(store, id, page_id, made, added)
        return True

    def _create(self, store: MemoryType, id: str, record: Record) -> None:
        added = max(int(self._timer.time() * 1_000_000), self._journal.last_added() + 1)
        made = draft(store, id, record, added)
        self._write(store, id, None, made.fingerprint, journal.CREATING, added)
        try:
            page_id = self._created(store, id, made)
        except NotionUnsure:
            raise
        except ProviderFault:
            entry = self._journal.entry(store, id)
            if entry is not None and entry.status == journal.CREATING:
                self._journal.mark(store, id, journal.NOT_CREATED)
            raise
        self._done(store, id, page_id, made, added)

    def _created(self, store: MemoryType, id: str, made: Draft) -> str:
        """The id of the page, which is added once: before it is sent again, it is looked for."""
        attempt = 0
        while True:
            try:
                return self._area.create(made.properties)
            except NotionUnsure:
                self._journal.mark(store, id, journal.UNCERTAIN)
                attempt += 1
                self._client.pause(attempt)
                for row in self._area.with_ids(store, [id]):
                    if row.id == id and row.fingerprint == made.fingerprint:
                        return row.page_id
                if attempt >= self._attempts:
                    raise

    def _done(self, store: MemoryType, id: str, page_id: str, made: Draft, added: int) -> None:
        status = journal.STORED if store in NOT_PROJECTED else journal.PENDING
        self._write(store, id, page_id, made.fingerprint, status, added)
        block = self._reader.block
        if block is not None:
            block.set(Row(page_id, store, id, added, made.text))

    def _write(
        self, store: MemoryType, id: str, page_id: str | None, fingerprint: str, status: str, added: int
    ) -> None:
        self._journal.write(Entry(id, store, page_id, fingerprint, status, added))
