"""The folder beside other programs, killed ones, and a computer that stopped."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from memorizz import FileSystemConfig, FileSystemProvider
from memorizz.errors import ConfigurationError
from memorizz.providers.folder_files import system_run
from memorizz.taxonomy import MemoryType

KB = MemoryType.KNOWLEDGE_BASE
PERSONAS = MemoryType.PERSONAS

needs_journal = pytest.mark.skipif(not system_run(), reason="this system does not tell when it was started")


def folder(path: Path, **options: Any) -> FileSystemProvider:
    return FileSystemProvider(FileSystemConfig(root_path=path, **options))


def ids(provider: FileSystemProvider, store: MemoryType = KB) -> list[str]:
    return [record["_id"] for record in provider.scan(store)]


def index(path: Path, store: MemoryType = KB) -> dict[str, Any]:
    items: dict[str, Any] = json.loads((path / store / "index.json").read_text(encoding="utf-8"))["items"]
    return items


def journal(path: Path, store: MemoryType = KB) -> Path:
    return path / store / ".index-journal.jsonl"


class OtherProgram:
    """Writes as the documentation of the folder says: the record file, and the whole index under the lock."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, id: str, record: dict[str, Any], store: MemoryType = KB) -> None:
        temporary = self.root / store / f"{id}.json.0123abcd.tmp"
        temporary.write_text(json.dumps({**record, "_id": id, "id": id}))
        temporary.rename(self.root / store / f"{id}.json")
        with self.entries(store) as items:
            items[id] = {"id": id, "name": record.get("name"), "timestamp": record.get("timestamp")}

    def delete(self, id: str, store: MemoryType = KB) -> None:
        (self.root / store / f"{id}.json").unlink()
        with self.entries(store) as items:
            items.pop(id, None)

    @contextmanager
    def entries(self, store: MemoryType) -> Iterator[dict[str, Any]]:
        with locked(self.root):
            items = index(self.root, store)
            yield items
            temporary = self.root / store / "index.json.0123abcd.tmp"
            temporary.write_text(json.dumps({"version": 1, "items": items}))
            temporary.rename(self.root / store / "index.json")


@contextmanager
def locked(root: Path) -> Iterator[None]:
    connection = apsw.Connection(str(root / ".index-lock.sqlite3"))
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.close()


def test_a_single_put_leaves_the_index_alone_and_closing_brings_it_up_to_date(tmp_path: Path) -> None:
    with folder(tmp_path) as provider:
        before = (tmp_path / KB / "index.json").stat()
        provider.put(KB, [("a", {})])
        provider.put(KB, [("b", {})])
        provider.delete(KB, ["a"])
        assert os.path.samestat(before, (tmp_path / KB / "index.json").stat())
        assert journal(tmp_path).exists()
    assert list(index(tmp_path)) == ["b"]
    assert not journal(tmp_path).exists()


def test_a_journal_that_grew_is_folded_into_the_index(tmp_path: Path) -> None:
    with folder(tmp_path) as provider:
        for n in range(60):
            provider.put(KB, [(f"r{n}", {"content": "x" * 100_000})])
        assert 40 <= len(index(tmp_path)) < 60
        assert journal(tmp_path).stat().st_size < 60 * 100_000 / 2
        assert ids(provider) == [f"r{n}" for n in range(60)]


def test_what_a_process_left_in_its_journal_is_in_the_index_when_the_next_one_opens(tmp_path: Path) -> None:
    provider = folder(tmp_path)
    provider.put(KB, [("a", {})])
    # As a killed process leaves it: `provider` is not closed.
    with folder(tmp_path):
        assert list(index(tmp_path)) == ["a"]
        assert not journal(tmp_path).exists()
    provider.put(KB, [("b", {})])
    assert ids(provider) == ["a", "b"]
    provider.close()
    assert list(index(tmp_path)) == ["a", "b"]


def test_a_line_that_a_killed_process_tore_is_cut_off(tmp_path: Path) -> None:
    provider = folder(tmp_path)
    provider.put(KB, [("a", {})])
    with journal(tmp_path).open("ab") as file:
        file.write(b'{"op": "put", "id": "torn", "mtime')
    assert ids(provider) == ["a"]
    provider.put(KB, [("b", {})])
    assert journal(tmp_path).read_bytes().count(b"\n") == 2
    assert b"torn" not in journal(tmp_path).read_bytes()
    assert ids(provider) == ["a", "b"]
    provider.close()
    assert list(index(tmp_path)) == ["a", "b"]


def test_garbage_in_the_journal_loses_no_record(tmp_path: Path) -> None:
    provider = folder(tmp_path)
    provider.put(KB, [("a", {}), ("b", {})])
    journal(tmp_path).write_bytes(b"\0" * 4096 + b"\n{}\n")
    with folder(tmp_path) as again:
        assert ids(again) == ["a", "b"]
        assert [problem.message for problem in again.problems()] == [
            "a.json is not listed in index.json",
            "b.json is not listed in index.json",
        ]
    provider.close()


def test_records_announced_by_a_process_that_was_killed_before_writing_them_are_not_there(tmp_path: Path) -> None:
    provider = folder(tmp_path)
    provider.put(KB, [("a", {}), ("b", {}), ("kept", {})])
    provider.delete(KB, ["b"])
    (tmp_path / KB / "a.json").unlink()
    (tmp_path / KB / "b.json").write_text('{"content": "its removal was announced only"}')
    for opened in (provider, folder(tmp_path)):
        assert sorted(ids(opened)) == ["b", "kept"]
        assert opened.problems() == []
        opened.close()
    assert sorted(index(tmp_path)) == ["b", "kept"]


