"""Direct access to a database file, beside the program: what is really in it, and time travel."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

MONTH = 30 * 86_400
"""The half-life of unpinned memories, in seconds."""


@contextmanager
def connected(db: Path, *, vectors: bool = False) -> Iterator[apsw.Connection]:
    """A connection of our own; with ``vectors`` it knows ``vec0``."""
    connection = apsw.Connection(str(db), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(20_000)
    try:
        if vectors:
            load_vec0(connection)
        yield connection
    finally:
        connection.close()


def load_vec0(connection: apsw.Connection) -> None:
    """Make ``vec0`` known to a connection."""
    spec = importlib.util.find_spec("sqlite_vec")
    assert spec is not None
    assert spec.submodule_search_locations
    connection.enable_load_extension(True)
    connection.load_extension(str(Path(spec.submodule_search_locations[0]) / "vec0"))
    connection.enable_load_extension(False)


def rows(db: Path, sql: str, bindings: Sequence[Any] | dict[str, Any] = (), *, vectors: bool = False) -> list[Any]:
    """What a query yields; rows of one column as bare values."""
    with connected(db, vectors=vectors) as connection:
        return [row[0] if len(row) == 1 else row for row in connection.execute(sql, bindings)]


def execute(db: Path, sql: str, bindings: Sequence[Any] | dict[str, Any] = (), *, vectors: bool = False) -> int:
    """Run statements; the number of rows that the last one changed."""
    with connected(db, vectors=vectors) as connection:
        connection.execute(sql, bindings)
        return connection.changes()


def value(db: Path, column: str, memory_id: int) -> Any:
    """One raw column of a memory."""
    (found,) = rows(db, f"SELECT {column} FROM memories WHERE id = ?", (memory_id,))
    return found


def row(db: Path, memory_id: int) -> dict[str, Any]:
    """All raw columns of a memory."""
    with connected(db) as connection:
        cursor = connection.execute("SELECT * FROM memories WHERE id = ?", (memory_id,))
        names = [column[0] for column in cursor.get_description()]
        (found,) = cursor
        return dict(zip(names, found, strict=True))


def count(db: Path, table: str = "memories") -> int:
    """The number of rows of a table."""
    found: int = rows(db, f"SELECT count(*) FROM {table}", vectors=table == "vec_memories")[0]
    return found


def everything(db: Path) -> list[Any]:
    """All memories and links, raw: for "nothing was written"."""
    return rows(db, "SELECT * FROM memories ORDER BY id") + rows(db, "SELECT * FROM memory_links")


def age(db: Path, memory_id: int, seconds: int) -> None:
    """Let a memory have been stored and used that much earlier."""
    changed = execute(
        db,
        "UPDATE memories SET created_at = created_at - :s, last_accessed = last_accessed - :s WHERE id = :id",
        {"s": seconds, "id": memory_id},
    )
    assert changed == 1


def expire(db: Path, memory_id: int) -> None:
    """Let the time to live of a memory have passed long ago."""
    assert execute(db, "UPDATE memories SET expires_at = 1 WHERE id = ?", (memory_id,)) == 1


def same_moment(db: Path, at: int = 1_700_000_000) -> None:
    """Let all memories have been stored and used at one second."""
    execute(db, "UPDATE memories SET created_at = ?1, last_accessed = ?1", (at,))


def fill(db: Path, number: int, *, content: str = "filler", type: str = "PATTERN", at: int = 1_700_000_000) -> None:
    """Add many memories at once; ``{n}`` in ``content`` is their number."""
    with connected(db) as connection, connection:
        connection.executemany(
            "INSERT INTO memories(mem_type, content, created_at, last_accessed) VALUES (?, ?, ?, ?)",
            ((type, content.replace("{n}", str(index)), at, at) for index in range(number)),
        )


def vector(db: Path, memory_id: int) -> bytes | None:
    """The vector of a memory, or ``None`` when it has none."""
    found = rows(db, "SELECT embedding FROM vec_memories WHERE memory_id = ?", (memory_id,), vectors=True)
    return found[0] if found else None


def vector_ids(db: Path) -> list[int]:
    """The ids that have a vector, ascending."""
    return rows(db, "SELECT memory_id FROM vec_memories ORDER BY memory_id", vectors=True)


def keyword_ids(db: Path, expression: str) -> list[int]:
    """The ids that the full-text index itself finds, ascending."""
    return rows(db, "SELECT rowid FROM memories_fts WHERE memories_fts MATCH ? ORDER BY rowid", (expression,))


def check_integrity(db: Path) -> None:
    """Fail unless the file, its full-text index and its foreign keys are sound."""
    assert rows(db, "PRAGMA integrity_check") == ["ok"]
    assert rows(db, "PRAGMA foreign_key_check") == []
    execute(db, "INSERT INTO memories_fts(memories_fts, rank) VALUES ('integrity-check', 1)")
