"""`memorizz connect`, and which memory the commands work on."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

import memorizz
from tests.memorizz.cli.conftest import Run


def test_what_is_connected_is_remembered_privately(run: Run, tmp_path: Path) -> None:
    done = run("connect", "sqlite", "--path", "m.sqlite3")
    settings = tmp_path / "home" / ".memorizz" / ".env"
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"sqlite at {tmp_path}/m.sqlite3, remembered in {settings}\n"
    assert stat.S_IMODE(settings.stat().st_mode) == 0o600
    assert run("connect").stdout == f"sqlite at {tmp_path}/m.sqlite3 (from {settings})\n"
    assert run("memory", "export", "out.json").returncode == 0


def test_other_lines_of_the_settings_stay(run: Run, tmp_path: Path) -> None:
    settings = tmp_path / "settings.env"
    settings.write_text('# mine\nOTHER="x"\nMEMORIZZ_BACKEND=filesystem\n')
    assert run("connect", "sqlite", "--path", "m.sqlite3", MEMORIZZ_ENV_FILE=str(settings)).returncode == 0
    assert settings.read_text() == (
        f'# mine\nOTHER="x"\nMEMORIZZ_BACKEND="sqlite"\nMEMORIZZ_SQLITE_PATH="{tmp_path}/m.sqlite3"\n'
    )


def test_a_flag_wins_over_the_environment_and_that_over_the_file(run: Run, tmp_path: Path) -> None:
    run("connect", "sqlite", "--path", "file.sqlite3")
    assert "file.sqlite3" in run("connect").stdout
    variables = {"MEMORIZZ_BACKEND": "filesystem", "MEMORIZZ_MEMORY_ROOT": str(tmp_path / "root")}
    assert (
        run("connect", **variables).stdout
        == f"filesystem at {tmp_path}/root (from MEMORIZZ_BACKEND and MEMORIZZ_MEMORY_ROOT)\n"
    )
    refused = run("memory", "timeline", "--backend", "sqlite", "--path", "flag.sqlite3", **variables)
    assert "there is no sqlite memory at" in refused.stderr
    assert "flag.sqlite3 (from --backend and --path)" in refused.stderr


def test_without_any_setting_it_is_the_folder_of_the_reference(run: Run, tmp_path: Path) -> None:
    assert run("connect").stdout == f"filesystem at {tmp_path}/home/.memorizz/memory (from default)\n"
    moved = run("connect", MEMORIZZ_HOME=str(tmp_path / "elsewhere"))
    assert moved.stdout == f"filesystem at {tmp_path}/elsewhere/memory (from default)\n"


@pytest.mark.parametrize("backend", ["redis", "nonsense"])
def test_a_backend_that_is_not_there_is_refused_naming_those_that_are(run: Run, backend: str) -> None:
    for command in (("connect",), ("memory", "export", "x.json"), ("memory", "timeline")):
        done = run(*command, MEMORIZZ_BACKEND=backend)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"'{backend}' (from MEMORIZZ_BACKEND) is not part of this version" in done.stderr
        assert "filesystem, sqlite" in done.stderr
    assert run("connect", backend).returncode == 2


def test_settings_that_cannot_be_read_and_paths_that_cannot_be_made_are_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.env").write_bytes(b"\xff\xfe")
    done = run("connect", MEMORIZZ_ENV_FILE=str(tmp_path / "bad.env"))
    assert (done.returncode, "bad.env" in done.stderr) == (2, True)
    (tmp_path / "file").write_text("x")
    done = run("connect", "filesystem", "--path", "file/below")
    assert done.returncode in (1, 2)
    assert "file" in done.stderr
    assert not (tmp_path / "home").exists()


def test_the_command_and_its_version() -> None:
    done = subprocess.run([Path(sys.executable).parent / "memorizz", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"memorizz {memorizz.__version__}\n")


def test_a_path_with_a_quote_is_remembered_and_one_that_cannot_be_makes_nothing(run: Run, tmp_path: Path) -> None:
    assert run("connect", "sqlite", "--path", "it's.sqlite3").returncode == 0
    assert "it's.sqlite3" in run("connect").stdout
    refused = run("connect", "sqlite", "--path", "both'\".sqlite3")
    assert refused.returncode == 2
    assert "both kinds of quotes" in refused.stderr
    assert not (tmp_path / "both'\".sqlite3").exists()


def test_a_link_to_the_settings_stays_a_link(run: Run, tmp_path: Path) -> None:
    real = tmp_path / "kept.env"
    real.write_text("# mine\n")
    link = tmp_path / "link.env"
    link.symlink_to(real)
    assert run("connect", "sqlite", "--path", "a.sqlite3", MEMORIZZ_ENV_FILE=str(link)).returncode == 0
    assert link.is_symlink()
    assert real.read_text().startswith("# mine\nMEMORIZZ_BACKEND=")


@pytest.mark.parametrize(
    "before", [b"", b"# mine\n", b"# mine", b"\xef\xbb\xbfA=1\r\nB=2\r\n", b"A=1\r\nB=2", b"export A=1\n\n\n"]
)
def test_other_bytes_of_the_settings_stay(run: Run, tmp_path: Path, before: bytes) -> None:
    file = tmp_path / "kept.env"
    file.write_bytes(before)
    file.chmod(0o640)
    variables = {"MEMORIZZ_ENV_FILE": str(file), "MEMORIZZ_HOME": str(tmp_path / "h"), "PATH": "/nowhere"}
    url = "https://memory.example.com/mcp"
    assert run("plugin", "install", "codex", "--remote", url, **variables).returncode == 0
    assert url.encode() in file.read_bytes()
    assert run("plugin", "uninstall", "codex", **variables).returncode == 0
    assert file.read_bytes() == before
    assert file.stat().st_mode & 0o777 == 0o640
