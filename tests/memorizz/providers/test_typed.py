"""An agent-memory database as a provider: typed memories travel in archives, and records become typed memories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import agent_memory
from memorizz import FileSystemConfig, FileSystemProvider, MemoryArchive, MemoryType, SQLiteConfig, SQLiteProvider
from memorizz.errors import ConfigurationError, InvalidRecord, ReadOnlyProvider, RecordExists
from memorizz.providers.registry import open_provider
from memorizz.providers.typed import AgentMemoryConfig, AgentMemoryProvider
from tests.memorizz.support import archive, reference_folder
from tests.support.ollama import NOBODY

KB = MemoryType.KNOWLEDGE_BASE


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A file with three typed memories, two links and an expiry."""
    path = tmp_path / "typed.db"
    with agent_memory.open(path, ollama_url=NOBODY) as memory:
        memory.store(
            "We keep the tide tables in SQLite.", "DECISION", tags=["storage", "db"], scope="harbor", source="a"
        )
        memory.store("We kept them in CSV.", "DECISION", ttl_secs=100_000)
        memory.store("Check the gauge.", "TODO")
        memory.link(1, 2, "supersedes")
        memory.link(3, 1, "relates_to")
    return path


def bridge(path: Path, **options: Any) -> AgentMemoryProvider:
    return AgentMemoryProvider(AgentMemoryConfig(path, **options))


def typed(path: Path) -> list[dict[str, Any]]:
    """Everything that the typed memory says of its memories, but when they were used."""
    with agent_memory.open(path, ollama_url=NOBODY) as memory:
        rows = [memory.get(row.id) for row in memory.list()]
    full = [row.to_full_dict() for row in rows if row is not None]
    return [{name: value for name, value in row.items() if name != "decay_score"} for row in full]


def test_a_typed_memory_is_a_record_of_the_knowledge_base(db: Path) -> None:
    with bridge(db) as provider:
        records = list(provider.scan(KB))
        first = records[0]
        assert [record["_id"] for record in records] == ["memory-1", "memory-2", "memory-3"]
        assert provider.get(KB, "memory-1") == first
        assert provider.count(KB) == 3
        assert list(provider.scan(MemoryType.PERSONAS)) == []
    assert first["content"] == "We keep the tide tables in SQLite."
    assert (first["type"], first["tags"], first["source"], first["memory_id"]) == (
        "DECISION", ["storage", "db"], "a", "harbor",
    )  # fmt: skip
    assert first["expires_at"] is None
    assert first["created_at"].endswith("+00:00")
    assert {(link["record_id"], link["kind"]) for link in first["links"]} == {
        ("memory-2", "supersedes"), ("memory-3", "relates_to"),
    }  # fmt: skip
    assert records[1]["expires_at"] is not None
    assert records[2]["links"] == []


def test_typed_memories_travel_in_an_archive_and_come_back_as_they_were(db: Path, tmp_path: Path) -> None:
    with bridge(db) as source:
        made = MemoryArchive(source).export()
    target = tmp_path / "target.db"
    with bridge(target) as provider:
        report = MemoryArchive(provider).import_archive(made, dry_run=False)
        assert (report["ok"], report["imported"], report["atomic"]) == (True, 3, True)
        assert MemoryArchive(provider).export()["stores"] == made["stores"]
    assert typed(target) == typed(db)


def test_a_project_is_its_scope(db: Path) -> None:
    with bridge(db) as provider:
        made = MemoryArchive(provider).export(memory_id="harbor")
    assert [row["id"] for row in made["stores"]["knowledge_base"]] == ["memory-1"]


def test_copies_with_new_ids_are_linked_among_themselves(db: Path) -> None:
    with bridge(db) as provider:
        made = MemoryArchive(provider).export()
        report = MemoryArchive(provider).import_archive(made, dry_run=False, id_strategy="new")
        copy = provider.get(KB, report["id_map"]["memory-1"])
        assert copy is not None
        assert {link["record_id"] for link in copy["links"]} == {
            report["id_map"]["memory-2"], report["id_map"]["memory-3"],
        }  # fmt: skip
    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        assert len(memory.list()) == 6
        copied = memory.get(4)
    assert copied is not None
    assert {related.id for related in copied.related or ()} == {5, 6}


