"""The history of changes: who changed which record when, from what source, and which fields. Never a value of them."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from memorizz.entries import NOT_HASHED, moment, row, version_hash
from memorizz.errors import ProviderError
from memorizz.ports import Clock, NewId, random_id, stamp, system_clock
from memorizz.records import Record, field, payload
from memorizz.taxonomy import CONTEXT_PREFIX, HISTORY_CHANGE, HISTORY_HEAD, HISTORY_PREFIX, MemoryType
from memorizz.timeline import TimelinePage, timeline

if TYPE_CHECKING:
    from memorizz.providers.base import MemoryProvider

LABEL_LENGTH: Final = 160
_LABELS: Final = ("name", "title", "tool_name", "role")
_PARENTS: Final = {
    "supersedes": "supersedes",
    "supersedes_id": "supersedes",
    "duplicate_of": "duplicate_of",
    "derived_from": "derived_from",
    "source_message_ids": "summarizes",
}
_COARSE: Final = timedelta(seconds=1)
_log = logging.getLogger("memorizz.history")


class ChangeContext(NamedTuple):
    """To whom and what the changes inside a block are attributed; ``None`` where nothing is said."""

    actor: str | None = None
    initiator: str | None = None
    source: str | None = None
    source_ref: str | None = None
    agent_id: str | None = None
    thread_id: str | None = None
    run_id: str | None = None
    turn_id: str | None = None
    root_trace_id: str | None = None
    label: str | None = None


_NOTHING: Final = ChangeContext()
_context: ContextVar[ChangeContext] = ContextVar("memorizz_change_context", default=_NOTHING)


@contextmanager
def memory_change_context(
    *,
    actor: str | None = None,
    initiator: str | None = None,
    source: str | None = None,
    source_ref: str | None = None,
    agent_id: str | None = None,
    thread_id: str | None = None,
    run_id: str | None = None,
    turn_id: str | None = None,
    root_trace_id: str | None = None,
    label: str | None = None,
) -> Iterator[ChangeContext]:
    """Attribute the changes that this thread or task makes inside the block.

    Inside another such block, what is not given is taken from that one; a block that names another actor has the outer
    one's initiator, or else its actor, for an initiator. A thread that is started inside the block does not inherit
    it, unless it runs in a copy of the context (``contextvars.copy_context().run``).

    ``actor`` is who writes, ``initiator`` on whose behalf, ``source`` what kind of writer that is, ``source_ref``
    which one. ``agent_id`` and ``thread_id`` count only for records that have none of their own. ``label`` names the
    change in a few words instead of the record's name.
    """
    outer = _context.get()
    if actor is not None and initiator is None and outer.actor not in (None, actor):
        initiator = outer.initiator or outer.actor
    given = ChangeContext(
        actor, initiator, source, source_ref, agent_id, thread_id, run_id, turn_id, root_trace_id, label
    )
    inner = ChangeContext(*(mine if mine is not None else its for mine, its in zip(given, outer, strict=True)))
    token = _context.set(inner)
    try:
        yield inner
    finally:
        _context.reset(token)


class MemoryHistory:
    """The history of one provider's records: reads it and, with ``record_changes``, writes it.

    A change is written after it was made, in the same transaction where the provider is inside one. If the entry
    cannot be written the change stays, an error in the log names it, and the record's next entry has ``history_gap``.
    """

    def __init__(
        self,
        provider: MemoryProvider,
        record_changes: bool = False,
        *,
        clock: Clock = system_clock,
        new_id: NewId = random_id,
    ) -> None:
        self._provider = provider
        self._clock = clock
        self._new_id = new_id
        if record_changes:
            provider.recorder = self

    def record(self, operation: str, store: MemoryType, id: str, before: Record | None, after: Record | None) -> None:
        """Write the entry of a change that was made: the record as it was and as it is, ``None`` where there is none.

        Never raises for a history that cannot be written. Entries of the history and of captured context have none
        themselves.
        """
        subject = after if after is not None else before
        if subject is None or _is_entry(subject):
            return
        try:
            with self._provider.transaction():
                self._write(operation, store, id, before, after)
        except (ProviderError, TypeError, ValueError, RecursionError) as error:
            # The change is made, and its caller must learn so; a history that lacks it says so itself, by its gap.
            _log.error("%s: the change of %r by %s is missing from the history: %s", store, id, operation, error)

    def timeline(self, **filters: Any) -> TimelinePage:
        """A page of the history, newest first: see :func:`memorizz.timeline.timeline`."""
        return timeline(self._provider, **filters)

    def _write(self, operation: str, store: MemoryType, id: str, before: Record | None, after: Record | None) -> None:
        head_id = _head_id(store, id)
        stored_head = self._provider.get(MemoryType.SHARED_MEMORY, head_id)
        head = {} if stored_head is None else payload(stored_head)
        event = _event(operation, store, id, before, after)
        time = self._time(head)
        event |= {
            "record_id": f"mem-change-{self._new_id()}",
            "timestamp": time,
            "created_at": time,
            "updated_at": time,
            "previous_event_id": head.get("event_id"),
            # Something wrote without an entry: the record differs from what the last entry left.
            "history_gap": head.get("version_hash") != event["before_hash"],
        }
        change = row(event) | {
            "history_memory_type": store.value,
            "history_action": event["action"],
            "history_actor": event["actor"],
        }
        cursor = row(_head(head_id, event, head.get("created_at") or time))
        cursor["timestamp"] = time
        rows = [(change["_id"], change), (head_id, cursor)]
        self._provider.put(MemoryType.SHARED_MEMORY, rows, replace=True)

    def _time(self, head: Mapping[str, Any]) -> str:
        """The time, but after the record's last entry where the clock is only too coarse to tell them apart."""
        time, last = self._clock(), moment(head.get("updated_at"))
        if last is not None and timedelta(0) <= last - time < _COARSE:
            time = last + timedelta(microseconds=1)
        return stamp(time)


