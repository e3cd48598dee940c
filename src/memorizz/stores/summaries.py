"""Summaries: what messages say in few words, linked to them both ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from memorizz.checks import Count, Text
from memorizz.entries import moment
from memorizz.records import Record
from memorizz.stores.base import Store
from memorizz.taxonomy import MemoryType


class Summaries(Store):
    """Summaries by physical id. ``source_message_ids`` names the messages, which name the summary in ``summary_id``.

    ``period_start`` and ``period_end``, when the first and the last of them was said, and ``created_at`` are in unix
    seconds.
    """

    memory_type = MemoryType.SUMMARIES
    types: ClassVar = {
        "content": Text,
        "source_message_ids": list[str],
        "summary_type": str | None,
        "period_start": float | None,
        "period_end": float | None,
        "memory_units_count": Count,
        "created_at": float,
    }
    defaults: ClassVar = {"summary_type": "automatic"}

    def create(self, content: str, message_ids: Sequence[str] = (), **fields: Any) -> str:
        """Keep a summary, note it in its messages, and return its id.

        A message that this scope does not see, or that is gone, is only named in the summary.

        Raises:
            InvalidRecord: A field breaks its rule.
            RecordExists: Its id is taken.
        """
        ids = list(message_ids)
        found = (self._message(id) for id in ids)
        messages = [message for message in found if message is not None and self._sees(message)]
        times = [time for message in messages if (time := _seconds(message.get("timestamp"))) is not None]
        derived = {
            "source_message_ids": ids,
            "memory_units_count": len(ids),
            "period_start": min(times, default=None),
            "period_end": max(times, default=None),
            "created_at": self._clock().timestamp(),
        }
        with self.provider.transaction():
            summary = self._create({"content": content, **derived, **fields})
            for message in messages:
                self._link(message["_id"], summary)
        return summary

    def delete(self, id: str, /) -> bool:
        """Remove a summary and its mention in the messages; whether this scope sees one of that id."""
        with self.provider.transaction():
            summary = self.get(id)
            if not super().delete(id) or summary is None:
                return False
            for source in summary.get("source_message_ids") or []:
                message = self._message(source)
                if message is not None and message.get("summary_id") in (summary["_id"], summary.get("summary_id"), id):
                    self._link(source, None)
        return True

    def _message(self, id: str) -> Record | None:
        return self.provider.get(MemoryType.CONVERSATION_MEMORY, id)

    def _link(self, message: str, summary: str | None) -> None:
        self.provider.update_by_id(message, {"summary_id": summary}, MemoryType.CONVERSATION_MEMORY)


def _seconds(value: object) -> float | None:
    if isinstance(value, int | float):
        return float(value)
    time = moment(value)
    return None if time is None else time.timestamp()
