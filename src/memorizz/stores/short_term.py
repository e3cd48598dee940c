"""Short-term memory: notes that lapse."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, ClassVar, TypeAlias

from memorizz.checks import Text, invalid
from memorizz.entries import moment
from memorizz.ports import stamp
from memorizz.records import Record
from memorizz.stores.base import Records, Store
from memorizz.taxonomy import MemoryType

Seconds: TypeAlias = float


class ShortTermMemory(Store):
    """Notes by physical id. ``ttl`` says for how many seconds a note counts, ``expires_at`` until when."""

    memory_type = MemoryType.SHORT_TERM_MEMORY
    types: ClassVar = {"content": Text, "ttl": float | None, "expires_at": str | None}
    defaults: ClassVar = {"memory_type": MemoryType.SHORT_TERM_MEMORY.value}

    def create(self, content: str, *, ttl: Seconds | None = None, **fields: Any) -> str:
        """Keep a note, for ``ttl`` seconds if that is given, and return its id.

        Raises:
            InvalidRecord: A field breaks its rule.
            RecordExists: Its ``_id`` is taken.
        """
        expires_at = None
        if ttl is not None:
            if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 < ttl <= _LONGEST:
                raise invalid(self.memory_type, None, "ttl", f"a number of seconds, more than 0 to {_LONGEST}", ttl)
            expires_at = stamp(self._clock() + timedelta(seconds=ttl))
        return self._create({"content": content, "ttl": ttl, "expires_at": expires_at, **fields})

    def list(self, *, include_expired: bool = False, **equal: Any) -> Records:
        """The notes that this scope sees and whose fields are as given, in the order they were added."""
        time = self._clock()
        return [row for row in super().list(**equal) if include_expired or not _is_expired(row, time)]

    def purge(self) -> int:
        """Remove the notes of this scope that have lapsed, and return how many there were."""
        time = self._clock()
        lapsed = [row for row in super().list() if _is_expired(row, time)]
        return sum(self.delete(row["_id"]) for row in lapsed)


_LONGEST = 3_155_760_000
"""A hundred years, in seconds."""


def _is_expired(note: Record, time: datetime) -> bool:
    until = moment(note.get("expires_at"))
    if until is None:
        begin, ttl = moment(note.get("timestamp")), note.get("ttl")
        if begin is None or isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 <= ttl <= _LONGEST:
            return False
        until = begin + timedelta(seconds=ttl)
    return until <= time
