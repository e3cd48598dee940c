"""Rows of the ``vec_memories`` table: one unit of 768 float32 a memory, compared by cosine."""

from __future__ import annotations

from typing import Final

import apsw

from agent_memory.domain.memory import Filters
from agent_memory.store.memories import FILTER_SQL, filter_bindings

MAX_NEIGHBOURS: Final = 4096


def put(connection: apsw.Connection, memory_id: int, vector: bytes) -> None:
    """Store ``vector`` (768 little-endian float32) as the only one of ``memory_id``."""
    delete(connection, memory_id)
    connection.execute("INSERT INTO vec_memories(memory_id, embedding) VALUES (?, ?)", (memory_id, vector))


def delete(connection: apsw.Connection, memory_id: int) -> None:
    """Remove the vector of ``memory_id``, if it has one."""
    connection.execute("DELETE FROM vec_memories WHERE memory_id = ?", (memory_id,))


def delete_orphans(connection: apsw.Connection) -> int:
    """Remove the vectors that belong to no memory and return how many there were."""
    orphans = [
        row[0]
        for row in connection.execute(
            "SELECT rowid FROM vec_memories_rowids WHERE rowid NOT IN (SELECT id FROM memories)"
        )
    ]
    for memory_id in orphans:
        delete(connection, memory_id)
    return len(orphans)


def nearest(connection: apsw.Connection, vector: bytes, filters: Filters, count: int) -> list[int]:
    """Up to ``count`` ids by ascending cosine distance to ``vector``, equal distances by ascending id.

    Filters act before the cut, so a filtered search still fills its places. A vector that does not match its
    memory's content (a pending re-embed) is left out, and so is one without a direction.
    """
    allowed = ""
    bindings = {"vector": vector, "count": min(count, MAX_NEIGHBOURS)}
    if filters:
        allowed = f"AND v.memory_id IN (SELECT m.id FROM memories m WHERE {FILTER_SQL})"
        bindings.update(filter_bindings(filters))
    rows = connection.execute(
        f"""WITH near AS MATERIALIZED (
                SELECT v.memory_id, v.distance FROM vec_memories v
                WHERE v.embedding MATCH :vector AND v.k = :count {allowed}
            )
            SELECT near.memory_id FROM near JOIN memories m ON m.id = near.memory_id
            WHERE near.distance IS NOT NULL AND m.embedding_status = 1
            ORDER BY near.distance, near.memory_id""",
        bindings,
    )
    return [row[0] for row in rows]
