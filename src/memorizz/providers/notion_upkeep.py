"""Bringing the journal and Notion together: what was cut off, what is pending, what others did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from memorizz.providers import notion_journal as journal
from memorizz.providers.notion_area import Area
from memorizz.providers.notion_journal import LIVE, NOT_PROJECTED, UNRESOLVED, Entry, Journal
from memorizz.providers.notion_pages import Row
from memorizz.providers.notion_reading import Found, Reader
from memorizz.taxonomy import MemoryType


class Upkeep:
    """Does so for whoever holds the lock."""

    def __init__(self, area: Area, journal: Journal, reader: Reader, data_source_id: str, path: Path) -> None:
        self._area = area
        self._journal = journal
        self._reader = reader
        self._data_source_id = data_source_id
        self._path = path

    def status(self) -> dict[str, Any]:
        """What the journal says."""
        return status_of(self._journal, self._data_source_id, self._path)

    def repair(self) -> dict[str, Any]:
        """Add properties that were removed, resolve what was cut off, and confirm what is pending.

        Second pages that say the same go.
        """
        self._area.learn(self._area.properties, make=True)
        self._journal.remember(self._area.properties)
        open_lines = self._journal.entries(UNRESOLVED)
        pending = self._journal.entries([journal.PENDING])
        found = self._reader.everything()
        for entry in open_lines:
            self._resolve(entry, found)
        thrown, different = self._throw_away_seconds(found)
        confirmed, unlike = self._confirm(pending, found)
        status = self.status()
        status["unresolved"] += different + unlike
        return {"repaired": len(open_lines) + thrown + confirmed, **status}

    def sync(self, stores: Iterable[MemoryType], *, force: bool) -> dict[str, Any]:
        """Let the journal know what is in Notion."""
        wanted = list(stores)
        if len(wanted) == len(MemoryType):
            found = self._reader.everything()
        else:
            found = Found()
            for store in wanted:
                found.rows[store] = {row.id: row for row in self._reader.rows(store)}
        refreshed = 0
        for store in wanted:
            refreshed += sum(self._refresh(row, force=force) for row in found.in_order(store))
            for entry in self._journal.entries(UNRESOLVED, store):
                self._resolve(entry, found)
        status = {**self.status(), "notion_freshness_verified": len(wanted) == len(MemoryType)}
        return {"refreshed": refreshed, "memory_types": [store.value for store in wanted], **status}

    def _refresh(self, row: Row, *, force: bool) -> bool:
        """Take up a page whose line is missing, pending or, with ``force``, whatever; whether that was so."""
        assert row.store is not None
        entry = self._journal.entry(row.store, row.id)
        if row.text is None or (entry is not None and entry.status in UNRESOLVED):
            return False
        is_same = entry is not None and (entry.page_id, entry.fingerprint) == (row.page_id, row.fingerprint)
        if entry is not None and is_same and entry.status in (journal.INDEXED, journal.STORED) and not force:
            return False
        self._take_up(row)
        return True

    def _take_up(self, row: Row) -> None:
        assert row.store is not None
        status = journal.STORED if row.store in NOT_PROJECTED else journal.INDEXED
        self._journal.write(Entry(row.id, row.store, row.page_id, row.fingerprint, status, row.added))

    def _resolve(self, entry: Entry, found: Found) -> None:
        """What became of a write that was cut off."""
        row = found.rows[entry.store].get(entry.id)
        if entry.status in (journal.DELETE_PENDING, journal.DELETE_UNCERTAIN):
            if row is not None and row.page_id == entry.page_id:
                self._area.trash(row.page_id)
                found.remove(entry.store, entry.id)
            if row is None or row.page_id == entry.page_id:
                self._journal.mark(entry.store, entry.id, journal.DELETED)
                return
        if row is None:
            self._journal.mark(entry.store, entry.id, journal.NOT_CREATED)
        elif row.text is None:
            # There is a page, but not what was written.
            self._journal.mark(entry.store, entry.id, journal.ABANDONED)
        else:
            self._take_up(row)

    def _confirm(self, pending: Iterable[Entry], found: Found) -> tuple[int, int]:
        """Note which of these pages hold records; how many do, and how many are there and do not."""
        confirmed = unlike = 0
        for entry in pending:
            row = found.rows[entry.store].get(entry.id)
            if row is not None and row.text is not None:
                self._take_up(row)
                confirmed += 1
            elif row is not None:
                unlike += 1
        return confirmed, unlike

    def _throw_away_seconds(self, found: Found) -> tuple[int, int]:
        """Of several pages that hold the same record keep one; how many went, and how many differ and stay."""
        thrown = left = 0
        for row in list(found.others):
            if row.store is None or row.text is None:
                continue
            kept = found.rows[row.store].get(row.id)
            if kept is not None and kept.fingerprint == row.fingerprint:
                self._area.trash(row.page_id)
                found.others.remove(row)
                thrown += 1
            else:
                left += 1
        return thrown, left


def status_of(lines: Journal, data_source_id: str, path: Path) -> dict[str, Any]:
    """What a journal says."""
    counts = lines.counts()
    by_store: Counter[str] = Counter()
    for status, stores in counts.items():
        if status in LIVE or status in UNRESOLVED:
            by_store.update(stores)
    totals = {status: sum(stores.values()) for status, stores in sorted(counts.items())}
    return {
        "data_source_id": data_source_id,
        "semantic_enabled": False,
        "tracked_records": sum(by_store.values()),
        "counts": totals,
        "tracked_by_memory_type": dict(sorted(by_store.items())),
        "state_scope": str(path),
        "notion_freshness_verified": False,
        "pending": totals.get(journal.PENDING, 0),
        "unresolved": sum(totals.get(status, 0) for status in UNRESOLVED),
    }
