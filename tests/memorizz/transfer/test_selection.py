"""What an export selects: the same as the reference, record by record, from the same folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memorizz import FileSystemConfig, FileSystemProvider, MemoryArchive, MemoryArchiveError, MemoryProvider, MemoryType
from memorizz.taxonomy import TAXONOMY
from tests.memorizz.support import archive

# The options that the reference's archives were made with, by name.
SCOPES: dict[str, dict[str, Any]] = {
    "agent_coordinator": {"agent_id": "agent-keel"},
    "agent_delegate_only": {"agent_id": "agent-plover"},
    "agent_no_delegates": {"agent_id": "agent-keel", "include_delegates": False},
    "agent_no_history": {"agent_id": "agent-keel", "include_history": False},
    "agent_plain": {"agent_id": "agent-keel", "include_history": False, "include_context": False},
    "project_ns_keel": {"memory_id": "ns-keel"},
    "project_ns_keel_plain": {"memory_id": "ns-keel", "include_history": False, "include_context": False},
    "project_ns_plover": {"memory_id": "ns-plover", "include_history": False},
    "anonymous": {"user_id": None},
    "user_ana": {"user_id": "ana"},
    "types_kb_conv": {"memory_types": ["knowledge_base", MemoryType.CONVERSATION_MEMORY, "summaries"]},
}


def improved(data: dict[str, Any], personas: set[str]) -> dict[str, Any]:
    """``data`` of the reference as ours is, where ``personas`` are exported."""
    data = json.loads(json.dumps(data))
    if data["_id"] == "tool-ring-bell":
        data["parameters"]["token"] = {"type": "string"}  # a schema, not a token
    if data["_id"] == "tl-1":
        data["arguments"] = '{"depth_m": 3}'  # the key inside the text is gone
    if data["_id"] == "ctx-span-1":
        data["content"]["model"] = "m-1"  # a name, not a deployment
    if data["_id"] == "agent-other":
        data.pop("instruction")
    if isinstance(data.get("persona"), dict) and data["persona"].get("persona_id") in personas:
        data["persona"]["storage_id"] = data["persona"]["persona_id"]  # where the persona is after a restore
    return data


@pytest.mark.parametrize("name", SCOPES)
def test_an_export_selects_what_the_reference_selects(reference: FileSystemProvider, name: str) -> None:
    expected = archive(name)
    made = MemoryArchive(reference).export(**SCOPES[name])
    personas = {row["id"] for row in expected["stores"]["personas"]}
    for store in TAXONOMY:
        theirs = [(row["id"], improved(row["data"], personas)) for row in expected["stores"][store]]
        ours = [(row["id"], dict(row["data"])) for row in made["stores"][store]]
        for _, data in ours:
            if data["_id"] == "agent-other":
                data.pop("instruction")
        assert ours == theirs
    for member in ("scope", "counts", "record_count", "includes", "external_references"):
        assert made["manifest"][member] == expected["manifest"][member]


def test_a_whole_store_is_everything_but_the_heads_of_the_journal(reference: FileSystemProvider) -> None:
    made = MemoryArchive(reference).export()
    stored = {store: {record["_id"] for record in reference.scan(store)} for store in MemoryType}
    assert {row["id"] for row in made["stores"]["shared_memory"]} == {
        id for id in stored[MemoryType.SHARED_MEMORY] if not id.startswith("mem-head-")
    }
    assert len(made["stores"]["knowledge_base"]) == len(stored[MemoryType.KNOWLEDGE_BASE])
    assert made["manifest"]["scope"] == {
        "agent_id": None, "memory_id": None, "agent_ids": [], "user_id": None, "user_scoped": False,
        "application_id": None,
    }  # fmt: skip


def test_an_empty_store_is_an_archive_with_thirteen_empty_arrays(target: MemoryProvider) -> None:
    made = MemoryArchive(target).export()
    assert made["stores"] == {store: [] for store in TAXONOMY}
    assert made["manifest"]["source_provider"] == type(target).__name__
    assert len(made["manifest"]["warnings"]) == 2
    assert made["manifest"]["omitted_fields"] == made["manifest"]["external_references"] == []


def test_members_stand_in_documented_order(reference: FileSystemProvider) -> None:
    made = MemoryArchive(reference).export(agent_id="agent-keel")
    theirs = archive("agent_coordinator")
    assert list(made) == list(theirs)
    assert list(made["manifest"]) == list(theirs["manifest"])
    assert list(made["manifest"]["scope"]) == list(theirs["manifest"]["scope"])
    assert list(made["stores"]) == list(made["taxonomy"]) == list(TAXONOMY)


def test_an_agent_that_is_not_there_or_not_in_scope_is_refused(reference: FileSystemProvider) -> None:
    with pytest.raises(MemoryArchiveError, match="agents: there is no agent 'nobody'"):
        MemoryArchive(reference).export(agent_id="nobody")
    with pytest.raises(MemoryArchiveError, match="agents: there is no agent 'agent-other'"):
        MemoryArchive(reference).export(agent_id="agent-other", user_id="ana")


def test_an_unknown_type_is_refused_naming_all(reference: FileSystemProvider) -> None:
    with pytest.raises(ValueError, match=r"unknown memory type ' knowledge_base'; expected one of personas, toolbox"):
        MemoryArchive(reference).export(memory_types=[" knowledge_base"])


def test_limits_refuse_instead_of_cutting(reference: FileSystemProvider) -> None:
    size = MemoryArchive(reference).export()["manifest"]["record_count"]
    assert MemoryArchive(reference).export(max_records=size)["manifest"]["record_count"] == size
    with pytest.raises(MemoryArchiveError, match=f"{size} records; at most {size - 1} are allowed"):
        MemoryArchive(reference).export(max_records=size - 1)
    with pytest.raises(MemoryArchiveError, match="at most 1000 are allowed"):
        MemoryArchive(reference).export(max_bytes=1_000)


def test_records_that_share_a_natural_id_are_both_exported_and_named_in_a_warning(target: MemoryProvider) -> None:
    for user in ("ana", "ben"):
        row = {"_id": f"row-{user}", "cache_key": "ck", "query": "when?", "response": user, "user_id": user}
        target.put(MemoryType.SEMANTIC_CACHE, [(row["_id"], row)])
    made = MemoryArchive(target).export()
    rows = {row["data"]["response"]: row["id"] for row in made["stores"]["semantic_cache"]}
    assert rows == {"ana": "ck", "ben": "row-ben"}
    assert "semantic_cache: 1 records share their natural id" in " ".join(made["manifest"]["warnings"])


def test_an_id_that_two_stores_use_is_rewritten_in_its_own_store_only(target: MemoryProvider) -> None:
    target.put(MemoryType.PERSONAS, [("same", {"_id": "same", "persona_id": "p", "name": "P", "memory_id": "same"})])
    target.put(MemoryType.KNOWLEDGE_BASE, [("same", {"_id": "same", "content": "x", "memory_id": "same"})])
    made = MemoryArchive(target).export()
    (persona,), (fact,) = made["stores"]["personas"], made["stores"]["knowledge_base"]
    assert (persona["id"], persona["data"]["memory_id"]) == ("p", "same")
    assert (fact["id"], fact["data"]["memory_id"]) == ("same", "same")


def test_what_cannot_be_read_is_named_in_a_warning(reference: FileSystemProvider) -> None:
    folder = reference.root_path / "knowledge_base"
    broken = next(folder.glob("*.json"))
    broken.write_text("{ torn")
    stray = folder / "stray.json"
    stray.write_text('{"_id": "stray", "id": "stray", "content": "not in the index"}')
    made = MemoryArchive(reference).export(memory_types=["knowledge_base"])
    warnings = " ".join(made["manifest"]["warnings"])
    assert broken.stem in warnings
    assert "stray" in [row["id"] for row in made["stores"]["knowledge_base"]]
    assert broken.stem not in [row["id"] for row in made["stores"]["knowledge_base"]]


def test_half_a_character_in_the_json_of_an_entry_keeps_nobody_from_an_export(tmp_path: Path) -> None:
    half = '{"record_type":"memory_history_change","target_record_id":"\\ud83d","record_id":"c","agent_id":"\\ud83d"}'
    with FileSystemProvider(FileSystemConfig(tmp_path)) as provider:
        provider.put(MemoryType.SHARED_MEMORY, [("c", {"content": half})])
        made = MemoryArchive(provider).export()
    assert made["manifest"]["external_references"] == []
    assert made["stores"]["shared_memory"][0]["data"]["content"] == half
