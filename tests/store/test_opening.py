"""Which files are opened, how they are created, and which are left alone."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

import agent_memory
from agent_memory import InvalidSetting, OpenError, SchemaTooNew, StorageError
from agent_memory.store.store import SQLiteStore
from tests.support import database, legacy
from tests.support.ollama import NOBODY

posix = pytest.mark.skipif(os.name != "posix", reason="modes are a POSIX notion")


def mode(path: Path) -> int:
    """The permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


def open_and_close(path: Path | str | bytes) -> None:
    """Open and close."""
    agent_memory.open(path, ollama_url=NOBODY).close()


@pytest.mark.parametrize("journal", ["wal", "delete"])
@pytest.mark.parametrize("version", [4, 99])
def test_a_newer_file_is_refused_and_not_a_byte_of_it_changes(db: Path, version: int, journal: str) -> None:
    # 15.2 #5, F14
    open_and_close(db)
    database.execute(db, f"PRAGMA journal_mode = {journal}")
    database.execute(db, f"PRAGMA user_version = {version}")
    names = sorted(entry.name for entry in db.parent.iterdir())
    before = db.read_bytes()
    with pytest.raises(SchemaTooNew) as caught:
        open_and_close(db)
    assert str(caught.value) == (
        f"database schema is version {version} but this binary supports up to version 3 — upgrade agent-memory "
        "(brew upgrade unityinflow/tap/agent-memory) or point --db at a different file"
    )
    assert (caught.value.found, caught.value.supported) == (version, 3)
    assert db.read_bytes() == before
    assert sorted(entry.name for entry in db.parent.iterdir()) == names


@pytest.mark.parametrize("version", [0, 1, 3])
def test_the_database_of_another_program_is_refused_and_left_alone(db: Path, version: int) -> None:
    connection = apsw.Connection(str(db))
    connection.execute(f"CREATE TABLE bookmarks (url); PRAGMA user_version = {version}")
    connection.close()
    before = db.read_bytes()
    with pytest.raises(OpenError, match=r"not an agent-memory one .*bookmarks"):
        open_and_close(db)
    assert db.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"not a database, but long enough to look like one" * 100, b"SQLite format 3\0junk"]
)
def test_a_file_that_is_no_database_is_refused_and_left_alone(db: Path, content: bytes) -> None:
    db.write_bytes(content)
    with pytest.raises(OpenError, match=f"opening database at {db}"):
        open_and_close(db)
    assert db.read_bytes() == content


@pytest.mark.parametrize("table", ["memories_fts", "vec_memories", "memory_links"])
def test_a_file_that_lacks_a_table_is_refused_by_name(db: Path, table: str) -> None:
    open_and_close(db)
    database.execute(db, f"DROP TABLE {table}", vectors=True)
    with pytest.raises(OpenError, match=f"{table} is unusable"):
        open_and_close(db)


@pytest.mark.parametrize(
    "damage",
    ["DELETE FROM meta", "UPDATE meta SET value = 'many' WHERE key = 'embedding_dim'", "DROP TABLE meta"],
)
def test_a_file_without_a_readable_model_pin_is_refused_or_used_by_keyword(db: Path, damage: str) -> None:
    open_and_close(db)
    database.execute(db, damage)

    def outcome() -> str:
        try:
            with agent_memory.open(db, ollama_url=NOBODY) as memory:
                return memory.search("x").search_mode
        except OpenError:
            return "refused"

    assert outcome() in ("refused", "keyword")


def test_a_version_below_zero_is_nobody_s_and_refused(db: Path) -> None:
    legacy.create(db, 2)
    database.execute(db, "PRAGMA user_version = -1")
    before = db.read_bytes()
    with pytest.raises(OpenError, match="schema version -1"):
        open_and_close(db)
    assert db.read_bytes() == before


