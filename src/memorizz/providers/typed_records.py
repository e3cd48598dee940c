"""A typed memory as a record of the knowledge base, and back. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from agent_memory.domain import bounds
from agent_memory.domain.links import LinkKind
from agent_memory.domain.memory import MemoryType
from agent_memory.errors import InvalidInput, InvalidType
from memorizz.records import Record

DEFAULT_TYPE: Final = MemoryType.PATTERN
"""What a record without any of the six types becomes."""

ORIGIN: Final = "agent-memory"
_ID: Final = re.compile(r"memory-([1-9][0-9]{0,17})")


class Facts(NamedTuple):
    """What the typed memory holds of a memory. Times are unix seconds."""

    content: str
    type: str
    tags: tuple[str, ...]
    source: str | None
    scope: str | None
    created_at: int
    last_accessed: int
    access_count: int
    expires_at: int | None


class Link(NamedTuple):
    """A relation to another record, by the id of that."""

    record_id: str
    kind: str


def record_id(memory_id: int) -> str:
    """The id, as a record, of a memory that never was one."""
    return f"memory-{memory_id}"


def memory_id(id: str) -> int | None:
    """The memory whose :func:`record_id` this is, or ``None``."""
    found = _ID.fullmatch(id)
    return None if found is None else int(found[1])


def facts(record: Mapping[str, Any], now: int) -> Facts:
    """What the typed memory takes from a record; a time that is missing or none is ``now``."""
    created = _seconds(record.get("created_at"))
    created = _seconds(record.get("timestamp")) if created is None else created
    created = now if created is None else created
    used = _seconds(record.get("last_accessed"))
    count = record.get("access_count")
    scope = record.get("memory_id")
    return Facts(
        content=record["content"],
        type=_type(record),
        tags=_kept(lambda: bounds.check_tags(tuple(record.get("tags") or ())), ()),
        source=_optional(record.get("source")),
        scope=_optional(record.get("namespace") if scope is None else scope),
        created_at=created,
        last_accessed=created if used is None else used,
        access_count=count if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 2**63 else 0,
        expires_at=_seconds(record.get("expires_at")),
    )


def links(record: Mapping[str, Any]) -> list[Link]:
    """The relations that a record names, as far as the typed memory can hold them."""
    found = record.get("links")
    return [
        Link(entry["record_id"], entry["kind"])
        for entry in (found if isinstance(found, list) else ())
        if isinstance(entry, dict) and isinstance(entry.get("record_id"), str) and entry.get("kind") in set(LinkKind)
    ]


def record(id: str, held: Facts, related: Iterable[Link]) -> Record:
    """A memory as a record."""
    return {
        "_id": id,
        "id": id,
        "content": held.content,
        "memory_id": held.scope,
        "type": held.type,
        "tags": list(held.tags),
        "source": held.source,
        "created_at": _text(held.created_at),
        "timestamp": _text(held.created_at),
        "last_accessed": _text(held.last_accessed),
        "access_count": held.access_count,
        "expires_at": None if held.expires_at is None else _text(held.expires_at),
        "links": [_entry(link) for link in related],
        "origin": ORIGIN,
    }


def changed(body: Record, held: Facts, related: Iterable[Link]) -> Record:
    """The record that was stored, with what the typed memory holds differently by now.

    A time or count that the record never had stays out of it.
    """
    stored = facts(body, held.created_at)
    made = dict(body)
    for name, was, now in zip(Facts._fields, stored, held, strict=True):
        if was == now or (name in ("created_at", "last_accessed", "access_count") and name not in body):
            continue
        shown: Any = (
            _text(now) if name in ("created_at", "last_accessed", "expires_at") and isinstance(now, int) else now
        )
        made["memory_id" if name == "scope" else name] = list(shown) if name == "tags" else shown
    current = list(related)
    named = links(body)
    if set(named) != set(current):
        others = [entry for entry in body.get("links") or () if not links({"links": [entry]})]
        kept = [entry for entry in body.get("links") or () if set(links({"links": [entry]})) & set(current)]
        made["links"] = [*kept, *others, *(_entry(link) for link in current if link not in set(named))]
    return made


def _shown(name: str, value: Any) -> Any:
    if name in ("created_at", "last_accessed", "expires_at") and value is not None:
        return _text(value)
    return list(value) if name == "tags" else value


def _entry(link: Link) -> dict[str, str]:
    return {"record_id": link.record_id, "memory_type": "knowledge_base", "kind": link.kind}


def _type(record: Mapping[str, Any]) -> str:
    for name in ("type", "memory_type"):
        value = record.get(name)
        if isinstance(value, str):
            try:
                return MemoryType.parse(value).value
            except InvalidType:
                continue
    return DEFAULT_TYPE.value


def _optional(value: Any) -> str | None:
    return _kept(lambda: bounds.check_optional_text("scope", value), None) if isinstance(value, str) else None


def _kept(check: Callable[[], Any], otherwise: Any) -> Any:
    try:
        return check()
    except (InvalidInput, TypeError):
        # The typed memory cannot hold it; the record that is kept beside still does.
        return otherwise


def _seconds(value: Any) -> int | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return int(value) if -(2**40) < value < 2**40 else None
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _text(seconds: int) -> str | int:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        # An import may bring times beyond the year 9999.
        return seconds
