"""Exports and imports that are stopped half-way, and others that write meanwhile."""

from __future__ import annotations

import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import agent_memory
from tests.support import database
from tests.support.ollama import NOBODY
from tests.support.polling import eventually
from tests.support.portable import exported, file, link, memory, records, run, strict_records
from tests.support.processes import open_files, run_together
from tests.support.stdio import TIMEOUT, command, environment

MANY = 20_000
ROWS = 60_000


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with enough in it that an export takes a while."""
    path = tmp_path_factory.mktemp("original") / "memory.db"
    with agent_memory.open(path, ollama_url=NOBODY) as am:
        am.store("first", "TODO")
    database.fill(path, ROWS, content="fact {n} of many")
    return path


@pytest.fixture
def filled(db: Path, original: Path) -> Path:
    """``db``, a copy of it."""
    shutil.copy(original, db)
    return db


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file whose import takes a while."""
    path = tmp_path_factory.mktemp("large") / "large.jsonl"
    memories = [memory(key, f"fact {key} " * 40, tags=[str(key)]) for key in range(1, MANY + 1)]
    path.write_bytes(file(*memories, *(link(key, key + 1) for key in range(1, MANY))))
    return path


@contextmanager
def started(db: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command that runs; it is killed when the block ends."""
    with subprocess.Popen(
        command(*arguments),
        env=environment(AGENT_MEMORY_DB=str(db)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        # A shell lets its background jobs, and all that they start, ignore interrupts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1


@pytest.mark.parametrize("log_bytes", [1, 1_000_000, 8_000_000])
def test_a_killed_import_has_not_happened_and_can_be_run_again(db: Path, large: Path, log_bytes: int) -> None:  # F6
    with agent_memory.open(db, ollama_url=NOBODY) as am:
        am.store("kept", "TODO")
        am.store("fact 7 " * 40, "TODO")
        am.link(1, 2, "caused_by")
    before = database.everything(db)
    with started(db, "import", "--from", "jsonl", str(large)) as importing:
        log = db.with_name(f"{db.name}-wal")
        eventually(lambda: size(log) >= log_bytes or importing.poll() is not None)
        importing.send_signal(signal.SIGSTOP)
        # Nobody sees a part of it, not even while it stands still.
        seen = database.count(db)
        assert seen in (2, MANY + 1)
        importing.send_signal(signal.SIGKILL)
        importing.wait(TIMEOUT)
    assert database.count(db) == seen
    assert database.everything(db) == before or seen > 2
    database.check_integrity(db)
    done = run(db, "import", "--from", "jsonl", str(large))
    assert done.stdout.decode().startswith(f"imported: {MANY + 1 - seen}, skipped duplicates: ")
    assert (database.count(db), database.count(db, "memory_links")) == (MANY + 1, MANY)
    assert database.rows(db, "SELECT from_id, to_id, kind FROM memory_links ORDER BY 1")[0] == (1, 2, "caused_by")
    database.check_integrity(db)
    again = run(db, "import", "--from", "jsonl", str(large))
    assert again.stdout.decode().startswith(f"imported: 0, skipped duplicates: {MANY}, skipped expired: 0, links imp")
    assert (database.count(db), database.count(db, "memory_links")) == (MANY + 1, MANY)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_import_has_not_happened(db: Path, large: Path, how: signal.Signals) -> None:
    with agent_memory.open(db, ollama_url=NOBODY) as am:
        am.store("kept", "TODO")
    before = database.everything(db)
    with started(db, "import", "--from", "jsonl", str(large)) as importing:
        log = db.with_name(f"{db.name}-wal")
        eventually(lambda: size(log) >= 1 or importing.poll() is not None)
        importing.send_signal(how)
        output, errors = importing.communicate(timeout=TIMEOUT)
    assert importing.returncode != 0
    assert output == b""
    assert b"Traceback" not in errors
    assert database.everything(db) == before
    database.check_integrity(db)


@pytest.mark.parametrize("old", [None, b"an older export"], ids=["no file", "a file"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_export_leaves_the_path_as_it_was(
    filled: Path, tmp_path: Path, how: signal.Signals, old: bytes | None
) -> None:
    directory = tmp_path / "out"
    directory.mkdir()
    target = directory / "memories.jsonl"
    if old is not None:
        target.write_bytes(old)
    with started(filled, "export", "--output", str(target)) as exporting:
        temporary = target.with_name(f"{target.name}.export-tmp-{exporting.pid}")
        eventually(lambda: size(temporary) >= 0 or exporting.poll() is not None)
        exporting.send_signal(signal.SIGSTOP)
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
        assert (target.read_bytes() if target.exists() else None) == old
        exporting.send_signal(how)
        exporting.send_signal(signal.SIGCONT)
        _, errors = exporting.communicate(timeout=TIMEOUT)
    assert exporting.returncode != 0
    assert b"Traceback" not in errors
    assert (target.read_bytes() if target.exists() else None) == old
    if how != signal.SIGKILL:
        assert not temporary.exists()
    assert run(filled, "export", "--output", str(target)).returncode == 0
    assert len(strict_records(target.read_bytes())) == ROWS + 2
    database.check_integrity(filled)


def test_an_export_shows_one_moment_while_others_write(filled: Path) -> None:  # 15.3
    with agent_memory.open(filled, ollama_url=NOBODY) as am, started(filled, "export") as exporting:
        before = records(exported(am))[1:]
        assert exporting.stdout is not None
        # It has begun, and stands still as long as nobody reads on.
        first = exporting.stdout.readline()
        am.store("later", "TODO")
        am.link(1, ROWS + 2, "supersedes")
        am.link(5, 6, "supersedes")
        assert am.forget(ROWS).deleted
        am.update(ROWS - 1, content="changed")
        database.execute(filled, "PRAGMA wal_checkpoint(PASSIVE)")
        data = first + exporting.stdout.read()
        assert exporting.wait(TIMEOUT) == 0
    assert strict_records(data)[1:] == before


def test_every_export_among_many_writers_is_whole(db: Path) -> None:  # 15.3, E2
    agent_memory.open(db, ollama_url=NOBODY).close()
    program = """
import io
from tests.support.portable import exported, imported, strict_records

with agent_memory.open(db, ollama_url="http://127.0.0.1:9") as am:
    barrier()
    last = None
    for turn in range(40):
        if number < 3:
            # Each memory stands in a chain with the one before; the oldest go.
            new = am.store(f"process {number} fact {turn}", "TODO", source=str(number))
            if last is not None:
                am.link(new, last, "caused_by")
            if turn % 5 == 4:
                am.forget(new)
                new = None
            last = new
        elif turn % 4 == 0:
            found = strict_records(exported(am))
            chains = {}
            for record in found[1:]:
                if record["record"] == "memory":
                    chains.setdefault(record["source"], []).append(int(record["content"].split()[-1]))
            for chain in chains.values():
                assert chain == sorted(chain)
                # At most the one that is about to be forgotten.
                assert sum(turn % 5 == 4 for turn in chain) <= 1, chain
print("done")
"""
    assert [output.split() for output in run_together(program, db, 5)] == [["done"]] * 5
    assert database.count(db) == 3 * 32
    database.check_integrity(db)


def test_imports_at_once_from_many_processes_add_each_memory_once(db: Path) -> None:
    data = file(*(memory(key, f"fact {key}") for key in range(1, 201)), *(link(key, key + 1) for key in range(1, 200)))
    db.with_name("given.jsonl").write_bytes(data)
    program = """
from pathlib import Path
from tests.support.portable import imported

data = Path(db).with_name("given.jsonl").read_bytes()
barrier()
with agent_memory.open(db, ollama_url="http://127.0.0.1:9") as am:
    print(*imported(am, data)[:2])
"""
    outputs = sorted(run_together(program, db, 4))
    assert outputs == ["0 200\n"] * 3 + ["200 0\n"]
    assert (database.count(db), database.count(db, "memory_links")) == (200, 199)


def test_an_import_waits_for_a_foreign_writer(db: Path, tmp_path: Path) -> None:  # E3
    agent_memory.open(db, ollama_url=NOBODY).close()
    given = tmp_path / "given.jsonl"
    given.write_bytes(file(memory(1, "a")))
    with database.connected(db) as foreign:
        foreign.execute("BEGIN IMMEDIATE")
        with started(db, "import", "--from", "jsonl", str(given)) as importing:
            assert importing.stdout is not None
            # It has the file open, and waits.
            eventually(lambda: any(str(db) in held for held in open_files(importing.pid)))
            assert importing.poll() is None
            foreign.execute("COMMIT")
            assert importing.stdout.read().startswith(b"imported: 1,")
