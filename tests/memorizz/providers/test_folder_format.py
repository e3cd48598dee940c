"""The folder's format: what another program wrote is read, and what it reads is written."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from memorizz import FileSystemConfig, FileSystemProvider
from memorizz.errors import ConfigurationError, InvalidRecord, ProviderFault
from memorizz.providers.folder_names import broken_rule, folded
from memorizz.taxonomy import ID_FIELDS, MemoryType
from tests.memorizz.support import reference_folder

KB = MemoryType.KNOWLEDGE_BASE
COUNTS = {
    "personas": 1, "toolbox": 3, "entity_memory": 2, "short_term_memory": 1, "knowledge_base": 6,
    "conversation_memory": 5, "workflow_memory": 1, "skillbox": 1, "agents": 3, "summaries": 1, "semantic_cache": 1,
    "tool_log": 1,
}  # fmt: skip


def folder(path: Path, **options: Any) -> FileSystemProvider:
    return FileSystemProvider(FileSystemConfig(root_path=path, **options))


def index(path: Path, store: MemoryType = KB) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / store / "index.json").read_text(encoding="utf-8"))
    assert list(found) == ["version", "items"] and found["version"] == 1
    items: dict[str, Any] = found["items"]
    return items


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    return reference_folder(tmp_path / "reference")


def test_a_folder_of_the_reference_program_opens_with_all_its_records(reference: Path) -> None:
    with folder(reference) as provider:
        assert {store.value: provider.count(store) for store in MemoryType if store.value in COUNTS} == COUNTS
        shared = list(provider.scan(MemoryType.SHARED_MEMORY))
        assert len(shared) == len(list((reference / "shared_memory").glob("*.json"))) - 1
        assert any(record["_id"].startswith("mem-head-") for record in shared)
        assert provider.problems() == []
        for store in MemoryType:
            assert [record["_id"] for record in provider.scan(store)] == list(index(reference, store))


def test_a_folder_that_is_only_read_stays_as_it_was(reference: Path) -> None:
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in reference.rglob("*") if path.is_file()}
    with folder(reference) as provider:
        for store in MemoryType:
            assert provider.find(store, [record["_id"] for record in provider.scan(store)])
    after = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in reference.rglob("*") if path.is_file()}
    assert after == before


def test_natural_ids_are_found_in_entries_that_do_not_name_them(reference: Path) -> None:
    with folder(reference) as provider:
        assert provider.find(MemoryType.SEMANTIC_CACHE, ["ck-1"]) == {"ck-1": "cache-row-1"}
        persona = next(iter(provider.scan(MemoryType.PERSONAS)))
        assert provider.find(MemoryType.PERSONAS, ["persona-keel"]) == {"persona-keel": persona["_id"]}
        assert provider.find(MemoryType.MEMAGENT, ["agent-keel"]) == {"agent-keel": "agent-keel"}


def test_an_index_made_from_the_files_is_the_one_the_reference_program_wrote(reference: Path) -> None:
    written = {store: index(reference, store) for store in MemoryType}
    for store in MemoryType:
        (reference / store / "index.json").unlink()
    folder(reference).close()
    for store in MemoryType:
        entries = index(reference, store)
        assert list(entries) == sorted(entries)
        naturals = [entry.pop("natural_id") for entry in entries.values() if store.value in ID_FIELDS]
        assert all(natural is None or isinstance(natural, str) for natural in naturals)
        assert entries == written[store]
        assert all(list(entries[id]) == list(written[store][id]) for id in entries)


def test_a_record_that_is_written_again_is_the_file_the_reference_program_wrote(reference: Path) -> None:
    files = {path: path.read_bytes() for path in reference.glob("*/*.json") if path.name != "index.json"}
    with folder(reference) as provider:
        for store in MemoryType:
            provider.put(store, [(record["_id"], record) for record in provider.scan(store)], replace=True)
    for path, content in files.items():
        assert json.loads(path.read_bytes()) == json.loads(content)
        assert b"\n" not in path.read_bytes() and len(path.read_bytes()) == len(content)


def test_what_is_made_is_private_and_in_the_documented_places(tmp_path: Path) -> None:
    root = tmp_path / "a" / "memory"
    with folder(root) as provider:
        provider.put(KB, [("ä:b", {"content": "é", "n": [1, {}]})])
    assert sorted(path.name for path in root.iterdir()) == sorted([*MemoryType, ".index-lock.sqlite3"])
    assert (root / "knowledge_base" / "ä:b.json").read_bytes().decode() == (
        '{"content": "é", "n": [1, {}], "_id": "ä:b", "id": "ä:b"}'
    )
    assert sorted(os.listdir(root / "knowledge_base")) == ["index.json", "ä:b.json"]  # noqa: PTH208 -- names
    for path in [tmp_path / "a", root, *root.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_the_index_is_complete_when_the_provider_is_closed(tmp_path: Path) -> None:
    with folder(tmp_path) as provider:
        assert index(tmp_path) == {}
        record = {
            "title": "T",
            "memory_id": "m",
            "user_id": "u",
            "timestamp": 7.5,
            "embedding": [0.1],
            "thread_id": "t",
        }
        provider.put(KB, [("b", record), ("a", {"created_at": "2026-01-01"}), ("c", {})])
        provider.delete(KB, ["c"])
        provider.put(MemoryType.PERSONAS, [("file", {"persona_id": "p", "name": "N"})])
    empty = dict.fromkeys(("name", "memory_id", "user_id", "agent_id", "owner_agent_id", "application_id"))
    common = {**empty, "observation_scope_version": 1, "has_embedding": False, "thread_id": None, "timestamp": None}
    assert index(tmp_path) == {
        "b": {
            **common, "id": "b", "name": "T", "memory_id": "m", "user_id": "u", "timestamp": 7.5,
            "has_embedding": True, "thread_id": "t",
        },
        "a": {**common, "id": "a", "timestamp": "2026-01-01"},
    }  # fmt: skip
    assert index(tmp_path, MemoryType.PERSONAS)["file"] == {**common, "id": "file", "name": "N", "natural_id": "p"}


def test_old_names_of_fields_are_read_as_those_of_today(tmp_path: Path) -> None:
    with folder(tmp_path) as provider:
        path = tmp_path / "conversation_memory" / "old.json"
        path.write_text('{"conversation_id": "t", "associated_conversation_ids": ["a"], "content": "x"}')
        provider.put(MemoryType.CONVERSATION_MEMORY, [("both", {"conversation_id": "old", "thread_id": "new"})])
        expected = {"content": "x", "thread_id": "t", "associated_thread_ids": ["a"], "_id": "old", "id": "old"}
        assert provider.get(MemoryType.CONVERSATION_MEMORY, "old") == expected
        both = {"thread_id": "new", "_id": "both", "id": "both"}
        assert list(provider.scan(MemoryType.CONVERSATION_MEMORY)) == [both, expected]


def test_what_cannot_be_read_or_is_not_listed_is_said(reference: Path) -> None:
    store = reference / "knowledge_base"
    first, second, *_ = index(reference)
    (store / f"{first}.json").write_text('{"content": "cut of')
    (store / f"{second}.json").unlink()
    (store / "unlisted.json").write_text('{"content": "by hand"}')
    for name, content in {"empty": b"", "list": b"[]", "latin": b'{"a": "\xe9"}', "nan": b'{"a": NaN}'}.items():
        (store / f"{name}.json").write_bytes(content)
    (store / "deep.json").write_text('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}")
    (store / "directory.json").mkdir()
    (store / "notes.txt").write_text("not a record's")
    with folder(reference) as provider:
        said = {problem.id: problem.message for problem in provider.problems()}
        assert {problem.store for problem in provider.problems()} == {KB}
        records = [record["_id"] for record in provider.scan(KB)]
        assert len(records) == provider.count(KB) == 5
        assert records[-1] == "unlisted" and not {first, second} & set(records)
        with pytest.raises(ProviderFault, match=rf"knowledge_base '{first}': the record's file is not JSON"):
            provider.get(KB, first)
        assert provider.get(KB, second) is None
        assert provider.find(KB, ["unlisted"]) == {"unlisted": "unlisted"}
        # Removing, and replacing, are the ways out.
        assert provider.delete(KB, ["empty", "list", "latin", "nan", "deep", second]) == 5
        provider.put(KB, [(first, {}), ("unlisted", {})], replace=True)
        assert [problem.id for problem in provider.problems()] == ["directory.json"]
    assert said.pop("directory.json") == "'directory.json' is no file that can hold a record"
    assert said.pop(first).startswith(f"{first}.json is not JSON (")
    assert said.pop(second) == f"index.json lists it, but there is no file {second}.json"
    assert said == {
        "unlisted": "unlisted.json is not listed in index.json",
        "empty": "empty.json is empty",
        "list": "list.json is not a JSON object",
        "latin": "latin.json is not UTF-8 text (byte 7)",
        "nan": "nan.json holds NaN, which is no JSON number",
        "deep": "deep.json is nested too deeply",
    }


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"version": 1}', '{"version": 1, "items": {"a": }}', "\0" * 100])
def test_a_damaged_index_is_made_again(reference: Path, damage: str) -> None:
    good = index(reference)
    (reference / "knowledge_base" / "index.json").write_text(damage)
    with folder(reference) as provider:
        assert {record["_id"] for record in provider.scan(KB)} == set(good)
        assert provider.problems() == []
    assert index(reference) == {id: good[id] for id in sorted(good)}


def test_an_index_of_a_newer_version_is_refused_and_left_as_it_is(reference: Path) -> None:
    path = reference / "knowledge_base" / "index.json"
    path.write_text('{"version": 2, "items": {}}')
    before = {path: path.read_bytes() for path in reference.rglob("*") if path.is_file()}
    with folder(reference) as provider:
        for use in (
            lambda: list(provider.scan(KB)),
            lambda: provider.put(KB, [("a", {})]),
            lambda: provider.problems(),
        ):
            with pytest.raises(ProviderFault, match=r"index\.json has version 2"):
                use()
    assert {path: path.read_bytes() for path in reference.rglob("*") if path.is_file()} == before
    assert path.read_text() == '{"version": 2, "items": {}}'


def test_a_file_in_the_way_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "memory").write_text("")
    with pytest.raises(ConfigurationError, match=r"memory cannot be used"):
        folder(tmp_path / "memory")


def test_the_vector_options_are_kept(tmp_path: Path) -> None:
    with folder(tmp_path, use_faiss=False, lazy_vector_indexes=True, embedding_provider="openai") as provider:
        assert (provider.config.use_faiss, provider.config.lazy_vector_indexes) == (False, True)
        assert (provider.config.embedding_provider, provider.config.embedding_config) == ("openai", {})
        assert provider.root_path == tmp_path.resolve()


def test_an_id_that_the_file_system_takes_for_anothers_never_overwrites_it(tmp_path: Path) -> None:
    # A second name for the file is what a system that does not tell capitals from small letters would show.
    with folder(tmp_path) as provider:
        provider.put(KB, [("abc", {"content": "first"})])
        store = tmp_path / "knowledge_base"
        (store / "ABC.json").symlink_to(store / "abc.json")
        assert provider.get(KB, "ABC") is None
        assert provider.find(KB, ["ABC", "abc"]) == {"abc": "abc"}
        assert provider.delete(KB, ["ABC"]) == 0
        with pytest.raises(
            InvalidRecord, match=r"knowledge_base 'ABC': the file system takes the id for that of 'abc'"
        ):
            provider.put(KB, [("ABC", {"content": "second"})], replace=True)
        assert provider.get(KB, "abc") == {"content": "first", "_id": "abc", "id": "abc"}


@pytest.mark.parametrize(
    ("id", "rule"),
    [
        ("a:b", "':'"), ("a?", "'?'"), ("a\x1fb", "'\\\\x1f'"), ("con", "device"), ("COM1.txt", "device"),
        ("nul ", "device"), ("LPT³", "device"),
    ],
)  # fmt: skip
def test_ids_that_windows_has_no_file_names_for_are_refused_there_only(id: str, rule: str) -> None:
    assert broken_rule(id, windows=False) is None
    assert rule.replace("\\\\", "\\") in (broken_rule(id, windows=True) or "")


def test_ids_that_windows_takes_are_not_refused_there() -> None:
    for id in ("console", "com10", "a.b", "é", "xcon", "a b"):
        assert broken_rule(id, windows=True) is None


def test_ids_that_some_file_systems_take_for_one_are_recognised() -> None:
    assert folded("É") == folded("é") == folded("e\u0301")
    assert folded("a") != folded("b")