def enable_memory_history(
    provider: MemoryProvider, *, clock: Clock = system_clock, new_id: NewId = random_id
) -> MemoryHistory:
    """Write the history of a provider's changes from here on; a provider that does so already keeps what it has."""
    if isinstance(provider.recorder, MemoryHistory):
        return provider.recorder
    return MemoryHistory(provider, record_changes=True, clock=clock, new_id=new_id)


def _is_entry(record: Mapping[str, Any]) -> bool:
    kind = field(record, "record_type")
    return isinstance(kind, str) and kind.startswith((HISTORY_PREFIX, CONTEXT_PREFIX))


def _event(operation: str, store: MemoryType, id: str, before: Record | None, after: Record | None) -> Record:
    """The part of an entry that follows from the change and who made it."""
    context = _context.get()
    subject = after if after is not None else before or {}
    changes = _field_changes(before or {}, after or {})
    imported = "archive_import" if operation == "archive_import" else None
    # An agent is not known to write itself, nor the owner of a record to have imported it.
    owner = subject.get("agent_id") or subject.get("owner_agent_id")
    writer = None if imported or store is MemoryType.MEMAGENT else owner
    return {
        "record_type": HISTORY_CHANGE,
        "schema_version": 1,
        "agent_id": owner or context.agent_id,
        "memory_id": subject.get("memory_id"),
        "thread_id": subject.get("thread_id") or context.thread_id,
        # A tenant reads the entries of its own records, whoever wrote them.
        "user_id": subject.get("user_id"),
        "application_id": subject.get("application_id"),
        "run_id": context.run_id or subject.get("run_id"),
        "turn_id": context.turn_id or subject.get("turn_id"),
        "root_trace_id": context.root_trace_id or subject.get("root_trace_id"),
        "target_record_id": id,
        "memory_type": store.value,
        "action": "created" if before is None else "deleted" if after is None else "updated",
        "operation": operation,
        "actor": context.actor or writer,
        "initiator": context.initiator,
        "source": context.source or imported,
        "source_ref": context.source_ref,
        "attribution": "host_asserted" if context.actor else "record_metadata" if writer else "unknown",
        "before_hash": version_hash(before),
        "after_hash": version_hash(after),
        "changed_fields": sorted(changes),
        "field_changes": changes,
        "parents": _parents(subject),
        "label": _label(store, subject, context.label),
        "content_stored": False,
    }


def _field_changes(before: Record, after: Record) -> dict[str, str]:
    changes = {}
    for name in sorted((before.keys() | after.keys()) - NOT_HASHED):
        if name not in before:
            changes[name] = "added"
        elif name not in after:
            changes[name] = "removed"
        elif before[name] != after[name]:
            changes[name] = "modified"
    return changes


def _parents(record: Record) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for name, relation in _PARENTS.items():
        value = record.get(name)
        for parent in value if isinstance(value, list) else [value]:
            if isinstance(parent, str) and parent:
                link = {"record_id": parent, "relation": relation}
                found += [] if link in found else [link]
    return found


def _label(store: MemoryType, record: Record, given: str | None) -> str:
    candidates = [given, *(record.get(name) for name in _LABELS)]
    label = next((text for text in candidates if isinstance(text, str) and text), store.value.replace("_", " "))
    return label[:LABEL_LENGTH]


def _head_id(store: MemoryType, id: str) -> str:
    """The id of the cursor that holds a record's last entry: the same in every program that writes the history."""
    identity = json.dumps([f"MemoryType.{store.name}", id])
    return f"mem-head-{hashlib.sha256(identity.encode()).hexdigest()[:32]}"


def _head(id: str, event: Mapping[str, Any], created_at: str) -> Record:
    names = ("agent_id", "application_id", "memory_id", "root_trace_id", "run_id", "thread_id", "turn_id", "user_id")
    return {name: event[name] for name in names} | {
        "record_id": id,
        "record_type": HISTORY_HEAD,
        "schema_version": 1,
        "target_record_id": event["target_record_id"],
        "event_id": event["record_id"],
        "version_hash": event["after_hash"],
        "created_at": created_at,
        "updated_at": event["timestamp"],
    }
