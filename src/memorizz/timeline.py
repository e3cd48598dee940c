"""Reading the history of changes, newest first, page by page."""

from __future__ import annotations

import heapq
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from agent_memory.errors import InvalidArgument, shorten
from memorizz.entries import moment, scan, version_hash
from memorizz.errors import ProviderFault
from memorizz.providers.base import UNSET, UserScope
from memorizz.records import Record
from memorizz.taxonomy import HISTORY_CHANGE, MemoryType

if TYPE_CHECKING:
    from memorizz.providers.contract import Provider

MAX_LIMIT: Final = 1000
DEFAULT_LIMIT: Final = 200
ACTIONS: Final = ("created", "updated", "deleted")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CURSOR: Final = re.compile(r"(-?[0-9]{1,20})@(.+)", re.DOTALL)
_UNREADABLE: Final = "unreadable"
_Position: TypeAlias = tuple[int, str]


class TimelinePage(NamedTuple):
    """Some changes, newest first, and the ``cursor`` of the next page, ``None`` on the last one.

    A change is the payload of its entry (``record_id``, ``timestamp``, ``action``, ``target_record_id`` and so on) and
    ``current``: whether the record as it is stored has the very content that this change left; for a deletion, whether
    it is still gone. A copy whose fields were left out or rewritten on its way has not.
    """

    changes: list[Record]
    cursor: str | None


def timeline(
    provider: Provider,
    *,
    agent_id: str | None = None,
    memory_id: str | None = None,
    run_id: str | None = None,
    memory_type: MemoryType | str | None = None,
    actor: str | None = None,
    action: str | None = None,
    application_id: str | None = None,
    user_id: UserScope = UNSET,
    limit: int = DEFAULT_LIMIT,
    cursor: str | None = None,
) -> TimelinePage:
    """The changes that fit every filter given. ``user_id=None`` stands for the records of nobody.

    A cursor goes on behind the last change of its page: changes made meanwhile are newer and move nothing. Changes of
    one moment stand in the order of their ids, and those whose entry gives no time come last.

    Raises:
        InvalidArgument: The limit is not from 1 to 1000, the action is none of ``created``, ``updated`` and
            ``deleted``, or the cursor is none.
        ValueError: There is no memory type of that name.
        ProviderFault: The storage failed.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise InvalidArgument(f"limit must be a whole number from 1 to {MAX_LIMIT} (got {limit!r})")
    if action is not None and action not in ACTIONS:
        raise InvalidArgument(f"action must be one of {', '.join(ACTIONS)} (got {shorten(repr(action))})")
    wanted = {"agent_id": agent_id, "memory_id": memory_id, "run_id": run_id, "actor": actor, "action": action}
    wanted["application_id"] = application_id
    filters: dict[str, str | None] = {name: value for name, value in wanted.items() if value is not None}
    if memory_type is not None:
        filters["memory_type"] = MemoryType.parse(memory_type).value
    if user_id is not UNSET:
        filters["user_id"] = user_id
    behind = None if cursor is None else _parse(cursor)

    with provider.snapshot():
        fitting = (
            change
            for change in scan(provider, HISTORY_CHANGE)
            if all(change.get(name) == value for name, value in filters.items())
            and (behind is None or _position(change) < behind)
        )
        found = heapq.nlargest(limit + 1, fitting, key=_position)
        page = found[:limit]
        _mark_current(provider, page)
    more = len(found) > limit
    return TimelinePage(page, _cursor(page[-1]) if more else None)


def _position(change: Record) -> _Position:
    time = moment(change.get("timestamp"))
    id = change.get("record_id")
    # The last of all, yet a time that a cursor can hold.
    micros = -(10**18) if time is None else (time - _EPOCH) // timedelta(microseconds=1)
    return micros, id if isinstance(id, str) else ""


def _cursor(change: Record) -> str:
    micros, id = _position(change)
    return f"{micros}@{id}"


def _parse(cursor: str) -> _Position:
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise InvalidArgument(f"cursor must be one that a page of the timeline gave (got {shorten(repr(cursor))})")
    return int(found[1]), found[2]


def _mark_current(provider: Provider, changes: list[Record]) -> None:
    hashes: dict[tuple[str, str], str | None] = {}
    for change in changes:
        target = str(change.get("memory_type")), str(change.get("target_record_id"))
        if target not in hashes:
            hashes[target] = _stored_hash(provider, *target)
        change["current"] = hashes[target] == change.get("after_hash")


def _stored_hash(provider: Provider, memory_type: str, id: str) -> str | None:
    """The version that is stored, or ``None`` when there is no such record. A restored one has its natural id."""
    if memory_type not in set(MemoryType):
        return None
    store = MemoryType(memory_type)
    try:
        record = provider.get(store, id)
        if record is None:
            physical = provider.find(store, [id]).get(id)
            record = None if physical is None else provider.get(store, physical)
    except ProviderFault:
        # One record that cannot be read is no version; where nothing can be, the journal could not be either.
        return _UNREADABLE
    return version_hash(record)
