"""Database files as older programs left them, built from the description of their schemas, not from our code."""

from __future__ import annotations

from pathlib import Path

import apsw

from tests.support.database import load_vec0
from tests.support.ollama import hashed_vector, packed

# Written from the tables of names, types, nullability and defaults; the texts differ from ours on purpose.
_VERSION_1 = """
create table memories (
    id integer primary key, mem_type text not null, content text not null, tags text not null default '[]',
    source text, scope text, base_weight real not null default 1.0, decay_score real not null default 1.0,
    access_count integer not null default 0, created_at integer not null, last_accessed integer not null,
    expires_at integer);
create index idx_memories_type on memories (mem_type);
create index idx_memories_scope on memories (scope);
create index idx_memories_expires on memories (expires_at) where expires_at is not null;
create index idx_memories_decay on memories (decay_score);
create virtual table memories_fts using fts5(content, content='memories', content_rowid='id');
create trigger memories_ai after insert on memories for each row begin
    insert into memories_fts (rowid, content) values (new.id, new.content); end;
create trigger memories_ad after delete on memories for each row begin
    insert into memories_fts (memories_fts, rowid, content) values ('delete', old.id, old.content); end;
create trigger memories_au after update on memories for each row begin
    insert into memories_fts (memories_fts, rowid, content) values ('delete', old.id, old.content);
    insert into memories_fts (rowid, content) values (new.id, new.content); end;
"""
_VERSION_2 = """
alter table memories add column embedding_status integer not null default 0;
create virtual table vec_memories using vec0(
    memory_id integer primary key, embedding float[768] distance_metric=cosine);
create table meta (key text primary key, value text not null);
insert into meta values ('embedding_model', 'nomic-embed-text');
insert into meta values ('embedding_dim', '768');
"""
ROWS = (
    (1, "DECISION", "We chose SQLite for storage.", '["db","größe"]', "adr-1", None, 2.0, 0.75, 3, 100, 900, None),
    (2, "TODO", "Write the release notes.", "[]", None, "kore", 1.0, 0.5, 0, 200, 200, 4_000_000_000),
    (5, "ERROR", "Timeout with 'quotes' and 🎉.", '["net"]', "log", "kore", 1.0, 1.0, 1, 300, 350, 2),
    (9, "PATTERN", "Retry with jitter.", "[]", None, None, 1.0, 1.0, 0, 300, 300, None),
)
"""Columns 1 to 12 of the memories in these files; id 5 has expired."""
EMBEDDED = (1, 9)
"""The ids that have a vector in a version 2 file: the hashed vector of their content."""


def create(db: Path, version: int) -> None:
    """A file of schema version 1 or 2, in WAL mode as its program left it."""
    connection = apsw.Connection(str(db))
    try:
        load_vec0(connection)
        connection.execute("pragma journal_mode = wal")
        connection.execute(_VERSION_1)
        connection.executemany(f"insert into memories values ({', '.join('?' * 12)})", ROWS)
        if version == 2:
            connection.execute(_VERSION_2)
            for memory_id, _, content, *_ in ROWS:
                if memory_id in EMBEDDED:
                    connection.execute(
                        "insert into vec_memories(memory_id, embedding) values (?, ?)",
                        (memory_id, packed(hashed_vector(content))),
                    )
                    connection.execute("update memories set embedding_status = 1 where id = ?", (memory_id,))
        connection.execute(f"pragma user_version = {version}")
    finally:
        connection.close()
