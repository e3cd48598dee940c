"""Shared memory: sessions in which agents work together over a blackboard."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from memorizz.checks import Text, check, invalid
from memorizz.errors import ProviderFault
from memorizz.history import memory_change_context
from memorizz.records import Record, payload
from memorizz.stores.base import Records, Store
from memorizz.taxonomy import CONTEXT_PREFIX, HISTORY_PREFIX, MemoryType

_SOURCE: Final = "shared-memory:blackboard"
_TRIES: Final = 1000
_CONTENT: Final = {
    "root_agent_id": Text,
    "delegate_agent_ids": list[str],
    "sub_agent_ids": list[str],
    "workflow_id": str | None,
    "trace_id": str | None,
    "status": Text,
}


class SharedMemory(Store):
    """Sessions by physical id, which is their namespace as well.

    The record of a session has ``owner_agent_id``, ``scope``, ``user_id`` and, as JSON text in ``content``, the
    session itself: ``version``, ``root_agent_id``, ``delegate_agent_ids``, ``sub_agent_ids``, ``blackboard``,
    ``status`` (``active`` or ``completed``), ``workflow_id``, ``user_id``, ``trace_id``, ``revision``, ``outcome``,
    ``counts``, ``created_at``, ``updated_at``. Every change of the session makes ``revision`` one more. An entry of
    the blackboard is ``{memory_id, agent_id, content, entry_type, created_at}``.

    Entries of the change history and captured context, which are kept beside the sessions, are not seen here.
    """

    memory_type = MemoryType.SHARED_MEMORY
    types: ClassVar = {"owner_agent_id": Text, "scope": str, "access_list": list[str] | None}
    defaults: ClassVar = {"scope": "private", "memory_type": MemoryType.SHARED_MEMORY.value}

    def create(
        self,
        root_agent_id: str,
        delegate_agent_ids: Sequence[str] = (),
        *,
        sub_agent_ids: Sequence[str] = (),
        workflow_id: str | None = None,
        trace_id: str | None = None,
        access_list: Sequence[str] | None = None,
        **fields: Any,
    ) -> str:
        """Begin a session of a root agent with its delegates, and return its id.

        Raises:
            InvalidRecord: A field breaks its rule.
            RecordExists: Its ``_id`` is taken.
        """
        id = fields.get("_id") or self._new_id()
        prepared, _ = self._prepared({"owner_agent_id": root_agent_id, **fields, "_id": id})
        time = self._now()
        session: Record = {
            "version": 1,
            "root_agent_id": root_agent_id,
            "delegate_agent_ids": list(delegate_agent_ids),
            "sub_agent_ids": list(sub_agent_ids),
            "blackboard": [],
            "created_at": time,
            "updated_at": time,
            "status": "active",
            "workflow_id": workflow_id,
            "user_id": prepared.get("user_id"),
            "trace_id": trace_id,
            "revision": 0,
            "outcome": None,
            "counts": {},
        }
        check(self.memory_type, id, session, _CONTENT)
        row = {"memory_id": id, "content": json.dumps(session), "owner_agent_id": root_agent_id, **fields, "_id": id}
        if access_list is not None:
            row["access_list"] = list(access_list)
        return self._create(row)

    def session(self, id: str) -> Record | None:
        """What stands in the ``content`` of a session, or ``None`` when this scope sees none of that id."""
        record = self.get(id)
        return None if record is None else _content(record)

    def entries(self, id: str, *, agent_id: str | None = None, entry_type: str | None = None) -> Records:
        """The entries of a session's blackboard, the oldest first; none where this scope sees no such session."""
        return [
            entry
            for entry in (self.session(id) or {}).get("blackboard", [])
            if agent_id in (None, entry.get("agent_id")) and entry_type in (None, entry.get("entry_type"))
        ]

    def post(self, id: str, agent_id: str, content: Any, *, entry_type: str = "result") -> str | None:
        """Write an entry on the blackboard and return its id, or ``None`` when this scope sees no such session.

        Of several that post at once every one succeeds. The change is attributed to the agent.

        Raises:
            InvalidRecord: The session is completed, the agent takes no part in it, or the entry is not JSON data.
        """
        entry = {
            "memory_id": self._new_id(),
            "agent_id": agent_id,
            "content": content,
            "entry_type": entry_type,
            "created_at": self._now(),
        }
        check(self.memory_type, id, entry, {"agent_id": Text, "entry_type": Text})

        def posted(record: Record, session: Record) -> Record:
            members = _members(record, session)
            if agent_id not in members:
                raise invalid(self.memory_type, id, "agent_id", f"one of {', '.join(sorted(members))}", agent_id)
            return {"blackboard": [*session.get("blackboard", []), entry]}

        with memory_change_context(actor=agent_id, source=_SOURCE, label=f"Shared {entry_type}"):
            return str(entry["memory_id"]) if self._revise(id, posted) else None

    def complete(self, id: str, outcome: Any = None) -> bool:
        """End a session, after which nobody posts; whether this scope sees one of that id.

        Raises:
            InvalidRecord: It is completed, or the outcome is not JSON data.
        """
        return self._revise(id, lambda _record, _session: {"status": "completed", "outcome": outcome})

    def compare_and_swap(self, id: str, expected_revision: int, changes: Mapping[str, Any]) -> bool:
        """Set fields of a session if its revision is the expected one; whether it was and this scope sees one.

        Raises:
            InvalidRecord: A field breaks its rule or is not JSON data, or the session is not this user's to change.
        """
        record = self._owned(id)
        return record is not None and self._swap(record, expected_revision, _content(record), changes)

    def _revise(self, id: str, change: Any) -> bool:
        """Change an active session as it is then: again when somebody else was faster."""
        for _ in range(_TRIES):
            record = self._owned(id)
            if record is None:
                return False
            session = _content(record)
            if session.get("status") == "completed":
                raise invalid(self.memory_type, id, "status", "active", "completed")
            if self._swap(record, session.get("revision", 0), session, change(record, session)):
                return True
        raise ProviderFault(f"{self.memory_type}: {id!r}: others changed the session {_TRIES} times in a row")

    def _swap(self, record: Record, expected: int, session: Record, changes: Mapping[str, Any]) -> bool:
        check(self.memory_type, record["_id"], changes, _CONTENT)
        next_session = {**session, **changes, "revision": expected + 1, "updated_at": self._now()}
        try:
            content = json.dumps(next_session, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise invalid(self.memory_type, record["_id"], "content", f"JSON data, but: {error}", changes) from None
        return self.provider.compare_and_swap_shared_memory(record["_id"], expected, {"content": content})

    def _check_changes(self, record: Record, changes: Mapping[str, Any]) -> None:
        if "content" in changes:
            raise invalid(self.memory_type, record["_id"], "content", "changed by its revision", "an update")
        super()._check_changes(record, changes)

    def _sees(self, record: Record) -> bool:
        kind = payload(record).get("record_type")
        is_entry = isinstance(kind, str) and kind.startswith((HISTORY_PREFIX, CONTEXT_PREFIX))
        return not is_entry and super()._sees(record)


def _content(record: Record) -> Record:
    """The session in a record: JSON text, or an object where an archive was restored."""
    content = record.get("content")
    if isinstance(content, str):
        try:
            content = json.loads(content)
        except (ValueError, RecursionError):
            content = None
    if not isinstance(content, dict):
        raise invalid(MemoryType.SHARED_MEMORY, record["_id"], "content", "a session as JSON", record.get("content"))
    return content


def _members(record: Record, session: Record) -> set[str]:
    named = [session.get("root_agent_id"), record.get("owner_agent_id")]
    for group in (session.get("delegate_agent_ids"), session.get("sub_agent_ids"), record.get("access_list")):
        named += group or []
    return {name for name in named if isinstance(name, str)}
