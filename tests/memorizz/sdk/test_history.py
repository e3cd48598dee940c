from __future__ import annotations

import contextvars
import json
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from memorizz import (
    FileSystemConfig,
    FileSystemProvider,
    MemAgentModel,
    MemoryHistory,
    MemoryProvider,
    MemoryType,
    enable_memory_history,
    memory_change_context,
)
from memorizz.entries import version_hash
from tests.memorizz.sdk.ports import TestClock, counted, open_provider
from tests.memorizz.support import reference_folder

KNOWLEDGE = MemoryType.KNOWLEDGE_BASE
SHARED = MemoryType.SHARED_MEMORY


def rows(provider: MemoryProvider, prefix: str = "mem-change-") -> list[dict[str, Any]]:
    return [row for row in provider.scan(SHARED) if row["_id"].startswith(prefix)]


def entries(provider: MemoryProvider, prefix: str = "mem-change-") -> list[dict[str, Any]]:
    return [json.loads(row["content"]) for row in rows(provider, prefix)]


@pytest.fixture
def history(provider: MemoryProvider, clock: TestClock) -> MemoryHistory:
    return enable_memory_history(provider, clock=clock, new_id=counted("event"))


class TestAgainstTheReferenceFolder:
    """Its journal was written by the reference program."""

    def test_every_record_that_is_at_its_last_version_has_the_hash_of_that_entry(self, tmp_path: Path) -> None:
        with FileSystemProvider(FileSystemConfig(root_path=reference_folder(tmp_path / "memory"))) as provider:
            last = {entry["target_record_id"]: entry for entry in entries(provider)}
            for head in entries(provider, "mem-head-"):
                entry = next(e for e in entries(provider) if e["record_id"] == head["event_id"])
                record = provider.get(MemoryType(entry["memory_type"]), head["target_record_id"])
                assert version_hash(record) == head["version_hash"] == entry["after_hash"]
            assert len(last) == 26

    def test_a_change_made_here_goes_on_from_the_entries_that_are_there(self, tmp_path: Path) -> None:
        with FileSystemProvider(FileSystemConfig(root_path=reference_folder(tmp_path / "memory"))) as provider:
            heads = {entry["target_record_id"]: entry for entry in entries(provider, "mem-head-")}
            templates = {row["history_action"]: row for row in rows(provider)}
            enable_memory_history(provider, new_id=counted("event"))
            number = 0
            for memory_type in MemoryType:
                for record in list(provider.scan(memory_type)):
                    if record["_id"] not in heads:
                        continue
                    number += 1
                    provider.update_by_id(record["_id"], {"note": "seen"}, memory_type)
                    row = provider.get(SHARED, f"mem-change-event-{number}")
                    assert row is not None
                    entry = json.loads(row["content"])
                    assert entry["previous_event_id"] == heads[record["_id"]]["event_id"]
                    assert entry["before_hash"] == heads[record["_id"]]["version_hash"]
                    assert entry["history_gap"] is False
                    assert entry["field_changes"] == {"note": "added"}
                    template = templates["created"]
                    assert set(entry) == set(json.loads(template["content"]))
                    assert set(template) - set(row) <= {"agent_id", "user_id", "trace_memory_id", "thread_id"}
            assert number == 25
            assert len(rows(provider, "mem-head-")) == len(heads)


