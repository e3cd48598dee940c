"""Imports that cannot be completed: what is taken back, what is not touched, and what the report says."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memorizz import (
    FileSystemConfig,
    FileSystemProvider,
    MemoryArchive,
    MemoryArchiveError,
    MemoryHistory,
    MemoryProvider,
    MemoryType,
    ProviderFault,
    SQLiteConfig,
    SQLiteProvider,
)
from memorizz.records import Record
from tests.memorizz.transfer.test_import import agent, fact, small, stored

KEPT = "nothing of the import is kept: the destination is as it was before"


class Beside(FileSystemProvider):
    """A folder into which another program writes just before each of our writes into one store."""

    other: FileSystemProvider
    theirs: Record

    def put(self, store: MemoryType, records: Sequence[tuple[str, Record]], *, replace: bool = False) -> None:
        if store is MemoryType.KNOWLEDGE_BASE:
            self.other.put(store, [(self.theirs["_id"], self.theirs)], replace=True)
        super().put(store, records, replace=replace)


def test_what_another_program_wrote_meanwhile_is_neither_overwritten_nor_removed(tmp_path: Path) -> None:
    config = FileSystemConfig(tmp_path / "folder")
    with FileSystemProvider(config) as other, Beside(config) as provider:
        provider.other, provider.theirs = other, fact("b", content="theirs")
        made = small(personas=[{"_id": "p", "id": "p", "persona_id": "p"}], knowledge_base=[fact("a"), fact("b")])
        report = MemoryArchive(provider).import_archive(made, dry_run=False)
        assert (report["ok"], report["imported"]) == (False, 0)
        assert [(error["id"], error["error_type"]) for error in report["errors"]] == [("b", "RecordExists")]
        assert report["warnings"][-1] == KEPT
        assert list(other.scan(MemoryType.KNOWLEDGE_BASE)) == [fact("b", content="theirs")]
        assert other.count(MemoryType.PERSONAS) == 0


class Failing(FileSystemProvider):
    """A folder on a disk that fails after some files, and that can be asked not to take anything back."""

    stubborn: frozenset[str] = frozenset()
    error: BaseException = ProviderFault("the disk is gone")

    def put(self, store: MemoryType, records: Sequence[tuple[str, Record]], *, replace: bool = False) -> None:
        if store is MemoryType.TOOL_LOG:
            super().put(store, records[:2], replace=replace)
            raise self.error
        if replace and any("restored" in str(record) for _, record in records):
            super().put(store, records, replace=replace)
        elif replace and self.stubborn.intersection(id for id, _ in records):
            raise ProviderFault("the disk does not take it")
        else:
            super().put(store, records, replace=replace)

    def delete(self, store: MemoryType, ids: Sequence[str]) -> int:
        if self.stubborn.intersection(ids):
            raise ProviderFault("the disk does not let go")
        return super().delete(store, ids)


def entry(id: str) -> Record:
    return {"_id": id, "id": id, "tool_log_id": id, "tool_name": "x"}


def made_to_fail() -> dict[str, Any]:
    return small(
        knowledge_base=[fact("a", content="restored"), fact("b"), fact("c")], tool_log=[entry(id) for id in "tuvw"]
    )


@pytest.mark.parametrize("interruption", [None, KeyboardInterrupt()])
def test_a_batch_that_was_written_in_part_is_taken_back(tmp_path: Path, interruption: BaseException | None) -> None:
    with Failing(FileSystemConfig(tmp_path / "folder")) as provider:
        provider.put(MemoryType.KNOWLEDGE_BASE, [("a", fact("a", content="local"))])
        before = stored(provider)
        if interruption is None:
            report = MemoryArchive(provider).import_archive(made_to_fail(), dry_run=False, conflict="replace")
            assert (report["imported"], report["warnings"][-1]) == (0, KEPT)
            assert [(error["id"], error["message"]) for error in report["errors"]] == [("v", "the disk is gone")]
        else:
            provider.error = interruption
            with pytest.raises(KeyboardInterrupt):
                MemoryArchive(provider).import_archive(made_to_fail(), dry_run=False, conflict="replace")
        assert stored(provider) == before


def test_what_cannot_be_taken_back_is_counted_and_named(tmp_path: Path) -> None:
    with Failing(FileSystemConfig(tmp_path / "folder")) as provider:
        provider.put(MemoryType.KNOWLEDGE_BASE, [("a", fact("a", content="local"))])
        provider.stubborn = frozenset({"a", "c"})
        report = MemoryArchive(provider).import_archive(made_to_fail(), dry_run=False, conflict="replace")
        assert (report["ok"], report["imported"]) == (False, 2)
        assert [(error["id"], error["message"]) for error in report["errors"]] == [
            ("v", "the disk is gone"),
            ("c", "the disk does not let go"),
            ("a", "the disk does not take it"),
        ]
        assert report["warnings"][-1].startswith("2 of the records that were written could not be taken back")
        assert {record["_id"] for record in provider.scan(MemoryType.KNOWLEDGE_BASE)} == {"a", "c"}
        assert provider.count(MemoryType.TOOL_LOG) == 0


def test_agents_are_written_after_all_they_refer_to(tmp_path: Path) -> None:
    written: list[str] = []

    class Watched(FileSystemProvider):
        def put(self, store: MemoryType, records: Sequence[tuple[str, Record]], *, replace: bool = False) -> None:
            written.extend(f"{store}:{id}" for id, _ in records)
            super().put(store, records, replace=replace)

    agents = [
        agent("keel", delegates=["plover", "self"]),
        agent("plover", delegates=["gull"]),
        agent("gull"),
        agent("self", delegates=["self", "keel"]),
    ]
    with Watched(FileSystemConfig(tmp_path / "folder")) as provider:
        made = small(agents=agents, personas=[{"_id": "p", "id": "p"}], summaries=[{"_id": "s", "id": "s"}])
        assert MemoryArchive(provider).import_archive(made, dry_run=False)["ok"]
    assert written == ["personas:p", "summaries:s", "agents:gull", "agents:plover", "agents:self", "agents:keel"]


def test_changes_and_their_history_are_one_transaction(tmp_path: Path) -> None:
    with SQLiteProvider(SQLiteConfig(tmp_path / "m.sqlite3")) as provider:
        MemoryHistory(provider, record_changes=True)
        history = MemoryHistory(provider)

        class Lost:
            def record(self, *_: Any) -> None:
                raise KeyboardInterrupt

        assert MemoryArchive(provider).import_archive(small(knowledge_base=[fact("a")]), dry_run=False)["ok"]
        before = stored(provider)
        assert len(history.timeline().changes) == 1
        provider.recorder = Lost()
        with pytest.raises(KeyboardInterrupt):
            MemoryArchive(provider).import_archive(small(knowledge_base=[fact("b")]), dry_run=False)
        assert stored(provider) == before


def test_a_history_that_cannot_be_written_is_a_warning(target: MemoryProvider) -> None:
    class Broken:
        def record(self, *_: Any) -> None:
            raise ProviderFault("no room for it")

    target.recorder = Broken()
    made = small(knowledge_base=[fact("a"), fact("b")])
    report = MemoryArchive(target).import_archive(made, dry_run=False)
    assert (report["ok"], report["imported"]) == (True, 2)
    assert report["warnings"][-1].startswith("2 of the changes are missing from the history")


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_destination_that_lets_nobody_write_is_refused_before_anything_else(tmp_path: Path, dry_run: bool) -> None:
    path = tmp_path / "m.sqlite3"
    with SQLiteProvider(SQLiteConfig(path)) as provider:
        assert MemoryArchive(provider).import_archive(small(knowledge_base=[fact("a")]), dry_run=False)["ok"]
        with sqlite3.connect(path) as file:
            # As a program would whose database this has become.
            file.execute("CREATE TRIGGER full BEFORE INSERT ON records BEGIN SELECT RAISE(ABORT, 'full'); END")
        report = MemoryArchive(provider).import_archive(small(knowledge_base=[fact("b")]), dry_run=False)
        assert report["ok"] is False
        assert report["errors"][0]["id"] == "b"
    folder = tmp_path / "folder"
    with FileSystemProvider(FileSystemConfig(folder)) as provider:
        lock = folder / ".index-lock.sqlite3"
        lock.unlink(missing_ok=True)
        lock.mkdir()
        with pytest.raises(MemoryArchiveError, match="the destination cannot be written to"):
            MemoryArchive(provider).import_archive(small(knowledge_base=[fact("a")]), dry_run=dry_run)
        lock.rmdir()


KILLED = """
import json, os, signal, sys
from memorizz import FileSystemConfig, FileSystemProvider, MemoryArchive, MemoryType