def test_a_newer_file_reached_by_a_symbolic_link_keeps_its_log(tmp_path: Path) -> None:
    real, link = tmp_path / "real" / "memory.db", tmp_path / "link.db"
    real.parent.mkdir()
    open_and_close(real)
    leave_a_log = f"""
import apsw, os
connection = apsw.Connection({str(real)!r})
connection.execute("PRAGMA user_version = 4")
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", leave_a_log], check=True)
    log = real.with_name("memory.db-wal")
    before = real.read_bytes(), log.read_bytes()
    assert before[1]
    link.symlink_to(real)
    with pytest.raises(SchemaTooNew):
        open_and_close(link)
    assert (real.read_bytes(), log.read_bytes()) == before


def test_the_backup_of_a_linked_file_lies_beside_the_file(tmp_path: Path) -> None:
    real, link = tmp_path / "real" / "memory.db", tmp_path / "link.db"
    real.parent.mkdir()
    legacy.create(real, 2)
    link.symlink_to(real)
    open_and_close(link)
    assert [entry.name for entry in tmp_path.iterdir() if "backup" in entry.name] == []
    assert [entry.name[:24] for entry in real.parent.iterdir() if "backup" in entry.name] == [
        "memory.db.backup-pre-000"
    ]


def test_a_path_of_bytes_is_a_path(tmp_path: Path) -> None:
    open_and_close(bytes(tmp_path / "bytes.db"))
    assert (tmp_path / "bytes.db").exists()


@pytest.mark.parametrize("name", ["nul\0byte.db", "lone \ud83d surrogate.db"])
def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises((InvalidSetting, OpenError)):
        open_and_close(f"{tmp_path}/{name}")


@posix
def test_a_new_file_and_its_directories_are_private(tmp_path: Path) -> None:  # D13
    old_mask = os.umask(0)
    try:
        db = tmp_path / "a" / "b" / "memory.db"
        with agent_memory.open(db, ollama_url=NOBODY) as memory:
            memory.store("x", "TODO")
            assert [mode(found) for found in sorted(db.parent.iterdir())] == [0o600, 0o600, 0o600]
    finally:
        os.umask(old_mask)
    assert mode(db) == 0o600
    assert mode(tmp_path / "a") == mode(tmp_path / "a" / "b") == 0o700


@posix
def test_existing_files_and_directories_keep_their_modes(tmp_path: Path) -> None:
    directory = tmp_path / "shared"
    directory.mkdir()
    directory.chmod(0o775)
    db = directory / "memory.db"
    open_and_close(db)
    db.chmod(0o664)
    open_and_close(db)
    assert (mode(directory), mode(db)) == (0o775, 0o664)


def test_a_relative_path_stays_where_it_was_when_the_process_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with agent_memory.open("sub/memory.db", ollama_url=NOBODY) as memory:
        assert memory.path == tmp_path / "sub" / "memory.db"
        monkeypatch.chdir(tmp_path / "elsewhere")
        memory.store("x", "TODO")
        assert len(memory.list()) == 1
    assert database.count(tmp_path / "sub" / "memory.db") == 1


def test_a_tilde_is_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    open_and_close("~/mine/memory.db")
    assert (tmp_path / "mine" / "memory.db").is_file()


@pytest.mark.parametrize(
    "name", ["with space.db", "größe 日本.db", "quote'.db", "question?.db", "per%20cent.db", "#.db"]
)
def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    with agent_memory.open(tmp_path / name, ollama_url=NOBODY) as memory:
        memory.store("x", "TODO")
    assert (tmp_path / name).is_file()
    open_and_close(tmp_path / name)


def test_a_directory_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="path must name a file"):
        open_and_close(tmp_path)


def test_a_file_in_the_way_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OpenError, match="opening database at "):
        open_and_close(tmp_path / "file" / "memory.db")


def test_a_symbolic_link_opens_what_it_points_to(tmp_path: Path) -> None:
    open_and_close(tmp_path / "real.db")
    (tmp_path / "link.db").symlink_to(tmp_path / "real.db")
    with agent_memory.open(tmp_path / "link.db", ollama_url=NOBODY) as memory:
        memory.store("x", "TODO")
    assert database.count(tmp_path / "real.db") == 1


@pytest.mark.parametrize(("journal", "expected"), [("wal", "wal"), ("delete", "delete"), ("auto", "wal")])
def test_the_journal_mode_can_be_chosen(db: Path, monkeypatch: pytest.MonkeyPatch, journal: str, expected: str) -> None:
    monkeypatch.setenv("AGENT_MEMORY_JOURNAL", journal)
    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        memory.store("x", "TODO")
        assert database.rows(db, "PRAGMA journal_mode") == [expected]
        assert len(memory.search("x").results) == 1


def test_a_write_that_waits_too_long_for_another_process_is_a_storage_fault(db: Path) -> None:
    store = SQLiteStore(db)
    with database.connected(db) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match="store failed due to a storage error"), store.writing("store", 0.05):
            raise AssertionError("the lock is held elsewhere")
        other.execute("ROLLBACK")
    with store.writing("store", 0.05) as writer:
        assert writer.count_pending() == 0
    store.close()


def test_a_write_that_fails_half_way_leaves_nothing(db: Path) -> None:
    store = SQLiteStore(db)
    database.fill(db, 1)

    def fail() -> None:
        with store.writing("store") as writer:
            assert writer.delete(1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert database.count(db) == 1
    with store.writing("store") as writer:
        assert writer.delete(1)
    store.close()
    assert database.count(db) == 0


def test_a_reader_sees_one_moment(db: Path) -> None:
    store = SQLiteStore(db)
    with store.reading("list") as reader:
        assert reader.count_pending() == 0
        database.fill(db, 3)
        assert reader.count_pending() == 0
    with store.reading("list") as reader:
        assert reader.count_pending() == 3
    store.close()
