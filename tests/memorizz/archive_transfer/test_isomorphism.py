"""Random graphs with references of every kind: a copy is the original under the map of ids, and shares none of them."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memorizz import MemoryArchive, MemoryType
from memorizz.taxonomy import ID_FIELDS, TAXONOMY
from tests.memorizz.transfer.test_property import filled, open_provider

Graph = dict[str, dict[str, dict[str, Any]]]

MARK = re.compile(r"‹[^›]*›")
GONE = "‹gone›"


def some(kind: str) -> st.SearchStrategy[str]:
    return st.sampled_from([f"‹{kind}-{number}›" for number in range(3)])


def ids(store: str) -> st.SearchStrategy[str]:
    return some(store) | st.just(GONE)


def entries() -> st.SearchStrategy[dict[str, Any]]:
    """An object inside a record, with references of its own."""
    return st.fixed_dictionaries(
        {"name": st.just("range")},
        optional={
            "thread_id": some("thread"),
            "entity_id": some("entity_memory"),
            "agent_id": some("agents"),
            "run_id": some("run"),
            "metadata": st.fixed_dictionaries({"session_id": some("session"), "memory_ids": st.lists(some("ns"))}),
        },
    )


def record(store: str) -> st.SearchStrategy[dict[str, Any]]:
    fields: dict[str, st.SearchStrategy[Any]] = {
        "agent_id": some("agents"), "memory_id": some("ns"), "thread_id": some("thread"), "run_id": some("run"),
        "turn_id": some("turn"), "root_trace_id": some("trace"), "session_id": some("session"),
        "knowledge_base_id": some("kb"), "supersedes": ids(store), "derived_from": st.lists(ids(store)),
        "source_message_ids": st.lists(ids("conversation_memory")), "summary_id": ids("summaries"),
        "promoted_skill_id": ids("skillbox"), "skills_activated": st.lists(ids("skillbox")),
        "source_workflow_ids": st.lists(ids("workflow_memory")), "associated_thread_ids": st.lists(some("thread")),
        "origin_thread_id": some("thread"), "attributes": st.lists(entries(), max_size=2),
        "relations": st.lists(entries(), max_size=2), "user_id": st.just("ana"),
    }  # fmt: skip
    if store == "agents":
        fields = {
            "memory_ids": st.lists(some("ns")), "delegates": st.lists(some("agents"), unique=True),
            "thread_titles": st.dictionaries(some("thread"), st.just("Title"), max_size=2),
            "knowledge_base_ids": st.lists(some("kb")),
            "persona": st.fixed_dictionaries({"persona_id": some("personas"), "storage_id": some("personas")}),
        }  # fmt: skip
    elif store == "shared_memory":
        fields |= {"trace_memory_id": some("ns"), "history_actor": some("agents")}
    fields.pop(ID_FIELDS.get(store, ""), None)
    prose = st.lists(st.sampled_from(["agents-0", "ns-1", "the gauge"])).map(" ".join)
    return st.fixed_dictionaries({"title": prose}, optional=fields)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    graph: Graph = {}
    for store in TAXONOMY:
        graph[store] = {}
        # All agents are there, so that every delegate is.
        for number in range(3) if store == "agents" else draw(st.sets(st.integers(0, 2), max_size=2)):
            id = f"‹{store}-{number}›"
            natural = {ID_FIELDS[store]: id} if store in ID_FIELDS else {}
            graph[store][id] = {"content": f"prose about {store}", **draw(record(store)), **natural}
    return graph


def marks(value: Any) -> set[str]:
    return set(MARK.findall(json.dumps(value, ensure_ascii=False)))


@pytest.mark.parametrize("kind", ["filesystem", "sqlite"])
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(graph=graphs())
def test_a_copy_is_the_original_under_the_map_and_has_none_of_its_ids(kind: str, graph: Graph) -> None:
    with tempfile.TemporaryDirectory() as directory, open_provider(kind, Path(directory) / "a") as provider:
        filled(provider, graph)
        archive = MemoryArchive(provider)
        made = archive.export()
        report = archive.import_archive(made, dry_run=False, id_strategy="new")
        assert (report["ok"], report["conflicts"], report["skipped"]) == (True, [], 0)
        new = report["id_map"]
        assert len(set(new.values())) == len(new)
        copies = {
            store.value: [
                {**record, "_id": str(record["_id"])} for record in provider.scan(store) if not marks(record["_id"])
            ]
            for store in MemoryType
        }
    assert {store: len(records) for store, records in copies.items()} == made["manifest"]["counts"]
    originals = {row["id"] for rows in made["stores"].values() for row in rows}
    # What is not in the archive has no copy that a reference to it could lead to.
    explicit = {mark for mark in marks(made["stores"]) - originals if mark not in new}
    assert marks(copies) <= explicit
    assert {mark.strip("‹›").rpartition("-")[0] for mark in explicit - {GONE}} <= TAXONOMY.keys()
    back = {copy: original for original, copy in new.items()}
    pattern = re.compile("|".join(map(re.escape, back)))
    restored = json.loads(pattern.sub(lambda found: back[found[0]], json.dumps(copies, ensure_ascii=False)))
    for store, records in restored.items():
        expected = {row["id"]: row["data"] for row in made["stores"][store]}
        for record in records:
            if store == "agents":
                assert record.pop("automations_enabled") is False
                persona = record.get("persona")
                if persona and new.get(expected[record["_id"]]["persona"]["storage_id"]) is None:
                    persona["storage_id"] = expected[record["_id"]]["persona"]["storage_id"]
            assert record == expected[record["_id"]]
