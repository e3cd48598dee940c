"""Conversations: messages in threads."""

from __future__ import annotations

from typing import Any, ClassVar

from memorizz.checks import Text
from memorizz.stores.base import Records, Store
from memorizz.taxonomy import MemoryType


class ConversationMemory(Store):
    """Messages by physical id: ``role``, ``content``, and the ``thread_id`` they stand in. ``summary_id`` names the
    summary that covers a message."""

    memory_type = MemoryType.CONVERSATION_MEMORY
    types: ClassVar = {
        "role": Text,
        "content": str,
        "summary_id": str | None,
        "associated_thread_ids": list[str] | None,
    }

    def create(self, role: str, content: str, *, memory_id: str, thread_id: str | None = None, **fields: Any) -> str:
        """Keep a message and return its id. ``timestamp``, when it was said, is the time of the call if not given.

        Raises:
            InvalidRecord: A field breaks its rule.
            RecordExists: Its ``_id`` is taken.
        """
        said = {"role": role, "content": content, "memory_id": memory_id, "thread_id": thread_id}
        return self._create({**said, **fields})

    def history(self, memory_id: str, *, thread_id: str | None = None, limit: int | None = None) -> Records:
        """The messages of a namespace that this scope sees, the oldest first; with ``limit`` the last so many."""
        rows = self.provider.retrieve_conversation_history_ordered_by_timestamp(memory_id, thread_id=thread_id)
        seen = [row for row in rows if self._sees(row)]
        return seen if limit is None else seen[max(0, len(seen) - limit) :]
