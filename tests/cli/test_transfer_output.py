"""Where an export goes: a private file that is whole or not there, a pipe, and what a terminal shows meanwhile."""

from __future__ import annotations

import os
import pty
import resource
import stat
import subprocess
from pathlib import Path

import pytest

import agent_memory
from tests.support import database
from tests.support.ollama import NOBODY
from tests.support.portable import records, run, strict_records
from tests.support.stdio import TIMEOUT, command, environment


@pytest.fixture
def filled(db: Path) -> Path:
    """``db`` with two linked memories."""
    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        memory.store("a", "TODO")
        memory.store("b", "TODO")
        memory.link(1, 2, "supersedes")
    return db


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A path in a directory of its own."""
    directory = tmp_path / "out"
    directory.mkdir()
    return directory / "größe & co.jsonl"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(directory: Path) -> list[str]:
    return [found.name for found in directory.iterdir()]


def without_time(data: bytes) -> list[object]:
    return [{**record, "exported_at": 0} for record in records(data)]


@pytest.mark.parametrize("umask", [0, 0o077])
@pytest.mark.parametrize("before", [None, 0o644, 0o400])
def test_the_output_is_private_whole_and_alone(filled: Path, target: Path, umask: int, before: int | None) -> None:
    if before is not None:
        target.write_bytes(b"an older export")
        target.chmod(before)
    done = run(filled, "export", "--output", str(target), umask=umask)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"exported 2 memories and 1 links\n")
    assert len(strict_records(target.read_bytes())) == 4
    assert mode(target) == 0o600
    assert names(target.parent) == [target.name]
    if umask == 0:
        assert without_time(target.read_bytes()) == without_time(run(filled, "export").stdout)


def test_the_output_may_be_named_from_where_one_stands(filled: Path, target: Path) -> None:
    assert run(filled, "export", "--output", target.name, cwd=target.parent).returncode == 0
    assert len(strict_records(target.read_bytes())) == 4


def test_a_link_in_the_place_of_the_output_is_replaced_and_what_it_led_to_is_left_alone(
    filled: Path, target: Path, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept")
    for leads_to in (precious, tmp_path / "nowhere"):
        target.unlink(missing_ok=True)
        target.symlink_to(leads_to)
        assert run(filled, "export", "--output", str(target)).returncode == 0
        assert not target.is_symlink()
        assert len(strict_records(target.read_bytes())) == 4
    assert precious.read_text() == "kept"
    assert not (tmp_path / "nowhere").exists()


def test_what_another_export_has_begun_is_left_to_it(filled: Path, target: Path) -> None:
    other = target.with_name(f"{target.name}.export-tmp-1")
    other.write_text("half")
    assert run(filled, "export", "--output", str(target)).returncode == 0
    assert other.read_text() == "half"


OTHER_NAMES = {
    "its path": "{db}",
    "its name": "memory.db",
    "a detour": "{db.parent}/out/../memory.db",
    "its log": "{db}-wal",
    "its index": "memory.db-shm",
    "its journal": "{db}-journal",
    "a linked directory": "linked/memory.db-wal",
    "a link": "link.db",
    "a hard link": "hard.db",
}


@pytest.mark.parametrize("name", OTHER_NAMES)
@pytest.mark.parametrize("opened", [True, False], ids=["open", "closed"])
def test_the_database_is_not_overwritten_whatever_it_is_called(
    filled: Path, target: Path, name: str, opened: bool
) -> None:
    (filled.parent / "linked").symlink_to(filled.parent)
    (filled.parent / "link.db").symlink_to(filled)
    os.link(filled, filled.parent / "hard.db")
    with agent_memory.open(filled if opened else target, ollama_url=NOBODY) as memory:
        memory.store("in the log", "TODO")
        done = run(filled, "export", "--output", OTHER_NAMES[name].format(db=filled), cwd=filled.parent)
        assert (done.returncode, done.stdout) == (2, b"")
        assert "Error: --output must not be the database itself" in done.stderr.decode()
    assert database.count(filled) == (3 if opened else 2)
    database.check_integrity(filled)


def test_a_database_that_is_not_there_yet_is_not_overwritten_either(db: Path) -> None:
    assert run(db, "export", "--output", str(db)).returncode == 2
    assert not db.exists()


def test_a_place_that_is_no_file_is_refused(filled: Path, target: Path) -> None:
    os.mkfifo(target)
    for path in (target, target.parent, Path("/dev/null"), Path("/dev/full")):
        before = path.lstat().st_mode
        done = run(filled, "export", "--output", str(path))
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr.decode() == f"Error: --output must name a file (got {str(path)!r})\n"
        assert path.lstat().st_mode == before
    assert run(filled, "export", "--output", "").returncode == 2


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("missing/x.jsonl", "No such file or directory"),
        ("file/x.jsonl", "Not a directory"),
        ("n" * 250, "File name too long"),
    ],
)
def test_a_place_where_no_file_can_be_is_named(filled: Path, target: Path, path: str, reason: str) -> None:
    (target.parent / "file").touch()
    done = run(filled, "export", "--output", path, cwd=target.parent)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == f"Error: writing {path}: {reason}\n"
    assert names(target.parent) == ["file"]


def test_an_export_that_fails_leaves_what_was_there_and_nothing_else(filled: Path, target: Path) -> None:
    target.write_bytes(b"an older export")
    target.chmod(0o644)
    database.execute(filled, "UPDATE memories SET mem_type = 'NOTE' WHERE id = 2")
    done = run(filled, "export", "--output", str(target))
    assert (done.returncode, done.stdout) == (1, b"")
    assert "Error: export failed due to a storage error (details are in the server log)\n" in done.stderr.decode()
    assert "memory 2 has the unknown type 'NOTE'" in done.stderr.decode()
    assert (target.read_bytes(), mode(target)) == (b"an older export", 0o644)
    target.unlink()
    assert run(filled, "export", "--output", str(target)).returncode == 1
    assert names(target.parent) == []


def test_an_export_that_finds_no_room_leaves_what_was_there_and_nothing_else(filled: Path, target: Path) -> None:
    database.fill(filled, 3_000, content="x" * 1_000)
    target.write_bytes(b"an older export")
    done = subprocess.run(
        command("export", "--output", str(target)),
        env=environment(AGENT_MEMORY_DB=str(filled)),
        capture_output=True,
        timeout=TIMEOUT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, 1_500_000)),
    )
    assert done.returncode == 1
    assert done.stderr.decode() == f"Error: writing {target}: File too large\n"
    assert target.read_bytes() == b"an older export"
    assert names(target.parent) == [target.name]


def test_a_row_that_no_import_accepts_is_warned_of_on_standard_error(filled: Path) -> None:
    database.execute(filled, "UPDATE memories SET content = '' WHERE id = 1")
    done = run(filled, "export")
    assert done.returncode == 0
    assert len(records(done.stdout)) == 4
    assert b"memory 1 is exported, but no import will accept the file" in done.stderr
    assert done.stderr.endswith(b"exported 2 memories and 1 links\n")


def test_standard_output_that_takes_no_more_is_told_once(filled: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command("export"), env=environment(AGENT_MEMORY_DB=str(filled)), stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 1
    assert done.stderr == b"Error: writing standard output: No space left on device\n"


def test_a_reader_that_has_seen_enough_gets_no_traceback(filled: Path) -> None:
    database.fill(filled, 3_000, content="x" * 1_000)
    with subprocess.Popen(
        command("export"), env=environment(AGENT_MEMORY_DB=str(filled)), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as exporting:
        assert exporting.stdout is not None and exporting.stderr is not None
        exporting.stdout.readline()
        exporting.stdout.close()
        assert b"Traceback" not in exporting.stderr.read()
    database.check_integrity(filled)


def on_a_terminal(db: Path, output: Path, *arguments: str) -> str:
    """What a command writes to the terminal that its standard error is; its standard output goes to a file."""
    controller, terminal = pty.openpty()
    with output.open("wb") as stdout:
        process = subprocess.Popen(
            command(*arguments),
            env=environment(AGENT_MEMORY_DB=str(db), TERM="xterm", COLUMNS="100"),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=terminal,
        )
    os.close(terminal)
    shown = b""
    try:
        while part := os.read(controller, 65_536):
            shown += part
    except OSError:
        pass  # the end of a terminal
    os.close(controller)
    assert process.wait(TIMEOUT) == 0, shown
    return shown.decode()


def test_a_long_export_and_import_show_their_progress_on_a_terminal_and_nowhere_else(
    filled: Path, target: Path, tmp_path: Path
) -> None:
    database.fill(filled, 19_997, content="fact {n}")
    shown = on_a_terminal(filled, target, "export")
    assert "exporting" in shown and "100%" in shown and "exported 19999 memories and 1 links" in shown
    silent = run(filled, "export")
    assert silent.stderr == b"exported 19999 memories and 1 links\n"
    assert without_time(target.read_bytes()) == without_time(silent.stdout)

    report = tmp_path / "report"
    shown = on_a_terminal(tmp_path / "copy.db", report, "import", "--from", "jsonl", str(target))
    assert "checking" in shown and "importing" in shown and "100%" in shown
    assert report.read_text().startswith("imported: 19999, skipped duplicates: 0, ")
    assert "\x1b" not in report.read_text()
    again = run(tmp_path / "copy.db", "import", "--from", "jsonl", str(target))
    assert again.stderr == b""


def test_a_short_export_shows_no_progress(filled: Path, target: Path) -> None:
    database.fill(filled, 19_996, content="fact {n}")
    assert "exporting" not in on_a_terminal(filled, target, "export")
    assert len(target.read_bytes().splitlines()) == 20_000


def test_a_dash_is_standard_output(filled: Path, tmp_path: Path) -> None:
    done = run(filled, "export", "--output", "-", cwd=tmp_path)
    assert len(strict_records(done.stdout)) == 4
    assert names(tmp_path) == [filled.name]


def test_a_closed_standard_output_is_no_export(filled: Path) -> None:
    closed = f"exec {' '.join(command('--db', str(filled), 'export'))} >&-"
    done = subprocess.run(["sh", "-c", closed], env=environment(), capture_output=True, timeout=TIMEOUT)
    assert done.returncode == 1
    assert b"Error: standard output is closed; name a file with --output" in done.stderr


def test_a_device_is_never_replaced(filled: Path) -> None:
    before = sorted(path.name for path in Path("/dev").iterdir())
    for device in ("/dev/stdout", "/dev/null", "/dev/new.jsonl"):
        done = run(filled, "export", "--output", device)
        assert (done.returncode, done.stdout) == (2, b"")
        assert "Error: --output must name a file" in done.stderr.decode()
    assert sorted(path.name for path in Path("/dev").iterdir()) == before