def test_an_entry_says_who_changed_what_when_and_never_a_value(
    provider: MemoryProvider, history: MemoryHistory, clock: TestClock
) -> None:
    with memory_change_context(actor="operator-1", source="builder", source_ref="plan-7", run_id="run-1"):
        id = provider.store(
            {"_id": "kb-1", "content": "High water at 06:10.", "agent_id": "keel", "memory_id": "ns", "user_id": "ana"},
            KNOWLEDGE,
        )
    clock.forward(60)
    provider.update_by_id(id, {"content": "High water at 06:40.", "status": "active", "supersedes": "kb-0"}, KNOWLEDGE)
    clock.forward(60)
    provider.delete_by_id(id, KNOWLEDGE)

    created, updated, deleted = entries(provider)
    time = "2026-03-01T09:00:00.000000+00:00"
    assert created == {
        "record_id": "mem-change-event-1",
        "record_type": "memory_history_change",
        "schema_version": 1,
        "timestamp": time,
        "created_at": time,
        "updated_at": time,
        "agent_id": "keel",
        "memory_id": "ns",
        "thread_id": None,
        "user_id": "ana",
        "application_id": None,
        "run_id": "run-1",
        "turn_id": None,
        "root_trace_id": None,
        "target_record_id": "kb-1",
        "memory_type": "knowledge_base",
        "action": "created",
        "operation": "store",
        "actor": "operator-1",
        "initiator": None,
        "source": "builder",
        "source_ref": "plan-7",
        "attribution": "host_asserted",
        "previous_event_id": None,
        "before_hash": None,
        "after_hash": created["after_hash"],
        "changed_fields": ["agent_id", "content", "memory_id", "user_id"],
        "field_changes": dict.fromkeys(["agent_id", "content", "memory_id", "user_id"], "added"),
        "parents": [],
        "history_gap": False,
        "label": "knowledge base",
        "content_stored": False,
    }
    assert (updated["action"], updated["operation"]) == ("updated", "update_by_id")
    assert updated["field_changes"] == {"content": "modified", "status": "added", "supersedes": "added"}
    assert updated["parents"] == [{"record_id": "kb-0", "relation": "supersedes"}]
    assert (updated["actor"], updated["attribution"]) == ("keel", "record_metadata")
    assert (
        updated["before_hash"]
        == created["after_hash"]
        == version_hash({"content": "High water at 06:10."} | {"agent_id": "keel", "memory_id": "ns", "user_id": "ana"})
    )
    assert updated["previous_event_id"] == created["record_id"]
    assert deleted["action"] == "deleted" and deleted["after_hash"] is None
    assert set(deleted["field_changes"].values()) == {"removed"}
    assert deleted["timestamp"] == "2026-03-01T09:02:00.000000+00:00"
    assert "High water" not in "".join(row["content"] for row in rows(provider))


def test_the_row_of_an_entry_repeats_what_it_is_searched_by(provider: MemoryProvider, history: MemoryHistory) -> None:
    with memory_change_context(actor="operator-1", turn_id="turn-1"):
        provider.store(
            {"_id": "m-1", "role": "user", "content": "Hi.", "thread_id": "t-1", "memory_id": "ns", "user_id": "ana"},
            MemoryType.CONVERSATION_MEMORY,
        )
    (row,) = rows(provider)
    assert {name: value for name, value in row.items() if name != "content"} == {
        "_id": "mem-change-event-1",
        "id": "mem-change-event-1",
        "memory_id": "mem-change-event-1",
        "memory_type": "shared_memory",
        "scope": "private",
        "owner_agent_id": None,
        "record_type": "memory_history_change",
        "turn_id": "turn-1",
        "trace_memory_id": "ns",
        "thread_id": "t-1",
        "user_id": "ana",
        "timestamp": "2026-03-01T09:00:00.000000+00:00",
        "history_memory_type": "conversation_memory",
        "history_action": "created",
        "history_actor": "operator-1",
    }
    assert row["content"] == json.dumps(json.loads(row["content"]), sort_keys=True)
    assert json.loads(row["content"])["label"] == "user"


def test_a_record_has_one_head_that_stands_at_its_last_entry(provider: MemoryProvider, history: MemoryHistory) -> None:
    provider.store({"_id": "kb-1", "content": "One."}, KNOWLEDGE)
    provider.update_by_id("kb-1", {"content": "Two."}, KNOWLEDGE)
    (head,) = entries(provider, "mem-head-")
    assert head["event_id"] == "mem-change-event-2"
    assert head["version_hash"] == version_hash(provider.get(KNOWLEDGE, "kb-1"))
    assert head["target_record_id"] == "kb-1"
    assert head["created_at"] < head["updated_at"]


