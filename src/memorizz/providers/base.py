"""What every provider offers people, over the narrow contract that it fulfils itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from memorizz.providers.agent_methods import AgentMethods
from memorizz.providers.record_methods import UNSET, Unset, UserScope
from memorizz.providers.recording import Recorder
from memorizz.providers.values import normalise
from memorizz.records import Record
from memorizz.taxonomy import MemoryType

__all__ = ["UNSET", "MemoryProvider", "Recorder", "Unset", "UserScope"]


class MemoryProvider(AgentMethods):
    """Base of the providers. As a context manager it closes itself."""

    _embedder: Any = None

    @property
    def embedding_provider(self) -> Any:
        """What makes vectors for a restore that asks for them: has ``get_embedding(text)``, or is ``None``.

        One with ``get_embeddings(texts)`` as well is asked for many at once. Set it, or give it in the configuration.
        """
        configured = getattr(getattr(self, "config", None), "embedding_provider", None)
        return configured if self._embedder is None else self._embedder

    @embedding_provider.setter
    def embedding_provider(self, embedder: Any) -> None:
        """Let ``embedder`` make the vectors; ``None`` for that of the configuration."""
        self._embedder = embedder

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def retrieve_conversation_history_ordered_by_timestamp(
        self,
        memory_id: str,
        *,
        thread_id: str | None = None,
        user_id: UserScope = UNSET,
        limit: int | None = None,
    ) -> list[Record]:
        """The messages of a namespace, the oldest first; with ``limit`` the last so many of them.

        A message whose timestamp is no time counts as older than all others.
        """
        rows = [
            row
            for row in self.list_all(MemoryType.CONVERSATION_MEMORY, user_id)
            if row.get("memory_id") == memory_id and (thread_id is None or row.get("thread_id") == thread_id)
        ]
        rows.sort(key=_moment)
        return rows if limit is None else rows[max(0, len(rows) - limit) :]

    def store_summary_with_links(self, summary: Any, message_ids: Iterable[str]) -> str:
        """Keep a summary with the ids of the messages it covers, note it in those, and return its id.

        Messages that are not there stay named in the summary.
        """
        messages = MemoryType.CONVERSATION_MEMORY
        covered = [str(id) for id in message_ids]
        _, id, record = self._row(summary, MemoryType.SUMMARIES)
        record["source_message_ids"] = covered
        with self.transaction():
            self._write("store_summary_with_links", MemoryType.SUMMARIES, {id: record})
            for message in dict.fromkeys(covered):
                self._change("store_summary_with_links", messages, message, {"summary_id": id})
        return id

    def compare_and_swap_shared_memory(self, id: str, expected_revision: int, data: Any) -> bool:
        """Set fields of a shared session if its ``revision`` is the expected one; whether it was.

        The revision stands in the session's ``content``, and is 0 where none does. ``data`` brings the next one.
        """
        store = MemoryType.SHARED_MEMORY
        changes = normalise(store, data)
        with self.exclusive(store):
            before = self.get(store, str(id))
            if before is None or _revision(before) != expected_revision:
                return False
            return self._change("compare_and_swap_shared_memory", store, str(id), changes)


def _revision(record: Record) -> Any:
    content = record.get("content")
    if isinstance(content, str):
        try:
            content = json.loads(content)
        except (ValueError, RecursionError):
            content = None
    found = content.get("revision") if isinstance(content, Mapping) else None
    return found if found is not None else record.get("revision", 0)


def _moment(record: Record) -> float:
    stamp = record.get("timestamp")
    try:
        if isinstance(stamp, int | float):
            return float(stamp)
        moment = datetime.fromisoformat(stamp or "")
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError):
        return float("-inf")
