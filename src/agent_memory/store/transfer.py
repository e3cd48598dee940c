"""Rows that arrive from elsewhere, each added once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import apsw

from agent_memory.domain.links import Edge, LinkKind
from agent_memory.domain.transfer import Arrival, LinkOutcome
from agent_memory.store import links, memories

# 128 bits: among a million texts two that differ meet with a probability below 2^-88.
_DIGEST_BYTES: Final = 16


class Arrivals:
    """Adds memories and links inside one write transaction, whatever the file holds already.

    A memory whose source, type and content are all those of a present one is that one. What it knows of both
    stands in temporary tables, so memory use does not grow with their number.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        """Use :func:`arriving`."""
        self._connection = connection

    def add(self, arrival: Arrival, now: int, key: int | None = None) -> tuple[int, bool]:
        """The id of ``arrival``, last used at ``now`` and pending its vector, and whether it was added just now.

        Links refer to it by ``key``, which is new.
        """
        digest = _digest(
            None if arrival.source is None else arrival.source.encode(),
            arrival.type.value.encode(),
            arrival.content.encode(),
        )
        memory_id: int | None = self._connection.execute(
            "SELECT id FROM temp.known_memories WHERE digest = ?", (digest,)
        ).get
        added = memory_id is None
        if memory_id is None:
            memory_id = memories.insert_arrival(self._connection, arrival, now)
            self._connection.execute("INSERT INTO temp.known_memories VALUES (?, ?)", (digest, memory_id))
        elif key is not None and key != memory_id and self._is_at(arrival, key):
            # Of several that are the same, the one that the file was made of: its own export adds no link to another.
            memory_id = key
        if key is not None:
            self._connection.execute("INSERT INTO temp.arrived_keys VALUES (?, ?)", (key, memory_id))
        return memory_id, added

    def _is_at(self, arrival: Arrival, memory_id: int) -> bool:
        return bool(
            self._connection.execute(
                "SELECT 1 FROM memories WHERE id = ? AND mem_type = ? AND source IS ? AND content = ?",
                (memory_id, arrival.type.value, arrival.source, arrival.content),
            ).get
        )

    def link(self, from_key: int, to_key: int, kind: LinkKind, created_at: int) -> LinkOutcome:
        """Relate the memories of two keys, unless one was never added or both are one memory."""
        ids = dict(
            self._connection.execute("SELECT key, id FROM temp.arrived_keys WHERE key IN (?, ?)", (from_key, to_key))
        )
        if from_key not in ids or to_key not in ids or ids[from_key] == ids[to_key]:
            return "dropped"
        edge = Edge(ids[from_key], ids[to_key], kind).stored()
        return "imported" if links.insert(self._connection, edge, created_at) else "duplicate"


@contextmanager
def arriving(connection: apsw.Connection) -> Iterator[Arrivals]:
    """The arrivals of one import, in the transaction that is open."""
    # The stub knows only functions that take any value; this one is called with what the query below gives it.
    connection.create_scalar_function("agent_memory_digest", _digest, 3, deterministic=True)  # type: ignore[arg-type]
    connection.execute(
        """CREATE TEMP TABLE known_memories (digest BLOB PRIMARY KEY, id INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TEMP TABLE arrived_keys (key INTEGER PRIMARY KEY, id INTEGER NOT NULL)"""
    )
    try:
        # As bytes: a text that is no valid UTF-8 has to be known too, and a value that is no text must do no harm.
        connection.execute(
            """INSERT OR IGNORE INTO temp.known_memories
            SELECT agent_memory_digest(CAST(source AS BLOB), CAST(mem_type AS BLOB), CAST(content AS BLOB)), id
            FROM memories ORDER BY id"""
        )
        yield Arrivals(connection)
    finally:
        # After some faults SQLite has rolled back by itself, and the tables are gone.
        connection.execute("DROP TABLE IF EXISTS temp.known_memories; DROP TABLE IF EXISTS temp.arrived_keys")


def _digest(source: bytes | None, type: bytes, content: bytes) -> bytes:
    prefix = b"-" if source is None else b"%d:%b" % (len(source), source)
    return hashlib.blake2b(b"%b|%b|%b" % (prefix, type, content), digest_size=_DIGEST_BYTES).digest()