def test_a_write_that_the_history_missed_leaves_a_gap_in_the_next_entry(
    provider: MemoryProvider, history: MemoryHistory
) -> None:
    with provider.recording_paused():
        provider.store({"_id": "kb-1", "content": "One."}, KNOWLEDGE)
    provider.update_by_id("kb-1", {"content": "Two."}, KNOWLEDGE)
    provider.update_by_id("kb-1", {"content": "Three."}, KNOWLEDGE)
    with provider.recording_paused():
        provider.update_by_id("kb-1", {"content": "Four."}, KNOWLEDGE)
    provider.delete_by_id("kb-1", KNOWLEDGE)
    provider.store({"_id": "kb-1", "content": "Anew."}, KNOWLEDGE)
    assert [entry["history_gap"] for entry in entries(provider)] == [True, False, True, False]


def test_entries_of_one_moment_still_follow_each_other_in_time(
    provider: MemoryProvider, history: MemoryHistory, clock: TestClock
) -> None:
    provider.store({"_id": "kb-1", "content": "One."}, KNOWLEDGE)
    for number in range(5):
        provider.update_by_id("kb-1", {"number": number}, KNOWLEDGE)
    times = [entry["timestamp"] for entry in entries(provider)]
    assert times == sorted(set(times))
    clock.forward(-3600)
    provider.update_by_id("kb-1", {"number": 6}, KNOWLEDGE)
    assert entries(provider)[-1]["timestamp"] == "2026-03-01T08:00:00.000000+00:00"


def test_agents_tools_and_summaries_have_their_entries(provider: MemoryProvider, history: MemoryHistory) -> None:
    provider.store_memagent(MemAgentModel(agent_id="keel", name="Keel", tools=[{"name": "post"}]))
    provider.update_memagent_memory_ids("keel", ["ns"])
    provider.store({"_id": "s-1", "content": "Short.", "source_message_ids": ["m-1", "m-2"]}, MemoryType.SUMMARIES)
    provider.store({"_id": "l-1", "tool_name": "post"}, MemoryType.TOOL_LOG)
    agent, changed, summary, call = entries(provider)
    assert (agent["operation"], agent["label"], agent["agent_id"]) == ("store_memagent", "Keel", "keel")
    assert (agent["actor"], agent["attribution"], agent["memory_id"]) == (None, "unknown", None)
    assert set(agent["field_changes"].values()) == {"added"}
    assert changed["operation"] == "update_memagent_memory_ids" and changed["changed_fields"] == ["memory_ids"]
    assert [parent["relation"] for parent in summary["parents"]] == ["summarizes", "summarizes"]
    assert (summary["label"], call["label"]) == ("summaries", "post")


def test_nested_contexts_add_to_each_other_and_end_with_their_block(
    provider: MemoryProvider, history: MemoryHistory
) -> None:
    with memory_change_context(actor="operator-1", source="builder", run_id="run-1"):
        with memory_change_context(actor="keel", turn_id="turn-1", label="x" * 200) as inner:
            assert (inner.actor, inner.initiator, inner.source) == ("keel", "operator-1", "builder")
            with memory_change_context(actor="plover"):
                provider.store({"_id": "kb-1", "content": "One."}, KNOWLEDGE)
        provider.store({"_id": "kb-2", "content": "Two."}, KNOWLEDGE)
    provider.store({"_id": "kb-3", "content": "Three."}, KNOWLEDGE)
    first, second, third = entries(provider)
    assert (first["actor"], first["initiator"], first["turn_id"], first["run_id"]) == (
        "plover",
        "operator-1",
        "turn-1",
        "run-1",
    )
    assert first["label"] == "x" * 160
    assert (second["actor"], second["initiator"], second["turn_id"]) == ("operator-1", None, None)
    assert (third["actor"], third["attribution"]) == (None, "unknown")


def test_a_block_that_fails_attributes_nothing_after_it(provider: MemoryProvider, history: MemoryHistory) -> None:
    with pytest.raises(ZeroDivisionError), memory_change_context(actor="operator-1"):
        raise ZeroDivisionError
    provider.store({"_id": "kb-1", "content": "One."}, KNOWLEDGE)
    assert entries(provider)[0]["actor"] is None


