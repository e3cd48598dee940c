"""Records in native columns of Oracle: what stands where, and that they come back as they were."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memorizz import MemoryArchive, MemoryType, OracleProvider
from memorizz.providers.oracle_schema import TABLES, Kind
from memorizz.providers.oracle_tables import _shape
from memorizz.providers.oracle_values import joined, split, with_meta
from memorizz.taxonomy import ID_FIELDS
from tests.memorizz.support import VALID, archive
from tests.support.oracle import Database
from tests.support.oracle_backend import open_provider

KB = MemoryType.KNOWLEDGE_BASE
AGENTS = MemoryType.MEMAGENT
MESSAGES = MemoryType.CONVERSATION_MEMORY
FACT = {"content": "High water is at 06:40.", "memory_id": "harbor"}


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "db")


@pytest.fixture
def provider(database: Database) -> Iterator[OracleProvider]:
    with open_provider(database) as opened:
        yield opened


def row(database: Database, table: str, *columns: str) -> Any:
    (found,) = database.sql(f"SELECT {', '.join(columns)} FROM {table}")
    return found


def extras(database: Database, table: str) -> Any:
    made = json.loads(row(database, table, "archive_extras")[0])
    del made["memorizz_row"]
    return made


def kept(provider: OracleProvider, store: MemoryType, record: dict[str, Any], id: str = "one") -> dict[str, Any]:
    provider.put(store, [(id, record)], replace=True)
    found = provider.get(store, id)
    assert found is not None
    return {name: value for name, value in found.items() if name not in ("_id", "id")}


def test_what_has_a_column_is_there_and_everything_else_in_the_extras(
    provider: OracleProvider, database: Database
) -> None:
    record = {
        **FACT, "importance": 0.5, "access_count": 3, "metadata": {"a": [1]}, "created_at": "2026-01-02T03:04:05+00:00",
        "supersedes": "other", "tags": ["tide"], "user_id": None,
    }  # fmt: skip
    assert kept(provider, KB, record) == record
    named = row(database, "knowledge_base", "memory_id", "content", "access_count", "metadata", "created_at", "user_id")
    assert named == ("harbor", FACT["content"], 3, '{"a":[1]}', "\ue0002026-01-02T03:04:05", None)
    assert extras(database, "knowledge_base") == {"supersedes": "other", "tags": ["tide"], "user_id": None}


@pytest.mark.parametrize(
    ("field", "value", "held"),
    [
        ("created_at", "2026-01-02T03:04:05.000001+00:00", "\ue0002026-01-02T03:04:05.000001"),
        ("created_at", "2026-01-02T05:04:05+02:00", "\ue0002026-01-02T03:04:05"),
        ("created_at", "2026-01-02T03:04:05Z", "\ue0002026-01-02T03:04:05"),
        ("created_at", "2026-01-02", "\ue0002026-01-02T00:00:00"),
        ("created_at", 1767323045.5, "\ue0002026-01-02T03:04:05.500000"),
        ("created_at", "yesterday", None),
        ("created_at", {"a": 1}, None),
        ("importance", 0.857, "\ue0010.86"),
        ("importance", 1.0, "\ue0011.0"),
        ("importance", 12, None),
        ("importance", True, None),
        ("access_count", 10**37, f"\ue001{10**37}"),
        ("access_count", 10**40, None),
        ("access_count", -0.0, "\ue001-0.0"),
        ("access_count", "many", None),
        ("metadata", '{"a": 1}', '{"a": 1}'),
        ("metadata", "prose", "prose"),
        ("namespace", "", None),
        ("namespace", 7, "7"),
        ("memory_type", ["a"], '["a"]'),
        ("embedding", [0.5, 1], "\ue002[0.5, 1.0]"),
        ("embedding", "none", None),
        ("embedding", [1e300], None),
    ],
)
def test_a_value_that_its_column_would_change_comes_back_as_it_was(
    provider: OracleProvider, database: Database, field: str, value: Any, held: Any
) -> None:
    found = kept(provider, KB, {**FACT, field: value})
    assert found == {**FACT, field: value}
    assert type(found[field]) is type(value) and (field == "embedding" or repr(found[field]) == repr(value))
    assert row(database, "knowledge_base", field) == (held,)


def test_columns_of_0_and_1_are_booleans(provider: OracleProvider, database: Database) -> None:
    record = {"tool_name": "read_gauge", "success": True, "arguments": '{"a": 1}'}
    assert kept(provider, MemoryType.TOOL_LOG, record)["success"] is True
    assert row(database, "tool_log", "success") == (1,)
    database.sql("UPDATE tool_log SET success = 0")
    found = provider.get(MemoryType.TOOL_LOG, "one")
    assert found is not None and found["success"] is False
    assert found["arguments"] == '{"a": 1}'


def test_a_column_that_the_database_checks_for_json_always_gets_json(
    provider: OracleProvider, database: Database
) -> None:
    for value in ("success", 3, True, [1], {"a": "b"}, "", None):
        record = {"name": "drill", "outcome": value}
        assert kept(provider, MemoryType.WORKFLOW_MEMORY, record) == record
        (held,) = row(database, "workflow_memory", "outcome")
        assert held is None if value in ("", None) else json.loads(held) == value


def test_a_value_outside_of_a_columns_choices_is_kept_beside_it(provider: OracleProvider, database: Database) -> None:
    record = {"name": "drill", "status": "success"}
    assert kept(provider, MemoryType.WORKFLOW_MEMORY, record) == record
    assert row(database, "workflow_memory", "status") == (None,)
    skill = {"name": "gale-warning"}
    assert kept(provider, MemoryType.SKILLBOX, skill) == skill
    assert row(database, "skillbox", "injection_role") == ("user",)


def test_what_another_program_writes_into_a_column_counts(provider: OracleProvider, database: Database) -> None:
    record = {**FACT, "created_at": "2026-01-02", "namespace": "", "user_id": None, "more": 1}
    provider.put(KB, [("one", record)])
    database.sql(
        "UPDATE knowledge_base SET content = 'y', created_at = ?, user_id = 'ana'", "\ue0002027-01-01T00:00:00"
    )
    assert provider.get(KB, "one") == {
        "content": "y", "memory_id": "harbor", "created_at": "2027-01-01T00:00:00+00:00", "namespace": "",
        "user_id": "ana", "more": 1, "_id": "one", "id": "one",
    }  # fmt: skip
    database.sql("UPDATE knowledge_base SET created_at = NULL")
    found = provider.get(KB, "one")
    assert found is not None and "created_at" not in found


def test_rows_of_another_program_are_records_too(provider: OracleProvider, database: Database) -> None:
    provider.put(MemoryType.PERSONAS, [])
    key, other = uuid.uuid4(), uuid.uuid4()
    database.sql(
        "INSERT INTO personas (id, persona_id, name, role_type, traits) VALUES (?, 'p', 'Keel', 'lead', '[1]')",
        key.bytes,
    )
    expected = {"persona_id": "p", "name": "Keel", "role": "lead", "traits": [1], "_id": str(key), "id": str(key)}
    assert provider.get(MemoryType.PERSONAS, str(key)) == expected
    assert provider.find(MemoryType.PERSONAS, ["p", str(key), str(other)]) == {"p": str(key), str(key): str(key)}
    provider.put(MemoryType.PERSONAS, [(str(key), {**expected, "name": "Plover"})], replace=True)
    assert row(database, "personas", "id", "name") == (key.bytes, "Plover")
    assert provider.delete(MemoryType.PERSONAS, [str(key)]) == 1


def test_ids_follow_from_store_and_text(provider: OracleProvider, database: Database) -> None:
    text = "sc-harbor"
    expected = {
        store: uuid.uuid5(uuid.NAMESPACE_URL, f"{'memorizz' if table.keeps_uuids else 'memorizz-row'}:{store}:{text}")
        for store, table in TABLES.items()
    }
    by_uuid = {"conversation_memory", "knowledge_base", "short_term_memory", "shared_memory", "semantic_cache"}
    for store in MemoryType:
        assert provider.archive_target_id(store, text) == (str(expected[store]) if store in by_uuid else text)
    upper = str(uuid.uuid4()).upper()
    assert provider.archive_target_id(KB, upper) == upper.lower()
    provider.put(KB, [(text, dict(FACT))])
    provider.put(MemoryType.PERSONAS, [(text, {"name": "Keel"})])
    assert row(database, "knowledge_base", "id") == (expected[KB].bytes,)
    assert row(database, "personas", "id", "persona_id") == (expected[MemoryType.PERSONAS].bytes, text)
    # The id that was given goes on working beside the one that rows are known by.
    assert provider.find(KB, [text, str(expected[KB])]) == {text: text, str(expected[KB]): str(expected[KB])}


def test_an_agent_is_kept_with_what_is_beside_it(provider: OracleProvider, database: Database) -> None:
    keel = {
        "agent_id": "keel", "name": "Keel", "delegates": ["plover", "gone"], "memory_ids": ["b", "a"], "max_steps": 20,
        "llm_config": {"provider": "openai", "model": "any", "temperature": 0.5, "seed": 7}, "semantic_cache": True,
        "knowledge_base_ids": ["kb"], "persona": {"name": "Keel"}, "created_at": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    plover = {"agent_id": "plover", "delegates": ["keel"], "memory_ids": [], "llm_config": {"provider": "none"}}
    provider.put(AGENTS, [("keel", keel), ("plover", plover)])
    for id, record in (("keel", keel), ("plover", plover)):
        assert provider.get(AGENTS, id) == {**record, "_id": id, "id": id}
    assert row(database, "agent_llm_configs", "provider", "model", "temperature", "additional_config") == (
        "openai", "any", "\ue0010.5", '{"seed":7}',
    )  # fmt: skip
    assert sorted(database.sql("SELECT memory_id FROM agent_memories")) == [("a",), ("b",)]
    assert database.sql("SELECT knowledge_base_id FROM agent_knowledge_bases") == [("kb",)]
    links = (
        "SELECT a.agent_id, b.agent_id FROM agent_delegates l "
        "JOIN agents a ON a.id = l.agent_id JOIN agents b ON b.id = l.delegate_agent_id"
    )
    assert sorted(database.sql(links)) == [("keel", "plover"), ("plover", "keel")]
    provider.put(AGENTS, [("gone", {})])
    assert sorted(database.sql(links)) == [("keel", "gone"), ("keel", "plover"), ("plover", "keel")]
    provider.delete(AGENTS, ["plover"])
    assert database.sql(links) == [("keel", "gone")]
    found = provider.get(AGENTS, "keel")
    assert found is not None and found["delegates"] == ["plover", "gone"]


def test_what_another_program_changes_beside_an_agent_counts(provider: OracleProvider, database: Database) -> None:
    model = {"provider": "openai", "model": "any"}
    provider.put(AGENTS, [("a", {"delegates": ["b"], "memory_ids": ["y", "x"], "llm_config": model}), ("b", {})])
    database.sql("DELETE FROM agent_delegates")
    database.sql("DELETE FROM agent_memories WHERE memory_id = 'y'")
    database.sql("UPDATE agent_llm_configs SET model = 'other', max_tokens = 5")
    assert provider.get(AGENTS, "a") == {
        "delegates": [], "memory_ids": ["x"], "llm_config": {"provider": "openai", "model": "other", "max_tokens": 5},
        "_id": "a", "id": "a",
    }  # fmt: skip
    database.sql("DELETE FROM agent_llm_configs")
    found = provider.get(AGENTS, "a")
    assert found is not None and "llm_config" not in found


def test_a_tool_names_its_agent_by_key_as_soon_as_that_is_there(provider: OracleProvider, database: Database) -> None:
    tool = {"name": "read_gauge", "agent_id": "keel"}
    assert kept(provider, MemoryType.TOOLBOX, tool) == tool
    assert row(database, "toolbox", "agent_id") == (None,)
    provider.put(AGENTS, [("keel", {"agent_id": "keel"})])
    assert row(database, "toolbox", "agent_id") == ("keel",)
    provider.put(AGENTS, [("keel", {"agent_id": "mast"})], replace=True)
    assert row(database, "toolbox", "agent_id") == (None,)
    provider.put(AGENTS, [("keel", {"agent_id": "keel"})], replace=True)
    assert provider.delete(AGENTS, ["keel"]) == 1
    assert row(database, "toolbox", "agent_id") == (None,)
    found = provider.get(MemoryType.TOOLBOX, "one")
    assert found is not None and found["agent_id"] == "keel"


def test_a_summary_is_linked_to_the_messages_that_are_there(provider: OracleProvider, database: Database) -> None:
    message = {**FACT, "role": "user"}
    first = str(uuid.uuid4())
    provider.put(MESSAGES, [(first, dict(message)), ("second", dict(message))])
    summary = {"content": "short", "source_message_ids": ["second", "gone", first, "second"]}
    assert kept(provider, MemoryType.SUMMARIES, summary) == summary
    links = (
        "SELECT m.id, l.position FROM summary_message_links l "
        "JOIN conversation_memory m ON m.id = l.message_id ORDER BY l.position"
    )
    second = provider.archive_target_id(MESSAGES, "second")
    assert database.sql(links) == [(uuid.UUID(second).bytes, 0), (uuid.UUID(first).bytes, 2)]
    provider.delete(MESSAGES, ["second"])
    assert len(database.sql(links)) == 1
    assert kept(provider, MemoryType.SUMMARIES, {"content": "short"}) == {"content": "short"}
    assert database.sql(links) == []
    provider.put(MemoryType.SUMMARIES, [("one", summary)], replace=True)
    assert provider.delete(MemoryType.SUMMARIES, ["one"]) == 1


def test_a_chunk_of_a_document_is_in_no_namespace(provider: OracleProvider, database: Database) -> None:
    chunk = {"content": "Chapter 1.", "knowledge_base_id": "almanac", "chunk_index": 0}
    assert kept(provider, KB, chunk) == chunk
    assert row(database, "knowledge_base", "memory_id") == ("almanac",)
    database.sql("UPDATE knowledge_base SET memory_id = 'harbor'")
    found = provider.get(KB, "one")
    assert found is not None and found["memory_id"] == "harbor"


def test_a_record_may_have_a_field_of_the_name_the_provider_uses(provider: OracleProvider) -> None:
    record = {**FACT, "memorizz_row": {"id": "x", "position": "y"}, "archive_extras": "z", "embedding": None}
    assert kept(provider, KB, record) == record


def test_a_row_whose_extras_are_no_object_is_a_problem_and_is_left_out(
    provider: OracleProvider, database: Database
) -> None:
    provider.put(KB, [("a", dict(FACT)), ("b", dict(FACT))])
    key = provider.archive_target_id(KB, "a")
    database.sql("UPDATE knowledge_base SET archive_extras = '[1]' WHERE id = ?", uuid.UUID(key).bytes)
    assert [record["_id"] for record in provider.scan(KB)] == ["b"]
    assert provider.count(KB) == 1
    (problem,) = provider.problems()
    assert (problem.store, problem.id, problem.message) == (KB, key, "the row is not a JSON object")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    | st.datetimes().map(lambda moment: moment.isoformat()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3),
    max_leaves=4,
)  # fmt: skip


@pytest.mark.parametrize("store", MemoryType)
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_any_value_in_any_field_comes_back_as_it_was(store: MemoryType, data: st.DataObject) -> None:
    shape = _shape(TABLES[store], {})
    fields = [field for field, column in shape.columns.items() if column.kind is not Kind.VECTOR]
    names = st.sampled_from([*fields, "other", "memorizz_row"]).filter(lambda name: name != ID_FIELDS.get(store))
    record = data.draw(st.dictionaries(names, _JSON, max_size=6))
    fill = "natural" if shape.table.natural is not None else None
    natives, extra, absent = split(shape, record, fill)
    text = with_meta(extra, {"position": 1, "id": "natural", "absent": absent})
    found, meta = joined(shape, {"id": b"\0" * 16, **natives, "archive_extras": text})
    assert json.dumps(found, sort_keys=True) == json.dumps(record, sort_keys=True)
    assert meta["position"] == 1


@pytest.mark.parametrize("name", [path.name.removesuffix(".memorizz.json") for path in VALID])
def test_every_archive_of_the_reference_is_restored_and_comes_out_the_same(
    provider: OracleProvider, tmp_path: Path, name: str
) -> None:
    made = archive(name)
    for id in ("agent-plover", "agent-keel"):
        if not any(row["id"] == id for row in made["stores"]["agents"]):
            provider.put(AGENTS, [(id, {"agent_id": id})])
    report = MemoryArchive(provider).import_archive(made, dry_run=False)
    assert report["ok"] and report["atomic"], report["errors"]
    new = report["id_map"]
    for store, rows in made["stores"].items():
        for row in rows:
            assert new.get(row["id"], row["id"]) == provider.archive_target_id(MemoryType(store), row["id"])
    # A second schema: everything has the form that Oracle gives it, so nothing has to change any more.
    exported = MemoryArchive(provider).export()
    with open_provider(Database(tmp_path / "second")) as second:
        again = MemoryArchive(second).import_archive(exported, dry_run=False)
        assert again["ok"], again["errors"]
        assert set(again["id_map"]) <= {row["id"] for row in exported["stores"]["semantic_cache"]}
        assert MemoryArchive(second).export()["stores"] == exported["stores"] | {
            "agents": [
                {**row, "data": {**row["data"], "automations_enabled": False}} for row in exported["stores"]["agents"]
            ]
        }
    repeated = MemoryArchive(provider).import_archive(made)
    assert len(repeated["conflicts"]) == made["manifest"]["record_count"]
    replaced = MemoryArchive(provider).import_archive(made, dry_run=False, conflict="replace")
    assert replaced["ok"] and MemoryArchive(provider).export()["stores"] == exported["stores"]


def test_references_follow_ids_that_change(provider: OracleProvider) -> None:
    made = archive("agent_coordinator")
    report = MemoryArchive(provider).import_archive(made, dry_run=False)
    new = report["id_map"]
    for summary in made["stores"]["summaries"]:
        before, after = summary["data"], provider.get(MemoryType.SUMMARIES, summary["id"])
        assert after is not None
        assert after["source_message_ids"] == [new.get(id, id) for id in before["source_message_ids"]]
    for cached in made["stores"]["semantic_cache"]:
        found = provider.get(MemoryType.SEMANTIC_CACHE, new[cached["id"]])
        assert found is not None and found["cache_key"] == cached["id"]
    changes = [row for row in made["stores"]["shared_memory"] if row["id"].startswith("mem-change-")]
    assert changes
    for change in changes:
        entry = provider.get(MemoryType.SHARED_MEMORY, new[change["id"]])
        assert entry is not None and entry["memory_id"] == entry["_id"] == new[change["id"]]
        before, after = change["data"]["content"], entry["content"]
        assert after["record_id"] == new.get(before["record_id"], before["record_id"])
        assert after["field_changes"] == before["field_changes"]