def test_the_knowledge_base_of_a_graph_becomes_searchable_memories(tmp_path: Path) -> None:
    with FileSystemProvider(FileSystemConfig(reference_folder(tmp_path / "folder"))) as source:
        made = MemoryArchive(source).export(memory_types=["knowledge_base"])
    target = tmp_path / "target.db"
    with bridge(target) as provider:
        assert MemoryArchive(provider).import_archive(made, dry_run=False)["ok"]
        assert MemoryArchive(provider).export()["stores"] == made["stores"]
    with agent_memory.open(target, ollama_url=NOBODY) as memory:
        found = memory.search("high water").results
        assert found[0].content.startswith("High water is at")
        assert found[0].type == "PATTERN"


def test_what_the_typed_memory_changes_is_changed_in_the_record(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    body = {
        "content": "one", "agent_id": "keel", "metadata": {"n": 1.0}, "memory_id": "ns", "score": 2**70,
        "links": [{"record_id": "b", "kind": "supersedes", "note": "kept"}, {"odd": True}],
    }  # fmt: skip
    with bridge(path) as provider:
        provider.put(KB, [("a", body), ("b", {"content": "two"})])
        assert provider.get(KB, "a") == {**body, "_id": "a", "id": "a"}
    with agent_memory.open(path, ollama_url=NOBODY) as memory:
        memory.update(1, content="uno", tags=["t"], scope=None)
        memory.link(1, 2, "caused_by")
        memory.store("three", "ERROR")
    with bridge(path) as provider:
        assert provider.get(KB, "a") == {
            **body, "_id": "a", "id": "a", "content": "uno", "tags": ["t"], "memory_id": None,
            "links": [*body["links"], {"record_id": "b", "memory_type": "knowledge_base", "kind": "caused_by"}],
        }  # fmt: skip
        assert [record["_id"] for record in provider.scan(KB)] == ["a", "b", "memory-3"]
    with agent_memory.open(path, ollama_url=NOBODY) as memory:
        memory.unlink(1, 2, "supersedes")
        memory.forget(2)
    with bridge(path) as provider:
        record = provider.get(KB, "a")
        assert record is not None
        assert record["links"] == [{"odd": True}]
        assert provider.get(KB, "b") is None


def test_a_forgotten_memory_leaves_nothing_that_a_later_one_of_its_number_would_inherit(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with bridge(path) as provider:
        provider.put(KB, [("a", {"content": "one", "secret": "x"})])
    with apsw.Connection(str(path)) as foreign:
        # A program that does not check foreign keys.
        foreign.execute("PRAGMA foreign_keys = OFF; DELETE FROM memories")
        foreign.execute(
            "INSERT INTO memories(id, mem_type, content, created_at, last_accessed) VALUES (1, 'TODO', 'two', 5, 5)"
        )
    with bridge(path) as provider:
        (record,) = provider.scan(KB)
    assert (record["_id"], record["content"], "secret" in record) == ("memory-1", "two", False)


def test_a_link_waits_for_the_record_it_leads_to(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    first = {"content": "one", "links": [{"record_id": "later", "kind": "relates_to"}]}
    with bridge(path) as provider:
        provider.put(KB, [("a", first)])
        provider.put(KB, [("later", {"content": "two"})])
        assert provider.get(KB, "a") == {**first, "_id": "a", "id": "a"}
        assert provider.get(KB, "later") == {"content": "two", "_id": "later", "id": "later"}
    with agent_memory.open(path, ollama_url=NOBODY) as memory:
        found = memory.get(2)
        assert found is not None
        assert [related.id for related in found.related or ()] == [1]


def test_ids_of_memories_are_kept_where_they_are_free(db: Path) -> None:
    with bridge(db) as provider:
        provider.put(KB, [("memory-9", {"content": "nine"}), ("other", {"content": "x"})])
        provider.put(KB, [("memory-10", {"content": "ten"})])
        with pytest.raises(RecordExists, match="memory-1"):
            provider.put(KB, [("memory-1", {"content": "again"})])
        assert provider.delete(KB, ["memory-9", "nothing"]) == 1
        assert {record["_id"] for record in provider.scan(KB)} == {
            "memory-1", "memory-2", "memory-3", "other", "memory-10",
        }  # fmt: skip
    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        assert {row.content: row.id for row in memory.list()}["x"] == 10


def test_a_replaced_record_gets_a_new_vector(db: Path) -> None:
    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        before = memory.statistics()
    with bridge(db) as provider:
        provider.put(KB, [("memory-1", {"content": "other", "type": "ERROR"})], replace=True)
        record = provider.get(KB, "memory-1")
        assert record == {"_id": "memory-1", "id": "memory-1", "content": "other", "type": "ERROR"}
    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        assert memory.statistics().memories == before.memories
        assert [row.id for row in memory.search("other").results] == [1]
        assert memory.search("tide tables").results == ()


@pytest.mark.parametrize(
    ("store", "record", "message"),
    [
        (MemoryType.PERSONAS, {"name": "x"}, "holds records of the knowledge base only"),
        (KB, {"content": {"a": 1}}, "content must be a text"),
        (KB, {}, "content must be a text"),
        (KB, {"content": "  "}, "content"),
        (KB, {"content": "x" * 1_048_577}, "1048576"),
    ],
)
def test_what_it_cannot_hold_is_refused_before_anything_is_written(
    db: Path, store: MemoryType, record: dict[str, Any], message: str
) -> None:
    with bridge(db) as provider:
        with pytest.raises(InvalidRecord, match=message):
            provider.put(store, [("fine", {"content": "fine"}), ("bad", record)])
        assert provider.count(KB) == 3


def test_an_id_that_no_text_can_be_is_nobodys_and_refused(db: Path) -> None:
    with bridge(db) as provider:
        assert provider.get(KB, "\ud83d") is None
        assert provider.find(KB, ["\ud83d", "memory-1"]) == {"memory-1": "memory-1"}
        assert provider.delete(KB, ["\ud83d"]) == 0
        with pytest.raises(InvalidRecord, match="the id must be Unicode text"):
            provider.put(KB, [("\ud83d", {"content": "x"})])


def test_a_whole_graph_is_refused_with_the_store_it_cannot_hold(tmp_path: Path) -> None:
    with bridge(tmp_path / "m.db") as provider, pytest.raises(ValueError, match="knowledge base only"):
        MemoryArchive(provider).import_archive(archive("agent_plain"), dry_run=False)


def test_reading_only_leaves_every_byte(db: Path) -> None:
    before = db.read_bytes()
    with bridge(db, read_only=True) as provider:
        assert provider.count(KB) == 3
        assert MemoryArchive(provider).export()["manifest"]["record_count"] == 3
        with pytest.raises(ReadOnlyProvider):
            provider.put(KB, [("a", {"content": "x"})])
        with pytest.raises(ReadOnlyProvider):
            provider.delete(KB, ["memory-1"])
    assert db.read_bytes() == before


def test_another_programs_file_is_refused(tmp_path: Path) -> None:
    with SQLiteProvider(SQLiteConfig(tmp_path / "graph.sqlite3")):
        pass
    for options in ({}, {"read_only": True}):
        with pytest.raises(ConfigurationError, match="not an agent-memory one"):
            open_provider("agent-memory", {"path": tmp_path / "graph.sqlite3", **options})


LEAF = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9)
)
JSON = st.recursive(
    LEAF.filter(lambda leaf: not isinstance(leaf, str) or leaf.encode("utf-8", "ignore").decode() == leaf),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    ["type", "memory_type", "tags", "source", "memory_id", "namespace", "created_at", "timestamp", "last_accessed",
     "access_count", "expires_at", "links", "agent_id", "metadata", "status"]
)  # fmt: skip
CLAIMS = st.fixed_dictionaries({"content": st.text("abc é", min_size=1, max_size=8).filter(str.strip)}) | st.builds(
    lambda content, more: {**more, "content": content},
    st.text("abc é", min_size=1, max_size=8).filter(str.strip),
    st.dictionaries(FIELDS, JSON, max_size=6),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=st.lists(CLAIMS, min_size=1, max_size=4))
def test_every_record_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]]
) -> None:
    path = tmp_path_factory.mktemp("bridge") / "m.db"
    ids = [f"r{number}" for number in range(len(records))]
    with bridge(path) as provider:
        provider.put(KB, list(zip(ids, records, strict=True)))
        for id, record in zip(ids, records, strict=True):
            found = provider.get(KB, id)
            assert json.dumps(found, sort_keys=True) == json.dumps({**record, "_id": id, "id": id}, sort_keys=True)
