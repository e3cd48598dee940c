"""The names that another program finds in our file."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

import agent_memory
from agent_memory.store import schema
from tests.support import database, legacy
from tests.support.ollama import NOBODY

COLUMNS = [
    # name, type, not null, default, primary key
    ("id", "INTEGER", 0, None, 1),
    ("mem_type", "TEXT", 1, None, 0),
    ("content", "TEXT", 1, None, 0),
    ("tags", "TEXT", 1, "'[]'", 0),
    ("source", "TEXT", 0, None, 0),
    ("scope", "TEXT", 0, None, 0),
    ("base_weight", "REAL", 1, "1.0", 0),
    ("decay_score", "REAL", 1, "1.0", 0),
    ("access_count", "INTEGER", 1, "0", 0),
    ("created_at", "INTEGER", 1, None, 0),
    ("last_accessed", "INTEGER", 1, None, 0),
    ("expires_at", "INTEGER", 0, None, 0),
    ("embedding_status", "INTEGER", 1, "0", 0),
]


@pytest.fixture
def fresh(db: Path) -> Path:
    """A new file."""
    agent_memory.open(db, ollama_url=NOBODY).close()
    return db


def columns(db: Path, table: str) -> list[tuple[str, str, int, str | None, int]]:
    """Name, type, not null, default and primary key place of each column."""
    return database.rows(db, f"SELECT name, upper(type), \"notnull\", dflt_value, pk FROM pragma_table_info('{table}')")


def text_of(db: Path, name: str) -> str:
    """The normalized SQL of one object."""
    return " ".join(database.rows(db, "SELECT sql FROM sqlite_master WHERE name = ?", (name,))[0].split())


def outline(db: Path) -> list[tuple[str, str, str]]:
    """Type, name and table of everything in the file, and what each table and index is made of."""
    objects = database.rows(
        db, "SELECT type, name, tbl_name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name"
    )
    details = [
        ("column", name, str(column))
        for type, name, _ in objects
        if type == "table" and name not in ("vec_memories",)
        for column in columns(db, name)
    ]
    return objects + details


def test_the_file_has_exactly_the_documented_objects(fresh: Path) -> None:
    assert set(database.rows(fresh, "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")) == {
        ("table", "memories"),
        ("index", "idx_memories_type"),
        ("index", "idx_memories_scope"),
        ("index", "idx_memories_expires"),
        ("index", "idx_memories_decay"),
        *{("table", f"memories_fts{end}") for end in ("", "_data", "_idx", "_docsize", "_config")},
        ("trigger", "memories_ai"),
        ("trigger", "memories_ad"),
        ("trigger", "memories_au"),
        *{("table", f"vec_memories{end}") for end in ("", "_info", "_chunks", "_rowids", "_vector_chunks00")},
        ("table", "meta"),
        ("table", "memory_links"),
        ("index", "idx_links_to"),
    }


def test_memories_has_the_documented_columns_in_order(fresh: Path) -> None:
    assert columns(fresh, "memories") == COLUMNS


def test_links_have_the_documented_columns_key_and_rules(fresh: Path) -> None:
    assert columns(fresh, "memory_links") == [
        ("from_id", "INTEGER", 1, None, 1),
        ("to_id", "INTEGER", 1, None, 2),
        ("kind", "TEXT", 1, None, 3),
        ("created_at", "INTEGER", 1, None, 0),
    ]
    assert "WITHOUT ROWID" in text_of(fresh, "memory_links").upper()
    keys = database.rows(
        fresh, 'SELECT "table", "from", "to", on_delete FROM pragma_foreign_key_list(\'memory_links\')'
    )
    assert sorted(keys) == [("memories", "from_id", "id", "CASCADE"), ("memories", "to_id", "id", "CASCADE")]
    with pytest.raises(apsw.ConstraintError, match="CHECK"):
        database.execute(fresh, "INSERT INTO memory_links VALUES (1, 1, 'relates_to', 1)")


@pytest.mark.parametrize(
    ("index", "table", "column", "partial"),
    [
        ("idx_memories_type", "memories", "mem_type", 0),
        ("idx_memories_scope", "memories", "scope", 0),
        ("idx_memories_expires", "memories", "expires_at", 1),
        ("idx_memories_decay", "memories", "decay_score", 0),
        ("idx_links_to", "memory_links", "to_id", 0),
    ],
)
def test_each_index_covers_its_column(fresh: Path, index: str, table: str, column: str, partial: int) -> None:
    assert database.rows(fresh, f"SELECT name FROM pragma_index_info('{index}')") == [column]
    assert database.rows(
        fresh, f"SELECT partial FROM pragma_index_list('{table}') WHERE name = ?", (index,)
    ) == [partial]  # fmt: skip


def test_the_text_index_is_external_content_of_memories(fresh: Path) -> None:
    text = text_of(fresh, "memories_fts").replace(" ", "")
    assert "fts5(content,content='memories',content_rowid='id')" in text
    assert "tokenize" not in text


def test_the_triggers_keep_the_text_index_in_step(fresh: Path) -> None:
    database.fill(fresh, 2, content="word{n}")
    assert database.keyword_ids(fresh, "word1") == [2]
    database.execute(fresh, "UPDATE memories SET content = 'other' WHERE id = 2")
    assert database.keyword_ids(fresh, "word1") == []
    assert database.keyword_ids(fresh, "other") == [2]
    database.execute(fresh, "DELETE FROM memories WHERE id = 2")
    assert database.keyword_ids(fresh, "other") == []
    database.check_integrity(fresh)


def test_vectors_are_768_floats_compared_by_cosine(fresh: Path) -> None:
    text = text_of(fresh, "vec_memories").lower().replace(" ", "")
    assert "vec0(memory_idintegerprimarykey,embeddingfloat[768]distance_metric=cosine)" in text


def test_the_file_names_its_model_dimension_and_version(fresh: Path) -> None:
    assert dict(database.rows(fresh, "SELECT key, value FROM meta")) == {
        "embedding_model": "nomic-embed-text",
        "embedding_dim": "768",
    }
    assert database.rows(fresh, "PRAGMA user_version") == [3] == [schema.LATEST]
    assert database.rows(fresh, "PRAGMA journal_mode") == ["wal"]


@pytest.mark.parametrize("version", [1, 2])
def test_a_migrated_file_has_the_schema_of_a_new_one(fresh: Path, tmp_path: Path, version: int) -> None:  # 15.2 #1
    old = tmp_path / "old.db"
    legacy.create(old, version)
    agent_memory.open(old, ollama_url=NOBODY).close()
    assert outline(old) == outline(fresh)
