"""Rows of the ``memory_links`` table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

import apsw

from agent_memory.domain.links import MAX_EXPANDED_LINKS, Direction, Edge, LinkKind, Related, snippet
from agent_memory.store.memories import CorruptRow, load_tags, load_type

_SOUND: Final = "from_id IN (SELECT id FROM memories) AND to_id IN (SELECT id FROM memories)"


def insert(connection: apsw.Connection, edge: Edge, created_at: int) -> bool:
    """Add the relation as stored. False when it exists, which keeps its creation time."""
    connection.execute(
        "INSERT OR IGNORE INTO memory_links(from_id, to_id, kind, created_at) VALUES (?, ?, ?, ?)",
        (edge.from_id, edge.to_id, edge.kind.value, created_at),
    )
    return connection.changes() > 0


def ascending(connection: apsw.Connection) -> Iterator[tuple[Edge, int]]:
    """Every relation as stored and its creation time, by from, to and kind, read as it is asked for.

    What leads to no memory, as programs that do not check foreign keys can leave it, is no relation.
    """
    for from_id, to_id, kind, created_at in connection.execute(
        f"SELECT from_id, to_id, kind, created_at FROM memory_links WHERE {_SOUND} ORDER BY from_id, to_id, kind"
    ):
        if not isinstance(created_at, int):
            raise CorruptRow(f"a link of memory {from_id} was made at {created_at!r}")
        yield Edge(from_id, to_id, _kind(from_id, kind)), created_at


def count(connection: apsw.Connection) -> tuple[int, int]:
    """How many relations there are, and how many more lead to no memory."""
    sound, all_of_them = connection.execute(f"SELECT count(*) FILTER (WHERE {_SOUND}), count(*) FROM memory_links").get
    return sound, all_of_them - sound


def delete(connection: apsw.Connection, edge: Edge) -> bool:
    """Remove the relation as stored. False when there was none."""
    connection.execute(
        "DELETE FROM memory_links WHERE from_id = ? AND to_id = ? AND kind = ?",
        (edge.from_id, edge.to_id, edge.kind.value),
    )
    return connection.changes() > 0


def related(connection: apsw.Connection, ids: Sequence[int]) -> dict[int, tuple[Related, ...]]:
    """The neighbours of each of ``ids``: at most ten, the newest relations first, equal ages by neighbour id."""
    found: dict[int, list[Related]] = {memory_id: [] for memory_id in ids}
    rows = connection.execute(
        """WITH wanted(id) AS (SELECT value FROM json_each(:ids)),
        edges AS (
            SELECT from_id AS id, to_id AS other, kind, 'out' AS direction, created_at
            FROM memory_links WHERE from_id IN (SELECT id FROM wanted)
            UNION ALL
            SELECT to_id, from_id, kind, 'in', created_at
            FROM memory_links WHERE to_id IN (SELECT id FROM wanted)
        ),
        ranked AS (
            SELECT *, row_number() OVER (
                PARTITION BY id ORDER BY created_at DESC, other, kind, direction DESC
            ) AS place FROM edges
        )
        SELECT r.id, r.other, r.kind, r.direction, m.mem_type, m.content, m.tags
        FROM ranked r JOIN memories m ON m.id = r.other
        WHERE r.place <= :most ORDER BY r.id, r.place""",
        {"ids": json.dumps(list(ids)), "most": MAX_EXPANDED_LINKS},
    )
    for memory_id, other, kind, direction, mem_type, content, tags in list(rows):
        found[memory_id].append(
            Related(
                id=other,
                kind=_label(memory_id, kind, direction),
                direction=direction,
                type=load_type(other, mem_type),
                snippet=snippet(content),
                tags=load_tags(other, tags),
            )
        )
    return {memory_id: tuple(neighbours) for memory_id, neighbours in found.items()}


def _label(memory_id: int, stored: str, direction: Direction) -> str:
    return _kind(memory_id, stored).label(direction)


def _kind(memory_id: int, stored: str) -> LinkKind:
    try:
        return LinkKind(stored)
    except ValueError:
        raise CorruptRow(f"a link of memory {memory_id} has the unknown kind {stored!r}") from None
