"""Entries of the change history and of captured context, as rows of the shared memory.

An entry is a JSON object, its payload, held as text in the row's ``content``. The row has the entry's id for a
namespace and repeats what it is searched by.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from memorizz.records import Record, payload
from memorizz.taxonomy import MemoryType

if TYPE_CHECKING:
    from memorizz.providers.contract import Provider

REPEATED: Final = (
    "record_type",
    "application_id",
    "agent_id",
    "run_id",
    "turn_id",
    "root_trace_id",
    "thread_id",
    "user_id",
    "verified",
    "status",
    "role",
    "timestamp",
)
"""What a row repeats of its payload, where that is not null."""

NOT_HASHED: Final = frozenset({"embedding", "vector", "_id", "id", "updated_at", "timestamp"})
"""The fields that make no version: derived from the others, or changed by every write and copy."""


def row(entry: Mapping[str, Any]) -> Record:
    """The row of the shared memory that holds an entry; its id is the entry's ``record_id``."""
    id = entry["record_id"]
    found: Record = {
        "_id": id,
        "memory_id": id,
        "content": json.dumps(entry, sort_keys=True),
        "memory_type": MemoryType.SHARED_MEMORY.value,
        "scope": "private",
        "owner_agent_id": entry.get("agent_id"),
    }
    found |= {name: entry[name] for name in REPEATED if entry.get(name) is not None}
    if entry.get("memory_id") is not None:
        found["trace_memory_id"] = entry["memory_id"]
    return found | {"id": id}


def scan(provider: Provider, prefix: str) -> Iterator[Record]:
    """The payloads of all entries whose ``record_type`` starts with that prefix, in the provider's order."""
    for found in provider.scan(MemoryType.SHARED_MEMORY):
        # The column spares reading the text of rows of other kinds; restored rows may lack it.
        if not str(found.get("record_type") or prefix).startswith(prefix):
            continue
        entry = payload(found)
        if entry is not found and str(entry.get("record_type")).startswith(prefix):
            yield dict(entry)


def version_hash(record: Mapping[str, Any] | None) -> str | None:
    """What tells versions of a record apart: hexadecimal SHA-256 of its fields as sorted JSON; ``None`` for no record.

    Raises:
        TypeError: A value is not JSON data.
    """
    if record is None:
        return None
    hashed = {name: value for name, value in record.items() if name not in NOT_HASHED}
    return hashlib.sha256(json.dumps(hashed, sort_keys=True).encode()).hexdigest()


def moment(value: object) -> datetime | None:
    """The time that an entry gives, ISO 8601 with or without a zone (UTC then), or ``None`` when it gives none."""
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        # The second: a zone may move a time beyond the calendar.
        return None
