"""Reading a data source with few requests: once for a block where it is small, and else what is asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from memorizz.providers.contract import Problem
from memorizz.providers.notion_area import PAGE_SIZE, Area
from memorizz.providers.notion_journal import DELETED, LIVE, Entry, Journal
from memorizz.providers.notion_pages import Row, broken_rule
from memorizz.taxonomy import MemoryType

_NO_STORE: Final = MemoryType.KNOWLEDGE_BASE


class Found:
    """Pages by the records they hold. ``others`` are pages beside these: second ones of a record, and those of none."""

    def __init__(self) -> None:
        self.rows: dict[MemoryType, dict[str, Row]] = {store: {} for store in MemoryType}
        self.absent: set[tuple[MemoryType, str]] = set()
        self.complete: set[MemoryType] = set()
        self.others: list[Row] = []
        self.has_looked = False
        self.is_used = False

    def knows(self, store: MemoryType, id: str) -> bool:
        """Whether it is known if there is such a record."""
        return store in self.complete or id in self.rows[store] or (store, id) in self.absent

    def set(self, row: Row) -> None:
        """Know that this is the page of its record."""
        assert row.store is not None
        self.rows[row.store][row.id] = row
        self.absent.discard((row.store, row.id))

    def remove(self, store: MemoryType, id: str) -> None:
        """Know that there is no such record."""
        self.rows[store].pop(id, None)
        self.others = [row for row in self.others if (row.store, row.id) != (store, id)]
        self.absent.add((store, id))

    def in_order(self, store: MemoryType) -> list[Row]:
        """The rows of a store, in the order they were added."""
        return sorted(self.rows[store].values(), key=lambda row: row.added)


class Reader:
    """Finds pages. In a block, a page that was read is not read again by that thread."""

    def __init__(self, area: Area, journal: Journal) -> None:
        self._area = area
        self._journal = journal
        self._local = threading.local()

    @property
    def block(self) -> Found | None:
        """What the block of this thread knows, if there is one."""
        return getattr(self._local, "block", None)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A block. One inside another is a part of it."""
        if self.block is not None:
            yield
            return
        self._local.block = Found()
        try:
            yield
        finally:
            self._local.block = None

    @contextmanager
    def anew(self, *, remember: bool) -> Iterator[None]:
        """A part in which nothing is known from before; a block around it goes on with what was learned in it."""
        before = self.block
        inside = Found()
        self._local.block = inside if remember else None
        try:
            yield
        finally:
            # Whoever writes without remembering leaves nothing to go on with.
            was_used = inside.is_used or not remember
            self._local.block = before if before is None or not was_used else inside

    def rows(self, store: MemoryType) -> list[Row]:
        """The pages of a store's records, in the order these were added."""
        block = self._used()
        if block is not None and store not in block.complete:
            self._look(block)
        if block is not None and store in block.complete:
            return block.in_order(store)
        found = self._gather(self._area.pages(store), store)
        if block is not None:
            block.rows[store] = found.rows[store]
            block.others += found.others
            block.complete.add(store)
        return found.in_order(store)

    def everything(self) -> Found:
        """All pages."""
        block = self._used()
        if block is not None:
            self._look(block)
            if len(block.complete) == len(MemoryType):
                return block
        found = self._gather(self._area.pages(), None)
        if block is not None:
            block.rows, block.others, block.complete = found.rows, found.others, set(MemoryType)
        return found

    def locate(self, store: MemoryType, ids: Iterable[str]) -> dict[str, Row]:
        """The pages of those records that are there."""
        wanted = [id for id in dict.fromkeys(ids) if not broken_rule(id)]
        block = self._used()
        if block is None:
            return self._fetch(store, wanted).rows[store]
        unknown = [id for id in wanted if not block.knows(store, id)]
        # A look costs as much as a query; a page that the journal knows is found without.
        if len(unknown) > 1 or (unknown and not self._is_live(store, unknown[0])):
            self._look(block)
            unknown = [id for id in unknown if not block.knows(store, id)]
        if unknown:
            found = self._fetch(store, unknown)
            block.others += found.others
            for id in unknown:
                if id in found.rows[store]:
                    block.set(found.rows[store][id])
                else:
                    block.absent.add((store, id))
        return {id: block.rows[store][id] for id in wanted if id in block.rows[store]}

    def pages_of(self, store: MemoryType, ids: Iterable[str]) -> dict[str, list[Row]]:
        """All pages of those records that are there, also second ones."""
        wanted = [id for id in dict.fromkeys(ids) if not broken_rule(id)]
        found = self._used()
        if found is None or store not in found.complete:
            found = self._fetch(store, wanted, by_query=True)
        rows = found.rows[store]
        seconds = [row for row in found.others if row.store is store]
        return {id: [rows[id], *(row for row in seconds if row.id == id)] for id in wanted if id in rows}

    def problems(self) -> list[Problem]:
        """What is wrong with any page."""
        found = self.everything()
        rows = [row for store in MemoryType for row in found.in_order(store)]
        return [Problem(row.store or _NO_STORE, row.id, row.problem) for row in [*rows, *found.others] if row.problem]

    def _used(self) -> Found | None:
        block = self.block
        if block is not None:
            block.is_used = True
        return block

    def _look(self, block: Found) -> None:
        """Read everything, if one request can."""
        if block.has_looked:
            return
        block.has_looked = True
        rows, is_all = self._area.first_pages()
        if is_all:
            found = self._gather(rows, None)
            block.rows, block.others, block.complete = found.rows, found.others, set(MemoryType)

    def _gather(self, rows: Iterable[Row], store: MemoryType | None) -> Found:
        """These pages, which are all of a store's or all there are, and those that a query does not show yet."""
        found = Found()
        pages = set()
        for row in rows:
            pages.add(row.page_id)
            if store is None or row.store is store or row.store is None:
                self._add(found, row)
            elif row.problem:
                found.others.append(row)
        for entry in self._journal.entries(LIVE, store):
            if entry.page_id not in pages:
                confirmed = self._confirmed(entry)
                if confirmed is not None:
                    self._add(found, confirmed)
        return found

    def _fetch(self, store: MemoryType, ids: list[str], *, by_query: bool = False) -> Found:
        found = Found()
        if len(ids) == 1 and not by_query:
            self._add_known(found, store, ids[0])
        missing = [id for id in ids if id not in found.rows[store]]
        for start in range(0, len(missing), PAGE_SIZE):
            asked = set(missing[start : start + PAGE_SIZE])
            for row in self._area.with_ids(store, asked):
                if row.store is store and row.id in asked:
                    self._add(found, row)
        for id in missing:
            if id not in found.rows[store]:
                self._add_known(found, store, id)
        return found

    def _is_live(self, store: MemoryType, id: str) -> bool:
        entry = self._journal.entry(store, id)
        return entry is not None and entry.status in LIVE

    def _add_known(self, found: Found, store: MemoryType, id: str) -> None:
        entry = self._journal.entry(store, id)
        if entry is not None and entry.status in LIVE:
            row = self._confirmed(entry)
            if row is not None:
                self._add(found, row)

    def _confirmed(self, entry: Entry) -> Row | None:
        """The page that the journal knows, if it is there and still that record's."""
        row = None if entry.page_id is None else self._area.page(entry.page_id)
        if row is None:
            self._journal.mark(entry.store, entry.id, DELETED)
            return None
        if row.text is None:
            return row._replace(store=entry.store, id=entry.id)
        return row if (row.store, row.id) == (entry.store, entry.id) else None

    def _add(self, found: Found, row: Row) -> None:
        if row.store is None:
            found.others.append(row)
            return
        first = found.rows[row.store].get(row.id)
        if first is None:
            found.rows[row.store][row.id] = row
            return
        entry = self._journal.entry(row.store, row.id)
        if entry is not None and entry.page_id == row.page_id:
            found.rows[row.store][row.id], row = row, first
        problem = f"Notion page {row.page_id}: is a second page of this record"
        found.others.append(row._replace(problem=problem))
