"""Rows of the ``memories`` table."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, Final

import apsw

from agent_memory.domain.decay import HALF_LIFE_SECS, NEGATIVE_LN_2, PINNED_HALF_LIFE_SECS, decay_score
from agent_memory.domain.memory import PINNED_TYPES, UNSET, Filters, Memory, MemoryType, NewMemory, Patch
from agent_memory.domain.transfer import Arrival
from agent_memory.store.connection import triggers_off

log = logging.getLogger(__name__)

_COLUMNS: Final = (
    "m.id, m.content, m.mem_type, m.tags, m.source, m.scope, m.access_count, m.created_at, m.last_accessed, "
    "m.expires_at, m.embedding_status"
)
_PINNED: Final = ", ".join(f"'{pinned}'" for pinned in sorted(PINNED_TYPES))
DECAY_SQL: Final = (
    f"exp({NEGATIVE_LN_2!r} * max(:now - m.last_accessed, 0) / "
    f"CASE WHEN m.mem_type IN ({_PINNED}) THEN {PINNED_HALF_LIFE_SECS}.0 ELSE {HALF_LIFE_SECS}.0 END)"
)
FILTER_SQL: Final = """(:type IS NULL OR m.mem_type = :type)
    AND (:scope IS NULL OR m.scope = :scope)
    AND (:tag IS NULL OR (json_valid(m.tags) AND EXISTS (SELECT 1 FROM json_each(m.tags) WHERE value = :tag)))"""
PINNED_WEIGHT: Final = 2.0
# SQLite would make a fraction of an integer that grows beyond 64 bits, and an import may bring any.
_ONE_MORE: Final = "min(access_count, 9223372036854775806) + 1"
_DECAY_BATCH: Final = 2_000


class CorruptRow(Exception):
    """A row holds what no version of agent-memory writes."""


def filter_bindings(filters: Filters) -> dict[str, Any]:
    """The bindings of ``FILTER_SQL``."""
    return {"type": filters.type and filters.type.value, "tag": filters.tag, "scope": filters.scope}


def insert(connection: apsw.Connection, new: NewMemory, embedding_status: int, now: int) -> int:
    """Add ``new`` and return its id; its vector is the caller's."""
    expires_at = None if new.ttl_secs is None else now + new.ttl_secs
    arrival = Arrival(new.type, new.content, new.tags, new.source, new.scope, now, 0, expires_at)
    return insert_arrival(connection, arrival, now, embedding_status)


def insert_arrival(connection: apsw.Connection, arrival: Arrival, now: int, embedding_status: int = 0) -> int:
    """Add ``arrival``, last used at ``now``, and return its id; its vector is the caller's."""
    connection.execute(
        "INSERT INTO memories(mem_type, content, tags, source, scope, base_weight, access_count, created_at, "
        "last_accessed, expires_at, embedding_status) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            arrival.type.value,
            arrival.content,
            dump_tags(arrival.tags),
            arrival.source,
            arrival.scope,
            PINNED_WEIGHT if arrival.type.pinned else 1.0,
            arrival.access_count,
            arrival.created_at,
            now,
            arrival.expires_at,
            embedding_status,
        ),
    )
    return connection.last_insert_rowid()


def get(connection: apsw.Connection, memory_id: int, now: int) -> Memory | None:
    """The memory of that id as of ``now``, or ``None`` when there is none."""
    return next(iter(by_id(connection, [memory_id], now).values()), None)


