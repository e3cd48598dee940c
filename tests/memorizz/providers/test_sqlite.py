"""The one file: whose it is, who may open it, and what a transaction in it is."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import pytest

from memorizz import SQLiteConfig, SQLiteProvider
from memorizz.errors import ConfigurationError, ProviderFault
from memorizz.taxonomy import MemoryType
from tests.memorizz.providers.backends import BACKENDS

KB = MemoryType.KNOWLEDGE_BASE


def opened(path: Path, **options: Any) -> SQLiteProvider:
    return SQLiteProvider(SQLiteConfig(path, **options))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.sqlite3"


def content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_the_file_and_its_log_are_private(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "b"
    with opened(directory / "memory.sqlite3") as provider:
        provider.put(KB, [("a", {})])
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}
    assert modes == dict.fromkeys(["memory.sqlite3", "memory.sqlite3-wal", "memory.sqlite3-shm"], 0o600)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    assert sorted(content(directory)) == ["memory.sqlite3"]


def foreign(path: Path, *, wal: bool, application: int = 0) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA application_id = {application}; CREATE TABLE notes(text)")
    if wal:
        connection.execute("PRAGMA journal_mode = WAL")
    connection.close()


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("kind", ["database", "wal", "other application", "text", "empty"])
def test_a_file_of_another_program_is_refused_and_stays_as_it_was(path: Path, kind: str, read_only: bool) -> None:
    if kind == "text":
        path.write_text("a diary")
    elif kind == "empty":
        path.write_bytes(b"")
    else:
        foreign(path, wal=kind == "wal", application=7 if kind == "other application" else 0)
    before = content(path.parent)
    with pytest.raises(ConfigurationError, match="not a memory of this program"):
        opened(path, read_only=read_only)
    assert content(path.parent) == before


def test_a_file_of_a_newer_version_is_refused_and_stays_as_it_was(path: Path) -> None:
    opened(path).close()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    before = content(path.parent)
    with pytest.raises(ConfigurationError, match="schema version 2, and this program knows up to 1"):
        opened(path)
    assert content(path.parent) == before


def test_a_newer_version_that_is_in_the_log_only_is_refused(path: Path) -> None:
    opened(path).close()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA user_version = 2")
    assert path.read_bytes()[60:64] == bytes([0, 0, 0, 1])
    with pytest.raises(ConfigurationError, match="schema version 2"):
        opened(path)
    connection.close()


def test_a_directory_in_the_way_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be used"):
        opened(tmp_path)


def test_reading_only_reads_what_another_process_left_in_the_log(path: Path) -> None:
    writer = opened(path)
    writer.put(KB, [("a", {})])
    before = content(path.parent)
    with opened(path, read_only=True) as reader:
        assert reader.get(KB, "a") is not None
        writer.put(KB, [("b", {})])
        assert reader.count(KB) == 2
    assert before.keys() == content(path.parent).keys()
    assert before[path.name] == content(path.parent)[path.name]
    writer.close()


def test_a_file_that_was_moved_away_is_not_made_again_by_another_thread(path: Path) -> None:
    with opened(path) as provider:
        provider.put(KB, [("a", {})])
        path.rename(path.with_name("moved"))
        with ThreadPoolExecutor(1) as thread, pytest.raises(ConfigurationError, match="there is no file"):
            thread.submit(provider.get, KB, "a").result()
        assert not path.exists()


def test_a_row_that_holds_no_record_is_said(path: Path) -> None:
    with opened(path) as provider:
        provider.put(KB, [("a", {}), ("b", {}), ("c", {})])
        connection = apsw.Connection(str(path))
        connection.execute("UPDATE records SET data = '{' WHERE id = 'b'")
        connection.close()
        assert [record["_id"] for record in provider.scan(KB)] == ["a", "c"]
        assert provider.count(KB) == 2
        (problem,) = provider.problems()
        assert (problem.store, problem.id) == (KB, "b") and problem.message.startswith("the row is not JSON")
        with pytest.raises(ProviderFault, match="knowledge_base 'b': the row is not JSON"):
            provider.get(KB, "b")


def test_a_transaction_of_another_process_is_seen_as_a_whole(path: Path) -> None:
    place = BACKENDS[1].at(path.parent)
    with place.open() as provider, provider.transaction():
        provider.put(KB, [("a", {})])
        with place.open() as other:
            assert other.get(KB, "a") is None
        provider.put(KB, [("b", {})])
    with place.open() as provider:
        assert provider.count(KB) == 2


def test_a_damaged_file_is_a_fault_and_no_traceback_of_the_library(path: Path) -> None:
    with opened(path) as provider:
        provider.put(KB, [(f"r{n}", {"content": "x" * 500}) for n in range(200)])
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    with pytest.raises(ProviderFault, match="malformed"), opened(path) as provider:
        list(provider.scan(KB))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_is_told_to_open_its_own(path: Path) -> None:
    for place in (backend.at(path.parent) for backend in BACKENDS):
        with place.open() as provider:
            provider.put(KB, [("a", {})])
            child = os.fork()
            if child == 0:
                try:
                    provider.get(KB, "a")
                except ProviderFault:
                    provider.close()
                    os._exit(17)
                os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
            assert provider.get(KB, "a") is not None