def test_threads_attribute_their_own_changes(provider: MemoryProvider, history: MemoryHistory) -> None:
    together = threading.Barrier(4)

    def write(name: str) -> None:
        with memory_change_context(actor=name):
            together.wait()
            for number in range(5):
                provider.store({"_id": f"{name}-{number}", "content": name}, KNOWLEDGE)

    def write_bare() -> None:
        together.wait()
        provider.store({"_id": "bare", "content": "bare"}, KNOWLEDGE)

    with memory_change_context(actor="main"):
        threads = [threading.Thread(target=write, args=(name,)) for name in ("ana", "bo")]
        threads += [
            threading.Thread(target=write_bare),
            threading.Thread(
                target=contextvars.copy_context().run,
                args=(lambda: (together.wait(), provider.store({"_id": "copied", "content": "c"}, KNOWLEDGE)),),
            ),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    actors = {entry["target_record_id"]: entry["actor"] for entry in entries(provider)}
    assert len(actors) == 12
    assert {actors[f"{name}-{number}"] == name for name in ("ana", "bo") for number in range(5)} == {True}
    assert actors["bare"] is None and actors["copied"] == "main"


def test_threads_that_change_one_record_leave_one_chain(provider: MemoryProvider, history: MemoryHistory) -> None:
    provider.store({"_id": "kb-1", "content": "One."}, KNOWLEDGE)

    def write(name: str) -> None:
        for number in range(5):
            provider.update_by_id("kb-1", {name: number}, KNOWLEDGE)

    threads = [threading.Thread(target=write, args=(name,)) for name in ("ana", "bo")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = entries(provider)
    assert len(found) == 11 and not any(entry["history_gap"] for entry in found)
    assert len({entry["previous_event_id"] for entry in found}) == 11


def test_a_history_that_cannot_be_written_keeps_the_change_and_says_so_in_the_log(
    provider: MemoryProvider, caplog: pytest.LogCaptureFixture
) -> None:
    # No provider takes half a surrogate pair in an id.
    enable_memory_history(provider, new_id=lambda: "\ud800")
    with caplog.at_level(logging.ERROR, logger="memorizz.history"):
        provider.store({"_id": "kb-1", "content": "One."}, KNOWLEDGE)
    assert provider.get(KNOWLEDGE, "kb-1") is not None
    assert "the change of 'kb-1' by store is missing from the history" in caplog.text
    assert rows(provider) == []
    provider.recorder = None
    enable_memory_history(provider, new_id=counted())
    provider.update_by_id("kb-1", {"content": "Two."}, KNOWLEDGE)
    assert entries(provider)[0]["history_gap"] is True


def test_a_change_undone_with_its_transaction_leaves_no_entry(tmp_path: Path) -> None:
    with open_provider("sqlite", tmp_path) as provider:
        enable_memory_history(provider)

        def fail() -> None:
            with provider.transaction():
                provider.store({"_id": "kb-1", "content": "One."}, KNOWLEDGE)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert provider.get(KNOWLEDGE, "kb-1") is None and list(provider.scan(SHARED)) == []


def test_history_is_written_only_where_it_was_asked_for(provider: MemoryProvider) -> None:
    reader = MemoryHistory(provider)
    provider.store({"_id": "kb-1", "content": "One."}, KNOWLEDGE)
    assert reader.timeline().changes == []
    writer = MemoryHistory(provider, record_changes=True)
    assert enable_memory_history(provider) is writer
    provider.store({"_id": "kb-2", "content": "Two."}, KNOWLEDGE)
    assert [change["target_record_id"] for change in reader.timeline().changes] == ["kb-2"]


def test_an_import_names_itself_as_the_source(provider: MemoryProvider, history: MemoryHistory) -> None:
    history.record("archive_import", KNOWLEDGE, "kb-1", None, {"_id": "kb-1", "content": "One.", "agent_id": "keel"})
    history.record("archive_import", SHARED, "ctx-1", None, {"content": {"record_type": "observability_feedback"}})
    (entry,) = entries(provider)
    assert (entry["operation"], entry["source"]) == ("archive_import", "archive_import")
    assert (entry["actor"], entry["attribution"], entry["agent_id"]) == (None, "unknown", "keel")
