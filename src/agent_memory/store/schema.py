"""The numbered, append-only migrations of the database file.

``PRAGMA user_version`` is the number of applied migrations. Names, columns and types are those of the Rust
implementation, so either program opens the other's file. A released migration is never edited.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Final

import apsw

from agent_memory.errors import OpenError, SchemaTooNew
from agent_memory.store import backup
from agent_memory.store.connection import has_vectors, transaction

log = logging.getLogger(__name__)

EMBEDDING_MODEL: Final = "nomic-embed-text"
EMBEDDING_DIM: Final = 768

_V1: Final = """
CREATE TABLE memories (
    id            INTEGER PRIMARY KEY,
    mem_type      TEXT    NOT NULL,
    content       TEXT    NOT NULL,
    tags          TEXT    NOT NULL DEFAULT '[]',
    source        TEXT,
    scope         TEXT,
    base_weight   REAL    NOT NULL DEFAULT 1.0,
    decay_score   REAL    NOT NULL DEFAULT 1.0,
    access_count  INTEGER NOT NULL DEFAULT 0,
    created_at    INTEGER NOT NULL,
    last_accessed INTEGER NOT NULL,
    expires_at    INTEGER
);
CREATE INDEX idx_memories_type    ON memories(mem_type);
CREATE INDEX idx_memories_scope   ON memories(scope);
CREATE INDEX idx_memories_expires ON memories(expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX idx_memories_decay   ON memories(decay_score);
"""

_FULLTEXT: Final = """
CREATE VIRTUAL TABLE memories_fts USING fts5(content, content='memories', content_rowid='id');
"""

_TRIGGERS: Final = """
CREATE TRIGGER memories_ai AFTER INSERT ON memories BEGIN
    INSERT INTO memories_fts(rowid, content) VALUES (new.id, new.content);
END;
CREATE TRIGGER memories_ad AFTER DELETE ON memories BEGIN
    INSERT INTO memories_fts(memories_fts, rowid, content) VALUES ('delete', old.id, old.content);
END;
CREATE TRIGGER memories_au AFTER UPDATE ON memories BEGIN
    INSERT INTO memories_fts(memories_fts, rowid, content) VALUES ('delete', old.id, old.content);
    INSERT INTO memories_fts(rowid, content) VALUES (new.id, new.content);
END;
"""

_V2: Final = f"""
ALTER TABLE memories ADD COLUMN embedding_status INTEGER NOT NULL DEFAULT 0;
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
INSERT INTO meta(key, value) VALUES ('embedding_model', '{EMBEDDING_MODEL}');
INSERT INTO meta(key, value) VALUES ('embedding_dim', '{EMBEDDING_DIM}');
"""

_VECTORS: Final = f"""CREATE VIRTUAL TABLE vec_memories USING vec0(
    memory_id INTEGER PRIMARY KEY,
    embedding FLOAT[{EMBEDDING_DIM}] distance_metric=cosine
)"""

# What vec0 of sqlite-vec 0.1.9 creates for the table above, for a machine that lacks the module.
_VECTORS_BY_HAND: Final = """
CREATE TABLE "vec_memories_info" (key text primary key, value any);
INSERT INTO vec_memories_info VALUES
    ('CREATE_VERSION', 'v0.1.9'), ('CREATE_VERSION_MAJOR', 0),
    ('CREATE_VERSION_MINOR', 1), ('CREATE_VERSION_PATCH', 9);
CREATE TABLE "vec_memories_chunks" (
    chunk_id INTEGER PRIMARY KEY AUTOINCREMENT, size INTEGER NOT NULL, validity BLOB NOT NULL, rowids BLOB NOT NULL
);
CREATE TABLE "vec_memories_rowids" (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, id, chunk_id INTEGER, chunk_offset INTEGER
);
CREATE TABLE "vec_memories_vector_chunks00" (rowid PRIMARY KEY, vectors BLOB NOT NULL);
"""

_V3: Final = """
CREATE TABLE memory_links (
    from_id    INTEGER NOT NULL REFERENCES memories(id) ON DELETE CASCADE,
    to_id      INTEGER NOT NULL REFERENCES memories(id) ON DELETE CASCADE,
    kind       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (from_id, to_id, kind),
    CHECK (from_id <> to_id)
) WITHOUT ROWID;
CREATE INDEX idx_links_to ON memory_links(to_id);
"""


def _create_embeddings(connection: apsw.Connection) -> None:
    connection.execute(_V2)
    if has_vectors(connection):
        connection.execute(_VECTORS)
        return
    connection.execute(_VECTORS_BY_HAND)
    connection.config(apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1)
    connection.execute(
        "INSERT INTO sqlite_master(type, name, tbl_name, rootpage, sql) "
        "VALUES ('table', 'vec_memories', 'vec_memories', 0, ?)",
        (_VECTORS,),
    )
    connection.config(apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0)


MIGRATIONS: Final[tuple[Callable[[apsw.Connection], object], ...]] = (
    lambda connection: connection.execute(_V1 + _FULLTEXT + _TRIGGERS),
    _create_embeddings,
    lambda connection: connection.execute(_V3),
)
LATEST: Final = len(MIGRATIONS)


def version(connection: apsw.Connection) -> int:
    """The schema version of an open file; 0 for a new one."""
    found: int = connection.execute("PRAGMA user_version").get
    return found


def embedding_pin(connection: apsw.Connection) -> tuple[str | None, str | None]:
    """The model and dimension of every vector in the file, as it says; ``None`` for what it does not say."""
    pins = dict(connection.execute("SELECT key, value FROM meta"))
    return pins.get("embedding_model"), pins.get("embedding_dim")


def check_ours(connection: apsw.Connection, path: Path) -> int:
    """The schema version of ``path``, which is empty or ours and not too new. Reads only.

    Raises:
        SchemaTooNew: A newer agent-memory wrote it.
        OpenError: It is some other program's database.
    """
    # Both from one moment: another process may be creating the file.
    with nullcontext() if connection.in_transaction else transaction(connection, write=False):
        found = version(connection)
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if found > LATEST:
        raise SchemaTooNew(found, LATEST)
    if found < 0 or (found == 0 and tables) or (found > 0 and "memories" not in tables):
        raise OpenError(
            f"opening database at {path}: it is a SQLite database but not an agent-memory one "
            f"(schema version {found}, tables: {', '.join(sorted(tables)) or 'none'}) — point --db at a different file"
        )
    return found


def missing_fulltext(connection: apsw.Connection) -> list[str]:
    """The names of the full-text table and its triggers that the file lacks."""
    present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    return [name for name in ("memories_fts", "memories_ai", "memories_ad", "memories_au") if name not in present]


def rebuild_fulltext(connection: apsw.Connection) -> None:
    """Make the full-text table, its triggers and its entries anew from the memories, where they are missing."""
    if "memories_fts" in missing_fulltext(connection):
        connection.execute(_FULLTEXT)
    connection.execute(
        "DROP TRIGGER IF EXISTS memories_ai; DROP TRIGGER IF EXISTS memories_ad; DROP TRIGGER IF EXISTS memories_au"
    )
    connection.execute(_TRIGGERS)
    connection.execute("INSERT INTO memories_fts(memories_fts) VALUES ('rebuild')")


def recreate_vectors(connection: apsw.Connection) -> None:
    """Make an empty vector table, every memory pending, where the file has lost its own. Needs sqlite-vec."""
    connection.execute(_VECTORS)
    connection.execute("UPDATE memories SET embedding_status = 0")


def migrate(connection: apsw.Connection, path: Path) -> None:
    """Bring ``path`` to the latest version, with a backup of any older one first.

    The write lock is held from the first look to the commit, so of several processes that open an old file at
    once exactly one copies and migrates it, and the copy is always of the old version.

    Raises:
        SchemaTooNew: Another process upgraded the file beyond this program meanwhile.
        OpenError: The backup could not be written; nothing was migrated.
    """
    if version(connection) == LATEST:
        return
    with transaction(connection, write=True):
        found = check_ours(connection, path)
        if found == LATEST:
            return
        if found > 0:
            backup.before_migration(path, LATEST)
        for migration in MIGRATIONS[found:]:
            migration(connection)
        connection.execute(f"PRAGMA user_version = {LATEST}")
    log.info("Database migrated to version %d", LATEST)
