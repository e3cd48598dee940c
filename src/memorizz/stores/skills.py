"""Skills: instructions that proved themselves."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from memorizz.checks import Count, Text
from memorizz.stores.base import Store
from memorizz.taxonomy import MemoryType


class Skillbox(Store):
    """Skills by ``skill_id``: ``name``, ``description`` and the instructions, Markdown, in ``content``. A named user
    reads those of nobody as well. ``source_workflow_ids`` and ``exemplar_workflow_id`` name the workflows behind it.
    """

    memory_type = MemoryType.SKILLBOX
    shared_with_users = True
    types: ClassVar = {
        "name": Text,
        "description": str | None,
        "content": Text,
        "preconditions": list[Any],
        "tools_used": list[Any],
        "queries": list[str],
        "source_canonical_hash": str | None,
        "source_workflow_ids": list[str],
        "exemplar_workflow_id": str | None,
        "status": Text,
        "version": Count,
        "injection_role": Literal["user", "system", "assistant"],
        "baseline": dict[str, Any],
        "stats": dict[str, Any],
    }
    defaults: ClassVar = {
        "preconditions": [],
        "tools_used": [],
        "queries": [],
        "source_canonical_hash": None,
        "source_workflow_ids": [],
        "exemplar_workflow_id": None,
        "status": "candidate",
        "version": 1,
        "promoted_at": None,
        "demoted_at": None,
        "demotion_reason": None,
        "injection_role": "user",
        "baseline": {},
        "stats": {},
    }
    times = ("timestamp", "created_at", "updated_at")

    def create(self, name: str, content: str, *, description: str | None = None, **fields: Any) -> str:
        """Keep a skill and return its id.

        Raises:
            InvalidRecord: A field breaks its rule.
            RecordExists: Its ``skill_id`` is taken.
        """
        return self._create({"name": name, "content": content, "description": description, **fields})

    def promote(self, id: str) -> bool:
        """Mark a skill as active from now on; whether this scope sees one of that id."""
        return self.update(id, status="active", promoted_at=self._now())

    def demote(self, id: str, reason: str) -> bool:
        """Mark a skill as demoted and say why; whether this scope sees one of that id."""
        return self.update(id, status="demoted", demoted_at=self._now(), demotion_reason=reason)
