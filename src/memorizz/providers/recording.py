"""Telling a recorder of what the methods of a provider change."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from memorizz.records import Record, payload
from memorizz.taxonomy import CONTEXT_PREFIX, HISTORY_PREFIX, MemoryType


class Recorder(Protocol):
    """Is told of every change, after it was made."""

    def record(
        self, operation: str, store: MemoryType, id: str, before: Record | None, after: Record | None
    ) -> None: ...


class Recording:
    """What a provider says to its recorder. Rows of the journal and captured context are not spoken of."""

    recorder: Recorder | None = None

    def __init__(self) -> None:
        self._pauses = threading.local()

    @contextmanager
    def recording_paused(self) -> Iterator[None]:
        """A block whose changes, by this thread, are not recorded."""
        depth = getattr(self._pauses, "depth", 0)
        self._pauses.depth = depth + 1
        try:
            yield
        finally:
            self._pauses.depth = depth

    def _records(self) -> bool:
        return self.recorder is not None and not getattr(self._pauses, "depth", 0)

    def _report(self, operation: str, store: MemoryType, id: str, before: Record | None, after: Record | None) -> None:
        if self.recorder is not None and self._records() and not any(map(_is_about_records, (before, after))):
            self.recorder.record(operation, store, id, before, after)


def _is_about_records(record: Record | None) -> bool:
    if record is None:
        return False
    kinds = (record.get("record_type"), payload(record).get("record_type"))
    return any(isinstance(kind, str) and kind.startswith((HISTORY_PREFIX, CONTEXT_PREFIX)) for kind in kinds)
