"""Old files: migrated once, with everything in them, after a backup."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest

import agent_memory
from agent_memory import OpenError
from agent_memory.embed.ollama import OllamaEmbedder
from agent_memory.store import schema
from tests.support import database, legacy
from tests.support.ollama import NOBODY, FakeOllama, hashed_vector, packed


def today(db: Path, version: int = 3) -> Path:
    """The backup that an upgrade to ``version`` makes; asked again if midnight passes between."""
    return db.with_name(f"{db.name}.backup-pre-{version:04d}-{datetime.now(UTC):%Y%m%d}")


def backups(db: Path) -> list[str]:
    """The names of everything that looks like a backup, finished or not."""
    return sorted(entry.name for entry in db.parent.iterdir() if "backup" in entry.name)


def upgrade(db: Path) -> None:
    """Open and close."""
    agent_memory.open(db, ollama_url=NOBODY).close()


@pytest.fixture(params=[1, 2])
def old(request: pytest.FixtureRequest, db: Path) -> Path:
    """A file of each older version."""
    legacy.create(db, request.param)
    return db


def test_a_migration_keeps_every_column_of_every_memory(old: Path) -> None:
    upgrade(old)
    assert database.rows(old, "PRAGMA user_version") == [3]
    columns = "id, mem_type, content, tags, source, scope, base_weight, decay_score, access_count, created_at, "
    assert database.rows(old, f"SELECT {columns} last_accessed, expires_at FROM memories ORDER BY id") == list(
        legacy.ROWS
    )
    assert database.keyword_ids(old, "sqlite OR jitter") == [1, 9]
    database.check_integrity(old)


def test_a_migration_keeps_the_vectors(db: Path, ollama: FakeOllama) -> None:
    legacy.create(db, 2)
    with agent_memory.open(db, clock=lambda: 1_000, embedder=OllamaEmbedder(ollama.url)) as memory:
        ollama.vectors["backing off"] = hashed_vector("Retry with jitter.")
        answer = memory.search("backing off")
        assert (answer.search_mode, answer.results[0].id) == ("hybrid", 9)
    assert database.vector_ids(db) == [1, 9]
    assert database.vector(db, 1) == packed(hashed_vector("We chose SQLite for storage."))
    assert database.rows(db, "SELECT id FROM memories WHERE embedding_status = 1") == [1, 9]


def test_a_migrated_file_works_in_full(old: Path, ollama: FakeOllama) -> None:
    with agent_memory.open(old, embedder=OllamaEmbedder(ollama.url)) as memory:
        assert [found.id for found in memory.list()] == [9, 5, 2, 1]
        assert memory.link(1, 9, "supersedes").linked
        report = memory.sweep()
        assert report.expired == 1  # id 5
        assert memory.count_pending() == 0
        assert memory.update(2, content="Notes are written.").updated
        assert memory.forget(1).deleted
    assert database.count(old, "memory_links") == 0
    database.check_integrity(old)


def test_the_backup_beside_the_file_is_the_old_database(old: Path) -> None:  # 15.2 #2
    version = database.rows(old, "PRAGMA user_version")
    before = database.rows(old, "SELECT * FROM memories ORDER BY id")
    expected = today(old).name
    upgrade(old)
    assert backups(old) in ([expected], [today(old).name])
    copy = old.with_name(backups(old)[0])
    assert database.rows(copy, "PRAGMA user_version") == version
    assert database.rows(copy, "PRAGMA integrity_check") == ["ok"]
    assert database.rows(copy, "SELECT * FROM memories ORDER BY id") == before
    assert "memory_links" not in database.rows(copy, "SELECT name FROM sqlite_master")
    if os.name == "posix":
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_the_backup_holds_what_was_only_in_the_write_ahead_log(db: Path) -> None:
    legacy.create(db, 2)
    with database.connected(db) as writer:
        writer.execute("INSERT INTO memories(id, mem_type, content, created_at, last_accessed) "
                       "VALUES (77, 'TODO', 'only in the log', 1, 1)")  # fmt: skip
        assert db.with_name("memory.db-wal").stat().st_size > 0
        upgrade(db)
    assert database.value(db.with_name(backups(db)[0]), "content", 77) == "only in the log"


def test_a_restored_backup_is_migrated_again(old: Path) -> None:
    upgrade(old)
    with agent_memory.open(old, ollama_url=NOBODY) as memory:
        memory.store("written after the upgrade", "TODO")
    copy = old.with_name(backups(old)[0])
    old.write_bytes(copy.read_bytes())
    for end in ("-wal", "-shm"):
        old.with_name(old.name + end).unlink(missing_ok=True)
    upgrade(old)
    assert database.rows(old, "SELECT id FROM memories ORDER BY id") == [1, 2, 5, 9]


def test_opening_a_migrated_file_again_makes_no_backup(old: Path) -> None:  # 15.2 #3
    upgrade(old)
    made = backups(old)
    (old.with_name(made[0])).write_bytes(b"touched")
    upgrade(old)
    assert backups(old) == made
    assert old.with_name(made[0]).read_bytes() == b"touched"


def test_a_brand_new_file_gets_no_backup(db: Path) -> None:  # 15.2 #4
    upgrade(db)
    assert backups(db) == []
    upgrade(db)
    assert backups(db) == []


def test_an_empty_file_is_a_brand_new_one(db: Path) -> None:
    db.touch()
    upgrade(db)
    assert database.rows(db, "PRAGMA user_version") == [3]
    assert backups(db) == []


def test_one_backup_is_kept_per_target_version(db: Path) -> None:
    legacy.create(db, 2)
    for name in ("0002-20260101", "0004-20260101", "0003-20250101", "0003-20260202"):
        db.with_name(f"memory.db.backup-pre-{name}").write_bytes(name.encode())
    strangers = [
        "memory.db.backup-pre-0003-2025",
        "memory.db.backup-pre-0003-20250101.txt",
        "other.db.backup-pre-0003-20250101",
    ]
    for name in strangers:
        db.with_name(name).write_bytes(b"mine")
    upgrade(db)
    kept = [name for name in backups(db) if name not in strangers]
    assert kept == ["memory.db.backup-pre-0002-20260101", kept[1], "memory.db.backup-pre-0004-20260101"]
    assert database.rows(db.with_name(kept[1]), "PRAGMA user_version") == [2]
    assert db.with_name(kept[0]).read_bytes() == b"0002-20260101"
    assert [db.with_name(name).read_bytes() for name in strangers] == [b"mine"] * 3


def test_a_backup_of_today_is_replaced(db: Path) -> None:
    legacy.create(db, 2)
    today(db).write_bytes(b"an earlier attempt")
    upgrade(db)
    (name,) = backups(db)
    assert database.rows(db.with_name(name), "PRAGMA user_version") == [2]


def test_leftovers_of_an_interrupted_backup_are_cleared(db: Path) -> None:
    legacy.create(db, 2)
    today(db).with_name(f"{today(db).name}.tmp-99999").write_bytes(b"half a copy")
    upgrade(db)
    assert len(backups(db)) == 1
    assert not backups(db)[0].endswith("99999")


def test_without_a_backup_there_is_no_migration(db: Path) -> None:  # 15.2 #6
    legacy.create(db, 2)
    before = database.rows(db, "SELECT * FROM memories ORDER BY id")
    older = db.with_name("memory.db.backup-pre-0003-20200101")
    older.write_bytes(b"the earlier backup")
    # A directory that is not empty cannot be replaced by a file, whoever asks.
    obstacle = today(db)
    (obstacle / "occupied").mkdir(parents=True)
    with pytest.raises(OpenError) as caught:
        upgrade(db)
    assert "was not migrated" in str(caught.value)
    assert str(obstacle) in str(caught.value)
    assert database.rows(db, "PRAGMA user_version") == [2]
    assert database.rows(db, "SELECT * FROM memories ORDER BY id") == before
    assert "memory_links" not in database.rows(db, "SELECT name FROM sqlite_master")
    assert backups(db) == sorted([obstacle.name, older.name])
    assert older.read_bytes() == b"the earlier backup"
    (obstacle / "occupied").rmdir()
    obstacle.rmdir()
    upgrade(db)
    assert database.rows(db, "PRAGMA user_version") == [3]


@pytest.mark.parametrize("version", [1, 2])
def test_an_old_file_in_rollback_journal_mode_is_migrated_too(db: Path, version: int) -> None:
    legacy.create(db, version)
    database.execute(db, "PRAGMA journal_mode = DELETE")
    upgrade(db)
    assert database.rows(db, "PRAGMA user_version") == [3]
    assert database.count(db) == 4


def test_an_old_file_is_migrated_without_the_vector_extension(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    legacy.create(db, 1)
    monkeypatch.setattr("agent_memory.store.connection.vector_extension", lambda: None)
    upgrade(db)
    monkeypatch.undo()
    upgrade(db)
    database.execute(
        db, "INSERT INTO vec_memories(memory_id, embedding) VALUES (1, ?)", (packed(hashed_vector("x")),), vectors=True
    )
    assert database.vector_ids(db) == [1]


def test_an_interrupted_migration_leaves_the_old_file(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    legacy.create(db, 1)

    def fail(connection: apsw.Connection) -> None:
        connection.execute("CREATE TABLE half_done (x)")
        raise apsw.FullError("database or disk is full")

    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS[:2], fail))
    with pytest.raises(OpenError, match="disk is full"):
        upgrade(db)
    assert database.rows(db, "PRAGMA user_version") == [1]
    names = database.rows(db, "SELECT name FROM sqlite_master")
    assert not {"half_done", "meta", "vec_memories"} & set(names)
    monkeypatch.undo()
    upgrade(db)
    assert database.rows(db, "PRAGMA user_version") == [3]
