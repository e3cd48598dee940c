"""Settings: a flag wins over the environment, which wins over the default."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import agent_memory
from agent_memory import InvalidSetting, app
from agent_memory.config import Settings
from tests.support.clock import Clock
from tests.support.ollama import NOBODY, FakeOllama


def test_the_flag_wins_and_its_directory_is_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # 15.1 #55
    monkeypatch.setenv("AGENT_MEMORY_DB", str(tmp_path / "env.db"))
    with agent_memory.open(tmp_path / "deep" / "flag.db", ollama_url=NOBODY) as memory:
        assert memory.path == tmp_path / "deep" / "flag.db"
    assert (tmp_path / "deep" / "flag.db").is_file()
    assert not (tmp_path / "env.db").exists()


def test_the_environment_is_used_without_a_flag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ollama: FakeOllama
) -> None:  # 15.1 #56
    monkeypatch.setenv("AGENT_MEMORY_DB", str(tmp_path / "env.db"))
    monkeypatch.setenv("AGENT_MEMORY_OLLAMA_URL", ollama.url)
    with agent_memory.open() as memory:
        assert memory.path == tmp_path / "env.db"
        assert memory.search("x").search_mode == "hybrid"


def test_the_default_file_lies_in_the_data_directory_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    settings = Settings.resolve()
    assert settings.db == tmp_path / "data" / "agent-memory" / "memory.db"
    assert settings.ollama_url == "http://localhost:11434"
    assert (settings.sweep_secs, settings.strict_query, settings.journal) == (3600.0, False, "auto")


def test_an_empty_variable_counts_as_unset() -> None:
    empty = dict.fromkeys(
        ("AGENT_MEMORY_DB", "AGENT_MEMORY_OLLAMA_URL", "AGENT_MEMORY_SWEEP_SECS", "AGENT_MEMORY_STRICT_QUERY"), ""
    )
    assert Settings.resolve(environ=empty) == Settings.resolve(environ={})


@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [
        ("AGENT_MEMORY_OLLAMA_URL", "localhost:11434", "AGENT_MEMORY_OLLAMA_URL"),
        ("AGENT_MEMORY_OLLAMA_URL", "ftp://x", "AGENT_MEMORY_OLLAMA_URL"),
        ("AGENT_MEMORY_OLLAMA_URL", "http://", "AGENT_MEMORY_OLLAMA_URL"),
        ("AGENT_MEMORY_OLLAMA_URL", "http://x:99999", "AGENT_MEMORY_OLLAMA_URL"),
        ("AGENT_MEMORY_OLLAMA_URL", "http://foo..bar:11434", "AGENT_MEMORY_OLLAMA_URL"),
        ("AGENT_MEMORY_OLLAMA_URL", f"http://{'x' * 64}:9", "AGENT_MEMORY_OLLAMA_URL"),
        ("AGENT_MEMORY_OLLAMA_URL", "http://ex ample:9", "AGENT_MEMORY_OLLAMA_URL"),
        ("AGENT_MEMORY_OLLAMA_URL", "http://127.0.0.1:9/é", "AGENT_MEMORY_OLLAMA_URL"),
        ("AGENT_MEMORY_SWEEP_SECS", "0", "AGENT_MEMORY_SWEEP_SECS"),
        ("AGENT_MEMORY_SWEEP_SECS", "soon", "AGENT_MEMORY_SWEEP_SECS"),
        ("AGENT_MEMORY_SWEEP_SECS", "nan", "AGENT_MEMORY_SWEEP_SECS"),
        ("AGENT_MEMORY_STRICT_QUERY", "maybe", "AGENT_MEMORY_STRICT_QUERY"),
        ("AGENT_MEMORY_JOURNAL", "memory", "AGENT_MEMORY_JOURNAL"),
        ("AGENT_MEMORY_LOG", "loud", "AGENT_MEMORY_LOG"),
    ],
)
def test_a_value_that_breaks_its_rule_is_refused_naming_its_origin(variable: str, value: str, named: str) -> None:
    with pytest.raises(InvalidSetting, match=named) as caught:
        Settings.resolve(environ={variable: value})
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://[::1]:11434", "https://gpu.local./base/", "http://LOCALHOST", "http://127.0.0.1"]
)
def test_any_plain_address_is_an_address(url: str) -> None:
    assert Settings.resolve(ollama_url=url, environ={}).ollama_url == url


def test_words_of_a_choice_may_be_in_upper_case() -> None:
    assert Settings.resolve(environ={"AGENT_MEMORY_LOG": "INFO", "AGENT_MEMORY_JOURNAL": "WAL"}).journal == "wal"


def test_a_user_without_a_home_is_told_to_name_a_file(tmp_path: Path) -> None:
    program = (
        "import os, pwd\n"
        "def nobody(*_): raise KeyError('no such user')\n"
        "pwd.getpwuid = nobody\n"
        "import sys; sys.argv = ['agent-memory', 'serve']\n"
        "from agent_memory.__main__ import main; sys.exit(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PATH": os.environ["PATH"]}, capture_output=True, cwd=tmp_path
    )
    assert done.returncode == 2
    assert b"could not determine the OS data directory for the default database path" in done.stderr
    assert b"AGENT_MEMORY_DB" in done.stderr
    assert b"Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_flag_that_breaks_its_rule_is_named_as_a_flag() -> None:
    with pytest.raises(InvalidSetting, match="--sweep-secs"):
        Settings.resolve(sweep_secs="x", environ={})


@pytest.mark.parametrize(("text", "strict"), [("1", True), ("TRUE", True), ("on", True), ("0", False), ("no", False)])
def test_a_switch_takes_the_usual_words(text: str, strict: bool) -> None:
    assert Settings.resolve(environ={"AGENT_MEMORY_STRICT_QUERY": text}).strict_query is strict


def test_the_system_clock_tells_unix_seconds() -> None:  # 15.1 #1
    assert isinstance(app.system_clock(), int)
    assert app.system_clock() > 1_700_000_000


def test_the_test_clock_advances_and_can_be_set() -> None:  # 15.1 #2
    clock = Clock()
    clock.advance(5)
    assert clock() == 1_005
    clock.now = 7
    assert clock() == 7
