"""New ids: every reference of the graph leads into the copy, and nothing else has changed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memorizz import FileSystemProvider, MemoryArchive, MemoryArchiveError, MemoryProvider, MemoryType, SemanticCache
from tests.memorizz.support import archive
from tests.memorizz.transfer.test_import import agent, fact, small
from tests.memorizz.transfer.test_new_ids import copied


def only(provider: MemoryProvider, store: MemoryType) -> dict[str, Any]:
    (record,) = provider.scan(store)
    return record


def test_ids_in_the_entries_of_a_record_are_new_in_a_copy(target: MemoryProvider) -> None:
    entity = {
        "_id": "e", "id": "e", "entity_id": "e", "name": "Gauge", "memory_id": "ns", "metadata": {"run_id": "r-1"},
        "attributes": [{"name": "range", "value": "0-8", "thread_id": "t-1", "source": "t-1"}],
        "relations": [{"entity_id": "e", "relation_type": "is", "metadata": {"session_id": "s-1"}}],
    }  # fmt: skip
    ids = copied(target, small(entity_memory=[entity]))
    assert ids.keys() == {"e", "ns", "r-1", "t-1", "s-1"}
    record = only(target, MemoryType.ENTITY_MEMORY)
    assert record["metadata"] == {"run_id": ids["r-1"]}
    assert record["attributes"] == [{"name": "range", "value": "0-8", "thread_id": ids["t-1"], "source": "t-1"}]
    assert record["relations"][0]["entity_id"] == ids["e"] == record["_id"]
    assert record["relations"][0]["metadata"] == {"session_id": ids["s-1"]}


@pytest.mark.parametrize("name", ["parameters", "args", "arguments", "result", "steps", "input_schema", "properties"])
def test_what_a_tool_was_given_is_not_the_graphs_to_rename(target: MemoryProvider, name: str) -> None:
    given = {"thread_id": "string", "session_id": "theirs", "deep": {"run_id": "theirs"}}
    workflow = {"_id": "w", "id": "w", "workflow_id": "w", "name": "W", "outcome": {name: given}}
    ids = copied(target, small(workflow_memory=[workflow]))
    assert ids.keys() == {"w"}
    assert only(target, MemoryType.WORKFLOW_MEMORY)["outcome"] == {name: given}


def test_a_name_that_people_gave_a_knowledge_base_stays(target: MemoryProvider) -> None:
    rows = [
        {"_id": "c", "id": "c", "content": "x", "knowledge_base_id": "kb", "namespace": "tide-tables"},
        {"_id": "d", "id": "d", "content": "x", "memory_id": "ns", "namespace": "ns"},
    ]
    ids = copied(target, small(knowledge_base=rows))
    assert "tide-tables" not in ids
    names = {record["namespace"] for record in target.scan(MemoryType.KNOWLEDGE_BASE)}
    assert names == {"tide-tables", ids["ns"]}


def test_a_copied_agent_has_a_persona_of_its_own_even_without_the_record(target: MemoryProvider) -> None:
    made = small(agents=[agent("keel", persona={"persona_id": "p", "storage_id": "file", "name": "Keel"})])
    ids = copied(target, made)
    assert only(target, MemoryType.MEMAGENT)["persona"] == {
        "persona_id": ids["p"],
        "storage_id": ids["p"],
        "name": "Keel",
    }


def test_a_copy_of_an_archive_of_the_reference_finds_its_persona(target: MemoryProvider) -> None:
    ids = copied(target, archive("agent_coordinator"))
    keel = target.get(MemoryType.MEMAGENT, ids["agent-keel"])
    assert keel is not None
    assert target.get(MemoryType.PERSONAS, keel["persona"]["storage_id"]) is not None


def test_a_copied_answer_is_found_by_the_same_question(target: MemoryProvider) -> None:
    target.put(MemoryType.MEMAGENT, [("keel", agent("keel"))])
    cache = SemanticCache(target)
    cache.create("when is high water?", "06:40", session_id="s-1", agent_id="keel")
    key = cache.create("and low water?", "12:50")
    ids = copied(target, MemoryArchive(target).export())
    found = cache.lookup("when is high water?", session_id=ids["s-1"], agent_id=ids["keel"])
    assert found is not None
    assert (found["response"], found["_id"]) == ("06:40", found["cache_key"])
    # Nothing in the other question became another, so that its copy has a key that nobody asks for.
    assert ids[key] != key
    assert cache.lookup("and low water?") is not None


def test_the_links_of_a_journal_to_what_is_not_in_the_archive(target: MemoryProvider) -> None:
    entry = {
        "record_id": "mem-change-1", "record_type": "memory_history_change", "target_record_id": "gone",
        "memory_type": "knowledge_base", "memory_id": "ns", "previous_event_id": "mem-change-0",
        "parents": [{"record_id": "unselected", "relation": "supersedes"}],
        "field_changes": {"thread_id": "added", "api_key": "modified"}, "changed_fields": ["thread_id", "api_key"],
    }  # fmt: skip
    row = {
        "_id": "mem-change-1", "id": "mem-change-1", "memory_id": "mem-change-1", "trace_memory_id": "ns",
        "history_actor": "keel", "content": json.dumps(entry),
    }  # fmt: skip
    ids = copied(target, small(shared_memory=[row], agents=[agent("keel", memory_ids=["ns"])]))
    record = only(target, MemoryType.SHARED_MEMORY)
    content = json.loads(record["content"])
    assert ids.keys() == {"mem-change-1", "ns", "gone", "keel"}
    assert content["record_id"] == record["_id"] == record["memory_id"] == ids["mem-change-1"]
    assert (content["memory_id"], record["trace_memory_id"], record["history_actor"]) == (
        ids["ns"],
        ids["ns"],
        ids["keel"],
    )
    assert content["target_record_id"] == ids["gone"]
    # Explicit references to what was not chosen stay explicit, and names of fields are no references.
    assert {name: content[name] for name in ("previous_event_id", "parents", "field_changes", "changed_fields")} == {
        name: entry[name] for name in ("previous_event_id", "parents", "field_changes", "changed_fields")
    }


SESSION = {"root_agent_id": "keel", "delegate_agent_ids": [], "blackboard": []}


@pytest.mark.parametrize("content", [SESSION, json.dumps(SESSION)])
def test_a_session_is_no_namespace_of_the_project(target: MemoryProvider, content: object) -> None:
    session = {"_id": "s", "id": "s", "memory_id": "session-ns", "content": content}
    made = small(shared_memory=[session], knowledge_base=[fact("a")])
    report = MemoryArchive(target).import_archive(made, dry_run=False, target_memory_id="home")
    assert report["id_map"] == {"ns": "home"}
    assert only(target, MemoryType.SHARED_MEMORY)["memory_id"] == "session-ns"
    assert only(target, MemoryType.KNOWLEDGE_BASE)["memory_id"] == "home"


def test_the_journal_of_a_session_is_no_namespace_either(target: MemoryProvider) -> None:
    entry = {"record_type": "memory_history_change", "memory_id": "session-ns", "target_record_id": "s"}
    session = {"_id": "s", "id": "s", "memory_id": "session-ns", "content": SESSION}
    change = {"_id": "c", "id": "c", "memory_id": "c", "content": {**entry, "record_id": "c"}}
    made = small(shared_memory=[session, change], knowledge_base=[fact("a")])
    report = MemoryArchive(target).import_archive(made, dry_run=False, target_memory_id="home")
    assert report["id_map"] == {"ns": "home"}


def test_a_project_of_the_reference_moves_with_its_journal_and_context(
    reference: FileSystemProvider, target: MemoryProvider
) -> None:
    made = MemoryArchive(reference).export(memory_id="ns-keel", user_id="ana", memory_types=["shared_memory"])
    assert made["stores"]["shared_memory"]
    report = MemoryArchive(target).import_archive(made, dry_run=False, target_memory_id="home")
    assert (report["ok"], report["id_map"]) == (True, {"ns-keel": "home"})
    assert "ns-keel" not in json.dumps(list(target.scan(MemoryType.SHARED_MEMORY)))


def test_two_namespaces_do_not_become_one_through_an_agent(target: MemoryProvider) -> None:
    made = small(knowledge_base=[fact("a")], agents=[agent("keel", memory_ids=["ns"]), agent("plover")])
    with pytest.raises(MemoryArchiveError, match="agents 'plover' has the namespace 'ns-plover' beside 'ns'"):
        MemoryArchive(target).import_archive(made, target_memory_id="ns-plover")
    assert MemoryArchive(target).import_archive(made, target_memory_id="ns")["id_map"] == {"ns": "ns"}
