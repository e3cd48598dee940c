"""Entities: people, places and things with what is known of them and how they are related."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from memorizz.checks import Share, Text, check
from memorizz.records import Record
from memorizz.stores.base import Store
from memorizz.taxonomy import MemoryType


class EntityMemory(Store):
    """Entities by ``entity_id``.

    An attribute is ``{name, value, confidence, source, thread_id, pinned, history, created_at, updated_at}``; its
    history holds the earlier values, the oldest first, as ``{value, confidence, source, updated_at}``. A relation is
    ``{entity_id, relation_type, confidence, metadata}``.
    """

    memory_type = MemoryType.ENTITY_MEMORY
    types: ClassVar = {
        "name": Text,
        "entity_type": Text,
        "attributes": list[dict[str, Any]],
        "relations": list[dict[str, Any]],
        "metadata": dict[str, Any],
    }
    times = ("timestamp", "created_at", "updated_at")

    def create(
        self,
        name: str,
        entity_type: str,
        *,
        attributes: Sequence[dict[str, Any]] = (),
        relations: Sequence[dict[str, Any]] = (),
        metadata: dict[str, Any] | None = None,
        **fields: Any,
    ) -> str:
        """Keep an entity and return its id.

        Raises:
            InvalidRecord: A field breaks its rule.
            RecordExists: Its ``entity_id`` is taken.
        """
        known = {"name": name, "entity_type": entity_type, "attributes": list(attributes), "relations": list(relations)}
        return self._create({**known, "metadata": metadata or {}, **fields})

    def set_attribute(
        self,
        id: str,
        name: str,
        value: Any,
        *,
        confidence: float = 1.0,
        source: str | None = None,
        thread_id: str | None = None,
        pinned: bool = False,
    ) -> bool:
        """Set what is known of an entity under that name; the value it had goes into the attribute's history.

        Returns whether this scope sees such an entity.
        """
        time = self._now()
        found: Record = {
            "name": name,
            "value": value,
            "confidence": confidence,
            "source": source,
            "thread_id": thread_id,
            "pinned": pinned,
            "history": [],
            "created_at": time,
            "updated_at": time,
        }
        check(self.memory_type, id, found, {"name": Text, "confidence": Share, "source": str | None, "pinned": bool})
        with self._alone():
            entity = self._owned(id)
            if entity is None:
                return False
            attributes = list(entity.get("attributes") or [])
            place = next((at for at, known in enumerate(attributes) if known.get("name") == name), len(attributes))
            for old in attributes[place : place + 1]:
                earlier = {part: old.get(part) for part in ("value", "confidence", "source", "updated_at")}
                found["history"] = [*(old.get("history") or []), earlier]
                found["created_at"] = old.get("created_at") or time
            attributes[place : place + 1] = [found]
            return self._change(entity, {"attributes": attributes})

    def remove_attribute(self, id: str, name: str) -> bool:
        """Forget an attribute and its history; whether there was one."""
        return self._without(id, "attributes", {"name": name})

    def relate(
        self,
        id: str,
        entity_id: str,
        relation_type: str,
        *,
        confidence: float = 1.0,
        metadata: dict[str, Any] | None = None,
    ) -> bool:
        """Relate an entity to another, in place of a relation of that type between them.

        Returns whether this scope sees such an entity.
        """
        relation = {
            "entity_id": entity_id,
            "relation_type": relation_type,
            "confidence": confidence,
            "metadata": metadata or {},
        }
        check(self.memory_type, id, relation, {"entity_id": Text, "relation_type": Text, "confidence": Share})
        with self._alone():
            entity = self._owned(id)
            if entity is None:
                return False
            key = {"entity_id": entity_id, "relation_type": relation_type}
            others = [other for other in entity.get("relations") or [] if not _matches(other, key)]
            return self._change(entity, {"relations": [*others, relation]})

    def unrelate(self, id: str, entity_id: str, relation_type: str) -> bool:
        """Remove a relation; whether there was one."""
        return self._without(id, "relations", {"entity_id": entity_id, "relation_type": relation_type})

    def _without(self, id: str, part: str, key: dict[str, str]) -> bool:
        with self._alone():
            entity = self._owned(id)
            if entity is None:
                return False
            items = entity.get(part) or []
            left = [item for item in items if not _matches(item, key)]
            return len(left) < len(items) and self._change(entity, {part: left})


def _matches(item: Record, key: dict[str, str]) -> bool:
    return all(item.get(name) == value for name, value in key.items())