def by_id(connection: apsw.Connection, ids: Sequence[int], now: int) -> dict[int, Memory]:
    """Those of ``ids`` that exist, as of ``now``."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM memories m WHERE m.id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),)
    )
    return {row[0]: _memory(row, now) for row in list(rows)}


def decay_inputs(connection: apsw.Connection, ids: Iterable[int]) -> dict[int, tuple[int, bool]]:
    """For those of ``ids`` that exist: the time of last use, and whether the type is pinned."""
    rows = connection.execute(
        f"SELECT id, last_accessed, mem_type IN ({_PINNED}) FROM memories WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )
    return {memory_id: (last_accessed, bool(pinned)) for memory_id, last_accessed, pinned in rows}


def newest(connection: apsw.Connection, filters: Filters, limit: int | None, now: int) -> list[Memory]:
    """Memories by descending creation time, then id; all of them without a ``limit``."""
    rows = connection.execute(
        # Sorting ids alone, without the texts, is three times as fast on a large file.
        f"""SELECT {_COLUMNS} FROM (
            SELECT m.id FROM memories m WHERE {FILTER_SQL}
            ORDER BY m.created_at DESC, m.id DESC LIMIT coalesce(:limit, -1)
        ) page JOIN memories m ON m.id = page.id ORDER BY m.created_at DESC, m.id DESC""",
        {**filter_bindings(filters), "limit": limit},
    )
    return [_memory(row, now) for row in list(rows)]


def ascending(connection: apsw.Connection, now: int) -> Iterator[Memory]:
    """Every memory by ascending id, as of ``now``, read as it is asked for."""
    for row in connection.execute(f"SELECT {_COLUMNS} FROM memories m ORDER BY m.id"):
        yield _memory(row, now)


def patch(connection: apsw.Connection, memory_id: int, changes: Patch, now: int) -> None:
    """Write the fields that ``changes`` sets, in place, and count the update as a use at ``now``."""
    columns: dict[str, Any] = {"decay_score": 1.0, "last_accessed": now}
    if changes.content is not UNSET:
        columns["content"] = changes.content
    if changes.tags is not UNSET:
        columns["tags"] = dump_tags(changes.tags)
    if changes.scope is not UNSET:
        columns["scope"] = changes.scope
    if changes.ttl_secs is not UNSET:
        columns["expires_at"] = None if changes.ttl_secs is None else now + changes.ttl_secs
    assignments = ", ".join(f"{column} = :{column}" for column in columns)
    with nullcontext() if "content" in columns else triggers_off(connection):
        connection.execute(
            f"UPDATE memories SET {assignments}, access_count = {_ONE_MORE} WHERE id = :id",
            {**columns, "id": memory_id},
        )


def touch(connection: apsw.Connection, ids: Sequence[int], now: int) -> None:
    """Count one use of each of ``ids`` at ``now``."""
    with triggers_off(connection):
        connection.execute(
            # A bump may be written late: it must not undo a newer use, nor count for a later memory of that id.
            f"UPDATE memories SET last_accessed = max(last_accessed, :now), access_count = {_ONE_MORE} "
            "WHERE id IN (SELECT value FROM json_each(:ids)) AND created_at <= :now",
            {"now": now, "ids": json.dumps(list(ids))},
        )


def delete(connection: apsw.Connection, memory_id: int) -> bool:
    """Remove the row, and with it its links and full-text entry. False when there was none."""
    connection.execute("DELETE FROM memories WHERE id = ?", (memory_id,))
    return connection.changes() > 0


def delete_expired(connection: apsw.Connection, now: int) -> int:
    """Remove the memories whose expiry lies before ``now`` and return how many there were."""
    connection.execute("DELETE FROM memories WHERE expires_at < ?", (now,))
    return connection.changes()


def materialize_decay(connection: apsw.Connection, after: int, now: int) -> tuple[int, int | None]:
    """Write the decay score of the next 2,000 memories with an id above ``after``.

    Returns how many there were, and the last id to go on after, or ``None`` at the end.
    """
    last = connection.execute(
        f"SELECT max(id) FROM (SELECT id FROM memories WHERE id > ? ORDER BY id LIMIT {_DECAY_BATCH})", (after,)
    ).get
    if last is None:
        return 0, None
    with triggers_off(connection):
        connection.execute(
            f"UPDATE memories AS m SET decay_score = {DECAY_SQL} WHERE m.id > :after AND m.id <= :last",
            {"now": now, "after": after, "last": last},
        )
    return connection.changes(), last


def pending(connection: apsw.Connection, after: int, limit: int) -> list[tuple[int, str]]:
    """Id and content of up to ``limit`` memories above ``after`` that wait for their vector, lowest id first."""
    return list(
        connection.execute(
            "SELECT id, content FROM memories WHERE embedding_status = 0 AND id > ? ORDER BY id LIMIT ?", (after, limit)
        )
    )


def set_embedding_status(connection: apsw.Connection, memory_id: int, status: int) -> None:
    """Say whether the vector of ``memory_id`` matches its content."""
    with triggers_off(connection):
        connection.execute("UPDATE memories SET embedding_status = ? WHERE id = ?", (status, memory_id))


def waits_for(connection: apsw.Connection, memory_id: int, content: str) -> bool:
    """Whether ``memory_id`` still holds ``content`` and still has no vector for it."""
    return bool(
        connection.execute(
            "SELECT 1 FROM memories WHERE id = ? AND embedding_status = 0 AND content = ?", (memory_id, content)
        ).get
    )


def dump_tags(tags: Sequence[str]) -> str:
    """The stored form: a compact JSON array, characters beyond ASCII as they are."""
    return json.dumps(list(tags), ensure_ascii=False, separators=(",", ":"))


def load_tags(memory_id: int, stored: str) -> tuple[str, ...]:
    """The tags of a row. Text that is no array of strings reads as no tags, with a warning: the rest is intact."""
    try:
        tags = json.loads(stored)
    except ValueError:
        tags = None
    if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags):
        return tuple(tags)
    log.warning("memory %d has unreadable tags (%r); run `agent-memory doctor`", memory_id, stored[:80])
    return ()


def load_type(memory_id: int, stored: str) -> MemoryType:
    """The type of a row.

    Raises:
        CorruptRow: It is none of the six.
    """
    try:
        return MemoryType(stored)
    except ValueError:
        raise CorruptRow(f"memory {memory_id} has the unknown type {stored!r}") from None


_OPTIONAL_TEXT: Final = (str, type(None))
_COLUMN_TYPES: Final[tuple[type | tuple[type, ...], ...]] = (
    int,
    str,
    str,
    str,
    _OPTIONAL_TEXT,
    _OPTIONAL_TEXT,
    int,
    int,
    int,
    (int, type(None)),
    int,
)


def _memory(row: Sequence[Any], now: int) -> Memory:
    if not all(isinstance(value, kind) for value, kind in zip(row, _COLUMN_TYPES, strict=True)):
        raise CorruptRow(f"memory {row[0]} holds a value of the wrong type: {[type(value).__name__ for value in row]}")
    (
        memory_id,
        content,
        stored_type,
        tags,
        source,
        scope,
        access_count,
        created_at,
        last_accessed,
        expires_at,
        status,
    ) = row
    kind = load_type(memory_id, stored_type)
    return Memory(
        id=memory_id,
        content=content,
        type=kind,
        tags=load_tags(memory_id, tags),
        source=source,
        scope=scope,
        decay_score=decay_score(now, last_accessed, pinned=kind.pinned),
        access_count=access_count,
        created_at=created_at,
        last_accessed=last_accessed,
        expires_at=expires_at,
        embedding_status=status,
    )
