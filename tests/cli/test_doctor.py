"""`agent-memory doctor`: what it finds, what it says to do, and what it mends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import agent_memory
from agent_memory.config import Settings
from agent_memory.doctor import examine
from agent_memory.store import connection as store_connection
from agent_memory.store.filesystem import remote_file_system
from tests.cli.test_commands import Run, run, value
from tests.support import database, legacy
from tests.support.ollama import NOBODY, FakeOllama

__all__ = ["run"]


def findings(run: Run, *arguments: str, **environment: str) -> dict[str, dict[str, Any]]:
    done = run("doctor", "--json", *arguments, **environment)
    found = {finding["check"]: finding for finding in value(done)["findings"]}
    assert done.returncode == (1 if any(finding["status"] == "problem" for finding in found.values()) else 0)
    return found


@pytest.fixture
def filled(db: Path, ollama: FakeOllama) -> Path:
    with agent_memory.open(db, ollama_url=ollama.url) as memory:
        for number in range(6):
            memory.store(f"fact {number}", "TODO", tags=["a"])
        memory.link(1, 2, "supersedes")
    return db


def test_a_healthy_file_passes_every_check(run: Run, filled: Path, ollama: FakeOllama) -> None:
    found = findings(run, AGENT_MEMORY_OLLAMA_URL=ollama.url)

    assert {finding["status"] for finding in found.values()} == {"ok"}
    assert set(found) == {
        "file", "permissions", "file system", "integrity", "schema", "memories", "links", "full-text index",
        "vectors", "embedding model", "write-ahead log", "sqlite-vec", "embedder",
    }  # fmt: skip


def test_a_missing_file_is_no_problem_and_is_not_created(run: Run, db: Path) -> None:
    assert "does not exist yet" in findings(run)["file"]["message"]
    assert not db.exists()


def test_pending_embeddings_and_a_missing_embedder_are_warnings_with_advice(run: Run, filled: Path) -> None:
    with agent_memory.open(filled, ollama_url=NOBODY) as memory:
        memory.store("later", "TODO")

    found = findings(run)

    assert found["pending embeddings"]["status"] == "warning"
    assert found["pending embeddings"]["message"] == "found by keyword only so far: 1 of 7"
    assert "agent-memory embed" in found["pending embeddings"]["advice"]
    assert found["embedder"]["status"] == "warning"


def test_a_missing_model_names_the_command_that_fetches_it(run: Run, filled: Path, ollama: FakeOllama) -> None:
    ollama.models.clear()

    found = findings(run, AGENT_MEMORY_OLLAMA_URL=ollama.url)

    assert found["embedder"]["advice"] == "run `ollama pull nomic-embed-text`"


@pytest.mark.parametrize(
    ("damage", "check"),
    [
        ("INSERT INTO memories_fts(memories_fts, rowid, content) VALUES ('delete', 3, 'fact 2')", "full-text index"),
        ("DELETE FROM vec_memories WHERE memory_id = 4", "vectors"),
        ("UPDATE memories SET embedding_status = 0 WHERE id = 5", "vectors"),
        ("DROP TRIGGER memories_ad; DELETE FROM memories WHERE id = 6", "vectors"),
        ("DROP TRIGGER memories_ai", "full-text index"),
        (
            "DROP TRIGGER memories_ai; DROP TRIGGER memories_ad; DROP TRIGGER memories_au; DROP TABLE memories_fts",
            "full-text index",
        ),
    ],
)
def test_an_index_that_disagrees_is_found_and_mended(
    run: Run, filled: Path, ollama: FakeOllama, damage: str, check: str
) -> None:
    database.execute(filled, damage, vectors=True)
    assert findings(run)[check]["status"] == "problem"

    fixed = findings(run, "--fix")

    assert fixed[check]["status"] == "ok"
    database.check_integrity(filled)
    run("embed", AGENT_MEMORY_OLLAMA_URL=ollama.url)
    assert database.vector_ids(filled) == database.rows(filled, "SELECT id FROM memories ORDER BY id")


def test_rows_that_no_version_writes_are_named(run: Run, filled: Path) -> None:
    database.execute(filled, "UPDATE memories SET tags = 'not json' WHERE id = 2")
    database.execute(filled, "UPDATE memories SET mem_type = 'WISH' WHERE id = 3")
    database.execute(filled, "UPDATE memory_links SET kind = 'blocks'")

    found = findings(run)

    assert "ids 2, 3" in found["memories"]["message"]
    assert found["links"]["status"] == "problem"


def test_another_embedding_model_is_a_problem(run: Run, filled: Path) -> None:
    database.execute(filled, "UPDATE meta SET value = 'other-model' WHERE key = 'embedding_model'")

    assert "of other-model with 768 dimensions" in findings(run)["embedding model"]["message"]


def test_a_readable_file_is_a_warning(run: Run, filled: Path) -> None:
    filled.chmod(0o644)

    assert "chmod 600" in findings(run)["permissions"]["advice"]


def test_an_older_schema_is_left_as_it_is(run: Run, db: Path) -> None:
    legacy.create(db, 2)
    before = db.read_bytes()

    assert findings(run)["schema"]["status"] == "warning"
    assert db.read_bytes() == before


def test_a_newer_schema_is_a_problem_and_left_as_it_is(run: Run, filled: Path) -> None:
    database.execute(filled, "PRAGMA user_version = 9")

    assert "schema version 9" in findings(run)["schema"]["message"]
    assert database.rows(filled, "PRAGMA user_version") == [9]


def test_fix_on_a_newer_schema_is_refused_and_changes_nothing(run: Run, filled: Path) -> None:
    database.execute(filled, "PRAGMA user_version = 9")
    before = filled.read_bytes()

    done = run("doctor", "--fix")

    assert done.returncode == 1
    assert "database schema is version 9 but this binary supports up to version 3" in done.stderr
    assert filled.read_bytes() == before


def test_a_damaged_full_text_index_is_mended(run: Run, filled: Path) -> None:
    database.execute(filled, "UPDATE memories_fts_data SET block = zeroblob(20) WHERE id > 10")
    found = findings(run)
    assert found["full-text index"]["status"] == "problem"
    assert "damaged" not in str(found["full-text index"])

    assert findings(run, "--fix")["full-text index"]["status"] == "ok"
    database.check_integrity(filled)


def test_a_lost_vector_table_is_made_anew(run: Run, filled: Path, ollama: FakeOllama) -> None:
    database.execute(filled, "DROP TABLE vec_memories", vectors=True)
    assert "vec_memories is missing" in findings(run)["vectors"]["message"]

    assert findings(run, "--fix")["vectors"]["status"] == "ok"
    assert run("embed", AGENT_MEMORY_OLLAMA_URL=ollama.url).stdout == "embedded: 6, still pending: 0\n"
    assert database.vector_ids(filled) == [1, 2, 3, 4, 5, 6]


def test_a_log_that_another_process_reads_is_not_called_written_back(run: Run, filled: Path) -> None:
    with agent_memory.open(filled, ollama_url=NOBODY) as memory, database.connected(filled) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM memories").fetchall()
        memory.store("in the log", "TODO")
        done = value(run("doctor", "--fix", "--json"))["fixed"]
        reader.execute("ROLLBACK")
    assert "could not write the whole log back: another process is reading" in done


@pytest.mark.parametrize(
    "damage",
    ["last_accessed = 1.5", "tags = '[1]'", "tags = '{}'", "content = x'ff'", "scope = x'00'", "expires_at = ''"],
)
def test_a_value_of_the_wrong_kind_is_found(run: Run, filled: Path, damage: str) -> None:
    database.execute(filled, f"UPDATE memories SET {damage} WHERE id = 4")

    assert "unreadable values in ids 4" in findings(run)["memories"]["message"]


@pytest.mark.parametrize(
    "made", ["CREATE TABLE foo(x); CREATE TABLE memories(a)", "CREATE TABLE foo(x); PRAGMA user_version = 2"]
)
def test_the_database_of_another_program_is_a_problem_and_left_as_it_is(run: Run, db: Path, made: str) -> None:
    db.touch()
    database.execute(db, made)
    before = db.read_bytes()

    found = findings(run)

    assert found["schema"]["message"] == "a SQLite database, but not an agent-memory one"
    assert db.read_bytes() == before


def test_a_log_removed_under_an_open_memory_is_not_called_damage(run: Run, filled: Path) -> None:
    with agent_memory.open(filled, ollama_url=NOBODY) as memory:
        memory.store("in the log", "TODO")
        filled.with_name("memory.db-wal").unlink()
        found = findings(run)
        assert found["integrity"]["status"] != "problem" or "fit together" in found["integrity"]["message"]
        assert "it is damaged" not in str(found)
        assert run("list").returncode in (0, 1)
    assert {finding["status"] for finding in findings(run).values()} <= {"ok", "warning"}
    assert database.count(filled) == 7


def test_fix_on_a_missing_file_fails(run: Run) -> None:
    done = run("doctor", "--fix")

    assert done.returncode == 1
    assert "there is no database at" in done.stderr


def test_a_flipped_byte_in_a_page_is_found(run: Run, filled: Path) -> None:
    database.rows(filled, "PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(filled.read_bytes())
    page = database.rows(filled, "SELECT rootpage FROM sqlite_master WHERE name = 'idx_memories_type'")[0]
    content[(page - 1) * 4096] ^= 0xFF
    filled.write_bytes(content)

    found = findings(run)

    assert found["integrity"]["status"] == "problem"
    assert "restore a backup" in found["integrity"]["advice"]


def test_stress_shows_that_nothing_is_lost_and_leaves_nothing_behind(run: Run, db: Path) -> None:
    done = run("doctor", "--stress", "4x25", "--json")

    report = json.loads(done.stdout)
    assert done.returncode == 0
    assert (report["acknowledged"], report["kept"], report["passed"]) == (100, 100, True)
    assert list(db.parent.iterdir()) == []


def test_without_sqlite_vec_doctor_says_why_search_is_by_keyword(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_connection, "vector_extension", lambda: None)

    found = {finding.check: finding for finding in examine(Settings(db=db, ollama_url=NOBODY))}

    assert found["sqlite-vec"].status == "warning"
    assert "musl" in found["sqlite-vec"].advice


MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb1 /home/local ext4 rw 0 0
//nas/share /mnt/my\\040share cifs rw 0 0
me@host: /mnt/ssh fuse.sshfs rw 0 0
/dev/sdc1 /mnt/ntfs fuseblk rw 0 0
drvfs /mnt/c 9p rw 0 0
tmpfs /both tmpfs rw 0 0
server:/x /both nfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/data/memory.db", None), ("/home/me/memory.db", "nfs4"), ("/home/local/memory.db", None),
        ("/homework/memory.db", None), ("/mnt/my share/memory.db", "cifs"), ("/mnt/ssh/memory.db", "fuse.sshfs"),
        ("/mnt/ntfs/memory.db", None), ("/mnt/c/memory.db", "9p"), ("/both/memory.db", "nfs"),
    ],
)  # fmt: skip
def test_a_remote_file_system_is_known_from_the_mount_table(tmp_path: Path, path: str, kind: str | None) -> None:
    table = tmp_path / "mounts"
    table.write_text(MOUNTS)

    assert remote_file_system(Path(path), table) == kind
    assert remote_file_system(Path(path), tmp_path / "missing") is None


def test_a_remote_file_system_is_used_with_a_rollback_journal_and_a_warning(
    db: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = tmp_path / "mounts"
    table.write_text(f"server:/x {tmp_path} nfs rw 0 0\n")
    monkeypatch.setattr("agent_memory.store.filesystem._MOUNTS", table)

    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        memory.store("x", "TODO")
        assert database.rows(db, "PRAGMA journal_mode") == ["delete"]
    assert "is on a nfs file system" in caplog.text
    found = {finding.check: finding for finding in examine(Settings(db=db, ollama_url=NOBODY))}
    assert found["file system"].status == "warning"

    monkeypatch.setenv("AGENT_MEMORY_JOURNAL", "wal")
    with agent_memory.open(db, ollama_url=NOBODY):
        assert database.rows(db, "PRAGMA journal_mode") == ["wal"]
