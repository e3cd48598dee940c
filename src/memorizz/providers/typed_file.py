"""What the bridge keeps in an agent-memory database: memories, and beside them the records they were."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

import apsw

from agent_memory.domain.links import Edge, LinkKind
from agent_memory.domain.memory import MemoryType
from agent_memory.store import memories, vectors
from agent_memory.store.connection import has_vectors
from memorizz.providers import typed_records
from memorizz.providers.typed_records import Facts, Link
from memorizz.providers.values import Unreadable, decode, encode
from memorizz.records import Record
from memorizz.taxonomy import MemoryType as Store

# The trigger, not the foreign key: programs that do not check those delete memories too, and ids may be used again.
TABLES: Final = """
CREATE TABLE IF NOT EXISTS memorizz_records (
    memory_id INTEGER PRIMARY KEY,
    record_id TEXT    NOT NULL UNIQUE,
    body      TEXT    NOT NULL
);
CREATE TABLE IF NOT EXISTS memorizz_links (
    memory_id INTEGER NOT NULL,
    record_id TEXT    NOT NULL,
    kind      TEXT    NOT NULL,
    PRIMARY KEY (memory_id, record_id, kind)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS idx_memorizz_links_record ON memorizz_links(record_id);
CREATE TRIGGER IF NOT EXISTS memorizz_forget AFTER DELETE ON memories BEGIN
    DELETE FROM memorizz_records WHERE memory_id = old.id;
    DELETE FROM memorizz_links WHERE memory_id = old.id;
END;
"""


class TypedFile:
    """One connection to the file. ``kept`` says whether it has the tables of :data:`TABLES`."""

    def __init__(self, connection: apsw.Connection, *, kept: bool) -> None:
        self._connection = connection
        self._kept = kept

    def memory_id(self, id: str) -> int | None:
        """The memory that is the record of that id, or ``None``."""
        found: int | None = None
        if self._kept:
            found = self._connection.execute("SELECT memory_id FROM memorizz_records WHERE record_id = ?", (id,)).get
        own = typed_records.memory_id(id)
        if found is None and own is not None and not self._is_record(own):
            found = self._connection.execute("SELECT id FROM memories WHERE id = ?", (own,)).get
        return found

    def _is_record(self, memory_id: int) -> bool:
        """Whether the memory is kept under an id of its own."""
        if not self._kept:
            return False
        row = self._connection.execute("SELECT 1 FROM memorizz_records WHERE memory_id = ?", (memory_id,))
        return row.get is not None

    def records(self, ids: Sequence[int]) -> list[Record]:
        """The records of those of the memories that exist, in the order of ``ids``."""
        memories_by_id = memories.by_id(self._connection, ids, now())
        found = [memories_by_id[id] for id in ids if id in memories_by_id]
        bodies: dict[int, tuple[str, str]] = {}
        if self._kept and found:
            marks = ", ".join("?" * len(found))
            bodies = {
                memory_id: (id, body)
                for memory_id, id, body in self._connection.execute(
                    f"SELECT memory_id, record_id, body FROM memorizz_records WHERE memory_id IN ({marks})",
                    tuple(memory.id for memory in found),
                )
            }
        made = []
        for memory in found:
            id, body = bodies.get(memory.id, (typed_records.record_id(memory.id), ""))
            held = Facts(*(getattr(memory, name) for name in Facts._fields))._replace(type=memory.type.value)
            try:
                kept = decode(body) if body else None
            except Unreadable:
                kept = None
            named = [] if kept is None else typed_records.links(kept)
            related = self._links(memory.id, named)
            made.append(
                typed_records.record(id, held, related)
                if kept is None
                else {**typed_records.changed(kept, held, related), "_id": id, "id": id}
            )
        return made

    def _links(self, memory_id: int, named: Sequence[Link]) -> list[Link]:
        """The relations of a memory: those it stands at the beginning of, and those that its record names."""
        found = []
        for from_id, to_id, kind in self._connection.execute(
            "SELECT from_id, to_id, kind FROM memory_links WHERE from_id = ?1 OR (to_id = ?1 AND kind = ?2) "
            "ORDER BY from_id, to_id, kind",
            (memory_id, LinkKind.RELATES_TO.value),
        ):
            other = to_id if from_id == memory_id else from_id
            link = Link(self._record_id(other), kind)
            if link in named or (from_id == memory_id and not self._names(other, memory_id, kind)):
                found.append(link)
        if self._kept:
            found += [
                Link(id, kind)
                for id, kind in self._connection.execute(
                    "SELECT record_id, kind FROM memorizz_links WHERE memory_id = ?", (memory_id,)
                )
            ]
        return found

    def _names(self, memory_id: int, other: int, kind: str) -> bool:
        """Whether a relation without direction is named by the record at its other end, which then shows it."""
        if kind != LinkKind.RELATES_TO.value or not self._kept:
            return False
        body = self._connection.execute("SELECT body FROM memorizz_records WHERE memory_id = ?", (memory_id,)).get
        try:
            named = [] if body is None else typed_records.links(decode(body))
        except Unreadable:
            return False
        return Link(self._record_id(other), kind) in named

    def _record_id(self, memory_id: int) -> str:
        found = None
        if self._kept:
            found = self._connection.execute(
                "SELECT record_id FROM memorizz_records WHERE memory_id = ?", (memory_id,)
            ).get
        return typed_records.record_id(memory_id) if found is None else str(found)

    def write(self, id: str, record: Record, before: int | None) -> int:
        """Keep a record, in the memory ``before`` or a new one, and return that memory's id."""
        held = typed_records.facts(record, now())
        columns: dict[str, Any] = {
            "mem_type": held.type,
            "content": held.content,
            "tags": memories.dump_tags(held.tags),
            "source": held.source,
            "scope": held.scope,
            "base_weight": memories.PINNED_WEIGHT if MemoryType(held.type).pinned else 1.0,
            "access_count": held.access_count,
            "created_at": held.created_at,
            "last_accessed": held.last_accessed,
            "expires_at": held.expires_at,
        }
        memory_id = before
        if memory_id is None:
            wanted = typed_records.memory_id(id)
            taken = (
                wanted is not None and self._connection.execute("SELECT 1 FROM memories WHERE id = ?", (wanted,)).get
            )
            names = ", ".join(["id", *columns])
            marks = ", ".join(f":{name}" for name in ("id", *columns))
            self._connection.execute(
                f"INSERT INTO memories({names}) VALUES ({marks})", {**columns, "id": None if taken else wanted}
            )
            memory_id = self._connection.last_insert_rowid()
        else:
            was = self._connection.execute("SELECT content FROM memories WHERE id = ?", (memory_id,)).get
            if was != held.content:
                self.drop_vector(memory_id)
                columns["embedding_status"] = 0
            self._connection.execute("DELETE FROM memory_links WHERE from_id = ?", (memory_id,))
            self._connection.execute("DELETE FROM memorizz_links WHERE memory_id = ?", (memory_id,))
            assignments = ", ".join(f"{name} = :{name}" for name in columns)
            self._connection.execute(f"UPDATE memories SET {assignments} WHERE id = :id", {**columns, "id": memory_id})
        self._connection.execute(
            "INSERT OR REPLACE INTO memorizz_records VALUES (?, ?, ?)",
            (memory_id, id, encode(Store.KNOWLEDGE_BASE, id, record)),
        )
        return memory_id

    def relate(self, memory_id: int, named: Iterable[Link]) -> None:
        """Make the relations that a record names."""
        for link in named:
            other = self.memory_id(link.record_id)
            if other is None or other == memory_id:
                # It may come later; a relation to itself is one that the typed memory does not know.
                self._connection.execute(
                    "INSERT OR IGNORE INTO memorizz_links VALUES (?, ?, ?)", (memory_id, link.record_id, link.kind)
                )
            else:
                self._link(memory_id, other, link.kind)

    def settle(self, written: dict[str, int]) -> None:
        """Make relations of those that waited for one of the records."""
        for id, memory_id in written.items():
            for waiting, kind in self._connection.execute(
                "SELECT memory_id, kind FROM memorizz_links WHERE record_id = ? AND memory_id <> ?", (id, memory_id)
            ).fetchall():
                self._link(cast(int, waiting), memory_id, cast(str, kind))
                self._connection.execute(
                    "DELETE FROM memorizz_links WHERE memory_id = ? AND record_id = ?", (waiting, id)
                )

    def _link(self, from_id: int, to_id: int, kind: str) -> None:
        edge = Edge(from_id, to_id, LinkKind(kind)).stored()
        self._connection.execute(
            "INSERT OR IGNORE INTO memory_links(from_id, to_id, kind, created_at) VALUES (?, ?, ?, ?)",
            (edge.from_id, edge.to_id, edge.kind.value, now()),
        )

    def drop_vector(self, memory_id: int) -> None:
        """Remove the vector of a memory, where this program can."""
        if has_vectors(self._connection):
            vectors.delete(self._connection, memory_id)


def now() -> int:
    """UTC unix seconds."""
    return int(time.time())
