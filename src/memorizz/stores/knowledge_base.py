"""The knowledge base: facts and documents in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final, Literal

from memorizz.checks import Count, Text, check, invalid
from memorizz.stores.base import Store
from memorizz.taxonomy import MemoryType

_INHERITED: Final = (
    "memory_id",
    "agent_id",
    "user_id",
    "application_id",
    "thread_id",
    "namespace",
    "knowledge_base_id",
    "metadata",
)


class KnowledgeBase(Store):
    """Knowledge by physical id. A named user reads that of nobody as well.

    A correction is a record of its own that ``supersedes`` the old one; the old one stays, with ``status``
    ``superseded``, ``superseded_by``, ``superseded_at`` and ``supersede_reason``. A document is a number of chunks
    with one ``knowledge_base_id``.
    """

    memory_type = MemoryType.KNOWLEDGE_BASE
    shared_with_users = True
    types: ClassVar = {
        "content": Text,
        "status": Literal["active", "superseded"],
        "supersedes": str | None,
        "superseded_by": str | None,
        "knowledge_base_id": str | None,
        "namespace": str | None,
        "chunk_index": Count,
        "chunk_count": Count,
        "chunking_strategy": str | None,
        "metadata": dict[str, Any] | None,
    }
    defaults: ClassVar = {"status": "active"}
    times = ("timestamp", "created_at")

    def create(self, content: str, **fields: Any) -> str:
        """Keep a piece of knowledge and return its id.

        Raises:
            InvalidRecord: A field breaks its rule.
            RecordExists: Its ``_id`` is taken.
        """
        return self._create({"content": content, **fields})

    def create_chunks(
        self,
        knowledge_base_id: str,
        chunks: Sequence[str],
        *,
        namespace: str | None = None,
        strategy: str = "given",
        **fields: Any,
    ) -> list[str]:
        """Keep a document that was cut into chunks, all of them or none where the provider can, and return their ids.

        Raises:
            InvalidRecord: A field breaks its rule; nothing was written.
        """
        check(
            self.memory_type, knowledge_base_id, {"knowledge_base_id": knowledge_base_id}, {"knowledge_base_id": Text}
        )
        if "_id" in fields:
            raise invalid(self.memory_type, knowledge_base_id, "_id", "left out: each chunk has its own", fields["_id"])
        shared = {
            "knowledge_base_id": knowledge_base_id,
            "namespace": namespace,
            "chunk_count": len(chunks),
            "chunking_strategy": strategy,
            **fields,
        }
        rows = [self._prepared({"content": text, "chunk_index": at, **shared})[0] for at, text in enumerate(chunks)]
        return self.provider.store_many(rows, self.memory_type)

    def correct(self, id: str, content: str, *, reason: str | None = None, **fields: Any) -> str | None:
        """Put a corrected record in the place of one, and return the new id, or ``None`` when this scope sees none.

        The correction keeps whose the old one was; ``fields`` may say otherwise.

        Raises:
            InvalidRecord: The record was superseded already, or is not this user's to change, or a field breaks its
                rule; nothing was written.
        """
        with self._alone(), self.provider.transaction():
            old = self._owned(id)
            if old is None:
                return None
            if old.get("superseded_by"):
                said = f"active to be corrected: {old['superseded_by']!r} has taken its place"
                raise invalid(self.memory_type, id, "status", said, old.get("status"))
            kept = {name: old[name] for name in _INHERITED if old.get(name) is not None}
            # First the one that stays: should the second write fail, no knowledge is lost.
            new = self._create({**kept, "content": content, "supersedes": old["_id"], **fields})
            superseded = {"status": "superseded", "superseded_by": new, "superseded_at": self._now()}
            if reason is not None:
                superseded["supersede_reason"] = reason
            self._change(old, superseded)
        return new
