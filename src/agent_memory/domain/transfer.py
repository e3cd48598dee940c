"""Memories on their way into another file, and what became of them."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from agent_memory.domain.memory import MemoryType

LinkOutcome: TypeAlias = Literal["imported", "duplicate", "dropped"]


class Arrival(NamedTuple):
    """A memory from elsewhere, validated. Times are unix seconds; ``expires_at`` is ``None`` for never."""

    type: MemoryType
    content: str
    tags: tuple[str, ...]
    source: str | None
    scope: str | None
    created_at: int
    access_count: int = 0
    expires_at: int | None = None


class ExportReport(NamedTuple):
    """How many memories and links were written."""

    memories: int
    links: int


class ImportReport(NamedTuple):
    """What became of each record of an imported file."""

    imported: int = 0
    skipped_duplicates: int = 0
    skipped_expired: int = 0
    links_imported: int = 0
    links_skipped_duplicates: int = 0
    links_dropped: int = 0


class GsdReport(NamedTuple):
    """What became of each item of a GSD state file; ``malformed`` counts entries and rows that are none."""

    imported: int
    skipped_duplicates: int
    malformed: int