class Killed(FileSystemProvider):
    def put(self, store, records, *, replace=False):
        if store is MemoryType.MEMAGENT:
            os.kill(os.getpid(), signal.SIGKILL)
        super().put(store, records, replace=replace)

provider = Killed(FileSystemConfig(sys.argv[1]))
MemoryArchive(provider).import_file(sys.argv[2], dry_run=False, conflict=sys.argv[3])
"""


@pytest.mark.parametrize("conflict", ["skip", "replace"])
def test_a_killed_import_leaves_agents_whole_and_is_completed_by_a_repeat(tmp_path: Path, conflict: Any) -> None:
    live = agent("keel", delegates=["plover"], persona={"persona_id": "p"}, llm_config={"api_key": "live"})
    with FileSystemProvider(FileSystemConfig(tmp_path / "source")) as source:
        rows = [agent("keel", instruction="restored", llm_config={}), agent("gull")]
        source.put(MemoryType.MEMAGENT, [(row["_id"], row) for row in rows])
        source.put(MemoryType.KNOWLEDGE_BASE, [(id, fact(id)) for id in "abc"])
        MemoryArchive(source).export_file(tmp_path / "a.memorizz.json")
    with FileSystemProvider(FileSystemConfig(tmp_path / "folder")) as provider:
        provider.put(MemoryType.MEMAGENT, [("keel", live), ("plover", agent("plover"))])
    arguments = [sys.executable, "-c", KILLED, str(tmp_path / "folder"), str(tmp_path / "a.memorizz.json"), conflict]
    assert subprocess.run(arguments, check=False).returncode == -9
    with FileSystemProvider(FileSystemConfig(tmp_path / "folder")) as provider:
        assert provider.get(MemoryType.MEMAGENT, "keel") == live
        assert provider.count(MemoryType.KNOWLEDGE_BASE) == 3
        report = MemoryArchive(provider).import_file(tmp_path / "a.memorizz.json", dry_run=False, conflict=conflict)
        assert report["ok"], report["errors"]
        assert provider.count(MemoryType.MEMAGENT) == 3
        record = provider.get(MemoryType.MEMAGENT, "keel")
        assert record is not None
        assert record["llm_config"] == {"api_key": "live"}
