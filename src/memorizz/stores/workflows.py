"""Workflows: the steps by which a task was done."""

from __future__ import annotations

from typing import Any, ClassVar

from memorizz.checks import Count, Text
from memorizz.stores.base import Store
from memorizz.taxonomy import MemoryType


class WorkflowMemory(Store):
    """Workflows by ``workflow_id``: ``name``, ``description``, ``steps`` (an object, step to what is done), the
    ``outcome`` and the ``user_query`` that set it off. ``promoted_skill_id`` names the skill made of it."""

    memory_type = MemoryType.WORKFLOW_MEMORY
    types: ClassVar = {
        "name": Text,
        "description": str | None,
        "steps": dict[str, Any],
        "outcome": str | None,
        "user_query": str | None,
        "canonical_hash": str | None,
        "canonical_signature": Any,
        "step_count": Count | None,
        "promoted_skill_id": str | None,
        "skills_activated": list[Any],
        "shadow_evaluations": list[Any],
        "origin_thread_id": str | None,
    }
    defaults: ClassVar = {
        "canonical_hash": None,
        "canonical_signature": None,
        "promoted_skill_id": None,
        "skills_activated": [],
        "shadow_evaluations": [],
    }
    times = ("timestamp", "created_at", "updated_at")

    def create(
        self,
        name: str,
        steps: dict[str, Any],
        *,
        description: str | None = None,
        outcome: str | None = None,
        user_query: str | None = None,
        **fields: Any,
    ) -> str:
        """Keep a workflow and return its id.

        Raises:
            InvalidRecord: A field breaks its rule.
            RecordExists: Its ``workflow_id`` is taken.
        """
        known = {"name": name, "steps": steps, "description": description, "outcome": outcome, "user_query": user_query}
        count = len(steps) if isinstance(steps, dict) else None
        return self._create({**known, "step_count": count, **fields})
