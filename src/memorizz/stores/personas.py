"""Personas: who an agent is."""

from __future__ import annotations

from typing import Any, ClassVar

from memorizz.checks import Count, Text
from memorizz.records import Record
from memorizz.stores.base import Store
from memorizz.taxonomy import MemoryType


class Persona(Store):
    """Personas by ``persona_id``. Agents refer to them; a named user reads those of nobody as well.

    A record has ``name``, ``role``, ``goals``, ``background``, ``version`` and ``evolution_history``, which names for
    each version after the first the fields that changed and the time.
    """

    memory_type = MemoryType.PERSONAS
    shared_with_users = True
    types: ClassVar = {
        "name": Text,
        "role": str | None,
        "goals": str | list[str] | None,
        "background": str | None,
        "version": Count,
        "evolution_history": list[Any],
    }
    defaults: ClassVar = {"version": 1, "evolution_history": []}
    times = ("timestamp", "created_at", "updated_at")

    def create(
        self,
        name: str,
        *,
        role: str | None = None,
        goals: str | list[str] | None = None,
        background: str | None = None,
        **fields: Any,
    ) -> str:
        """Keep a persona and return its id.

        Raises:
            InvalidRecord: A field breaks its rule.
            RecordExists: Its ``persona_id`` is taken.
        """
        return self._create({"name": name, "role": role, "goals": goals, "background": background, **fields})

    def _change(self, record: Record, changes: Any) -> bool:
        changed = sorted(name for name, value in changes.items() if record.get(name) != value)
        if changed and "version" not in changes:
            version = int(record.get("version") or 1) + 1
            step = {"version": version, "changed_fields": changed, "updated_at": self._now()}
            history = [*(record.get("evolution_history") or []), step]
            changes = {"evolution_history": history, **changes, "version": version}
        return super()._change(record, changes)
