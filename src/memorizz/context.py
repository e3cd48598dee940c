"""Captured context: what an agent's model was shown, and other observations, kept beside the memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from memorizz.checks import Count, Text, check, invalid
from memorizz.entries import moment, row, scan
from memorizz.ports import Clock, NewId, random_id, stamp, system_clock
from memorizz.providers.base import UNSET, UserScope
from memorizz.records import Record, payload
from memorizz.taxonomy import CONTEXT_PREFIX, CONTEXT_SNAPSHOT, MemoryType

if TYPE_CHECKING:
    from memorizz.providers.base import MemoryProvider

Records: TypeAlias = list[Record]

_STORE: Final = MemoryType.SHARED_MEMORY
_TYPES: Final = {
    "span_id": Text,
    "model": str | None,
    "window_tokens": Count | None,
    "iteration": Count | None,
    "stage": str | None,
    "estimated_tokens": Count | None,
    "messages": list[dict[str, Any]],
    "tools": list[Any],
    "memory_evidence": dict[str, Any] | list[Any] | None,
    **dict.fromkeys(
        ("agent_id", "memory_id", "thread_id", "user_id", "application_id", "run_id", "turn_id", "root_trace_id"),
        str | None,
    ),
}


class ContextSnapshots:
    """The captured context of one provider.

    An observation is the payload of its entry: ``record_id``, ``record_type``, whose it is (``agent_id``,
    ``memory_id``, ``thread_id``, ``user_id``, ``application_id``, ``run_id``, ``turn_id``, ``root_trace_id``) and what
    was seen. Changes of observations are not part of the change history.
    """

    def __init__(self, provider: MemoryProvider, *, clock: Clock = system_clock, new_id: NewId = random_id) -> None:
        self._provider = provider
        self._clock = clock
        self._new_id = new_id

    def capture(
        self,
        span_id: str,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Any] = (),
        model: str | None = None,
        window_tokens: int | None = None,
        estimated_tokens: int | None = None,
        iteration: int | None = None,
        stage: str | None = None,
        capture_boundary: str = "model_input",
        memory_evidence: Any = None,
        **identity: str | None,
    ) -> str:
        """Keep what one call of a model was shown, and return its id, ``ctx-<span_id>``.

        ``identity`` says whose it is, see the class. ``memory_evidence`` says which memories the messages rest on.

        Raises:
            InvalidRecord: A value is of the wrong kind, or no JSON.
            RecordExists: The span has a snapshot.
        """
        shown, offered = [dict(message) for message in messages], list(tools)
        seen = {
            "span_id": span_id,
            "model": model,
            "window_tokens": window_tokens,
            "iteration": iteration,
            "stage": stage,
            "estimated_tokens": estimated_tokens,
            "message_count": len(shown),
            "tool_count": len(offered),
            "capture_boundary": capture_boundary,
            "messages": shown,
            "tools": offered,
            "memory_evidence": {} if memory_evidence is None else memory_evidence,
        }
        return self.observe(CONTEXT_SNAPSHOT, {**identity, **seen}, id=f"ctx-{span_id}")

    def observe(self, record_type: str, observation: Mapping[str, Any], *, id: str | None = None) -> str:
        """Keep an observation of any kind, such as ``observability_feedback``, and return its id.

        Raises:
            InvalidRecord: The kind does not begin with ``observability_``, or a value is of the wrong kind or no JSON.
            RecordExists: An observation of that id is there already.
        """
        if not record_type.startswith(CONTEXT_PREFIX) or record_type == CONTEXT_PREFIX:
            raise invalid(_STORE, id, "record_type", f"a name that begins with {CONTEXT_PREFIX}", record_type)
        id = id or f"{record_type.removeprefix(CONTEXT_PREFIX).replace('_', '-')}-{self._new_id()}"
        time = stamp(self._clock())
        entry: Record = {"timestamp": time, "created_at": time, "updated_at": time, "schema_version": 1, **observation}
        check(_STORE, id, entry, _TYPES)
        entry |= {"record_id": id, "record_type": record_type}
        try:
            kept = row(entry)
        except (TypeError, ValueError, RecursionError) as error:
            raise invalid(_STORE, id, "the observation", f"JSON data, but: {error}", record_type) from None
        self._provider.put(_STORE, [(id, kept)])
        return id

    def get(self, id: str) -> Record | None:
        """The observation of that id, or the snapshot of that span, or ``None``."""
        for candidate in (id, f"ctx-{id}"):
            found = self._provider.get(_STORE, candidate)
            entry = None if found is None else payload(found)
            if entry is not None and str(entry.get("record_type")).startswith(CONTEXT_PREFIX):
                return dict(entry)
        return None

    def list(
        self, *, record_type: str | None = CONTEXT_SNAPSHOT, user_id: UserScope = UNSET, **identity: str
    ) -> Records:
        """The observations of a kind (``None`` for all kinds) that are of that user and identity, the oldest first."""
        wanted: dict[str, str | None] = {**identity}
        if user_id is not UNSET:
            wanted["user_id"] = user_id
        found = [
            entry
            for entry in scan(self._provider, record_type or CONTEXT_PREFIX)
            if record_type in (None, entry["record_type"])
            and all(entry.get(name) == value for name, value in wanted.items())
        ]
        return sorted(found, key=_time)


def _time(entry: Record) -> tuple[float, str]:
    time = moment(entry.get("timestamp"))
    return (0.0 if time is None else time.timestamp()), str(entry.get("record_id"))