def test_another_program_writes_its_index_while_a_journal_is_pending(tmp_path: Path) -> None:
    other = OtherProgram(tmp_path)
    with folder(tmp_path) as provider:
        provider.put(KB, [("ours", {}), ("changed", {"name": "by us"}), ("removed", {})])
        other.put("theirs", {"name": "T"})
        other.put("changed", {"name": "by them"})
        other.delete("removed")
        assert ids(provider) == ["theirs", "changed", "ours"]
        assert provider.problems() == []
        provider.put(KB, [("after", {})])
        other.put("last", {})
        assert provider.problems() == []
    items = index(tmp_path)
    assert sorted(items) == ["after", "changed", "last", "ours", "theirs"]
    assert items["changed"]["name"] == "by them"
    assert items["theirs"] == {"id": "theirs", "name": "T", "timestamp": None}


def test_natural_ids_follow_what_another_program_writes(tmp_path: Path) -> None:
    other = OtherProgram(tmp_path)
    with folder(tmp_path) as provider:
        provider.put(PERSONAS, [("file-1", {"persona_id": "p-1"})])
        assert provider.find(PERSONAS, ["p-1"]) == {"p-1": "file-1"}
        other.put("file-2", {"persona_id": "p-2"}, PERSONAS)
        assert provider.find(PERSONAS, ["p-1", "p-2"]) == {"p-1": "file-1", "p-2": "file-2"}
        other.put("file-1", {"persona_id": "p-9"}, PERSONAS)
        other.put("file-2", {"persona_id": "p-3"}, PERSONAS)
        assert provider.find(PERSONAS, ["p-1", "p-2", "p-3"]) == {"p-3": "file-2"}


def test_a_put_waits_for_a_program_that_holds_the_lock(tmp_path: Path) -> None:
    with folder(tmp_path) as provider:
        with locked(tmp_path):
            writing = threading.Thread(target=provider.put, args=(KB, [("a", {})]))
            writing.start()
            assert provider.get(KB, "a") is None
            assert ids(provider) == []
            # Opening does not wait, it leaves the index to whoever holds the lock.
            with folder(tmp_path, read_only=True) as reader:
                assert ids(reader) == []
        writing.join()
        assert ids(provider) == ["a"]


def computer_stops(source: Path, target: Path) -> Path:
    """A copy of a folder as it may be after a loss of power: written in an earlier run of the system."""
    shutil.copytree(source, target)
    for path in target.glob("*/.index-journal.jsonl"):
        path.write_text(path.read_text().replace(system_run(), "an-earlier-run"))
    return target


@needs_journal
def test_records_that_a_loss_of_power_took_are_made_good_from_the_journal(tmp_path: Path) -> None:
    provider = folder(tmp_path / "before")
    provider.put(KB, [("old", {"n": 1}), ("stale", {"n": 1}), ("gone", {})])
    before = (tmp_path / "before" / KB / "stale.json").read_bytes()
    provider.put(KB, [("lost", {"n": 1}), ("torn", {"n": 2}), ("empty", {"n": 3}), ("stale", {"n": 2})], replace=True)
    provider.delete(KB, ["gone"])
    root = computer_stops(tmp_path / "before", tmp_path / "after")
    provider.close()
    store = root / KB
    (store / "lost.json").unlink()
    (store / "torn.json").write_text('{"n": ')
    (store / "empty.json").write_bytes(b"")
    (store / "stale.json").write_bytes(before)
    os.utime(store / "stale.json", ns=(0, 0))
    with pytest.raises(ConfigurationError, match="open it for writing once"):
        folder(root, read_only=True)
    with folder(root) as after:
        assert [(record["_id"], record.get("n")) for record in after.scan(KB)] == [
            ("old", 1), ("stale", 2), ("lost", 1), ("torn", 2), ("empty", 3),
        ]  # fmt: skip
        assert after.problems() == []
        assert list(index(root)) == ids(after)
    with folder(root, read_only=True) as reader:
        assert len(ids(reader)) == 5


@needs_journal
def test_what_another_program_wrote_before_the_power_was_lost_is_kept(tmp_path: Path) -> None:
    provider = folder(tmp_path / "before")
    provider.put(KB, [("changed", {"name": "by us"}), ("back", {})])
    provider.delete(KB, ["back"])
    root = computer_stops(tmp_path / "before", tmp_path / "after")
    provider.close()
    OtherProgram(root).put("changed", {"name": "by them"})
    OtherProgram(root).put("back", {"name": "again"})
    with folder(root) as after:
        assert {record["_id"]: record["name"] for record in after.scan(KB)} == {"changed": "by them", "back": "again"}


@needs_journal
def test_a_deleted_record_that_a_loss_of_power_brought_back_is_deleted_again(tmp_path: Path) -> None:
    provider = folder(tmp_path / "before")
    provider.put(KB, [("gone", {}), ("kept", {})])
    shutil.copy2(tmp_path / "before" / KB / "gone.json", tmp_path / "gone.json")
    provider.delete(KB, ["gone"])
    root = computer_stops(tmp_path / "before", tmp_path / "after")
    provider.close()
    shutil.copy2(tmp_path / "gone.json", root / KB / "gone.json")
    with folder(root) as after:
        assert ids(after) == ["kept"]
    assert not (root / KB / "gone.json").exists()


def test_temporary_files_of_a_process_killed_long_ago_are_removed(tmp_path: Path) -> None:
    with folder(tmp_path) as provider:
        old, fresh = tmp_path / KB / ".0.0123abcd.tmp", tmp_path / KB / ".0.4567abcd.tmp"
        old.write_text("{")
        fresh.write_text("{")
        os.utime(old, (0, 0))
        provider.put(KB, [("a", {})])
        assert ids(provider) == ["a"]
        assert provider.problems() == []
    assert not old.exists()
    assert fresh.exists()
