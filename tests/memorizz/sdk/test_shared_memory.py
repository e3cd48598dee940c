from __future__ import annotations

import json
import multiprocessing
import threading
from pathlib import Path
from typing import Any

import pytest

from memorizz import (
    ContextSnapshots,
    InvalidRecord,
    MemoryProvider,
    MemoryType,
    SharedMemory,
    enable_memory_history,
    memory_change_context,
)
from memorizz.timeline import timeline
from tests.memorizz.sdk.ports import BACKENDS, TestClock, counted, open_provider
from tests.memorizz.support import DATA, archive

TIME = "2026-03-01T09:00:00.000000+00:00"


@pytest.fixture
def sessions(provider: MemoryProvider, clock: TestClock) -> SharedMemory:
    return SharedMemory(provider, user_id="ana", clock=clock, new_id=counted("s"))


def begin(sessions: SharedMemory, **fields: Any) -> str:
    return sessions.create("agent-keel", ["agent-plover"], workflow_id="wf-gale", trace_id="trace-1", **fields)


def test_a_session_is_written_as_the_reference_writes_it(sessions: SharedMemory, provider: MemoryProvider) -> None:
    file = next((DATA / "filesystem-store" / "shared_memory").glob("06890631-*.json"))
    reference = json.loads(file.read_text(encoding="utf-8"))
    id = begin(sessions)
    sessions.post(id, "agent-plover", {"gauge_m": 3.4})
    stored = provider.get(MemoryType.SHARED_MEMORY, id)
    assert stored is not None and set(stored) == set(reference)
    assert (stored["owner_agent_id"], stored["scope"], stored["user_id"]) == ("agent-keel", "private", "ana")
    ours, theirs = json.loads(stored["content"]), json.loads(reference["content"])
    assert list(ours) == list(theirs)
    same = set(ours) - {"created_at", "updated_at", "blackboard"}
    assert {name: ours[name] for name in same} == {name: theirs[name] for name in same}
    (entry,), (their_entry,) = ours["blackboard"], theirs["blackboard"]
    assert entry == {**their_entry, "memory_id": "s-2", "created_at": TIME}


def test_entries_are_read_in_the_order_they_were_posted(sessions: SharedMemory) -> None:
    id = begin(sessions)
    first = sessions.post(id, "agent-keel", "Begin.", entry_type="plan")
    second = sessions.post(id, "agent-plover", [3.4])
    assert [entry["memory_id"] for entry in sessions.entries(id)] == [first, second]
    assert [entry["content"] for entry in sessions.entries(id, agent_id="agent-plover")] == [[3.4]]
    assert [entry["content"] for entry in sessions.entries(id, entry_type="plan")] == ["Begin."]
    session = sessions.session(id)
    assert session is not None and session["revision"] == 2


def test_only_those_who_take_part_post(sessions: SharedMemory) -> None:
    id = begin(sessions, sub_agent_ids=["agent-gull"], access_list=["agent-guest"])
    for agent in ("agent-keel", "agent-plover", "agent-gull", "agent-guest"):
        assert sessions.post(id, agent, "Here.") is not None
    with pytest.raises(InvalidRecord, match=r"agent_id must be one of agent-guest, .* \(got 'agent-other'\)"):
        sessions.post(id, "agent-other", "Me too.")
    with pytest.raises(InvalidRecord, match="content must be JSON data"):
        sessions.post(id, "agent-keel", object())
    assert len(sessions.entries(id)) == 4
    assert sessions.post("nowhere", "agent-keel", "Hello?") is None and sessions.entries("nowhere") == []


def test_a_change_counts_only_at_the_expected_revision(sessions: SharedMemory, clock: TestClock) -> None:
    id = begin(sessions)
    clock.forward(5)
    assert sessions.compare_and_swap(id, 0, {"counts": {"calls": 1}})
    assert not sessions.compare_and_swap(id, 0, {"counts": {"calls": 2}})
    session = sessions.session(id)
    assert session is not None
    assert (session["revision"], session["counts"], session["created_at"]) == (1, {"calls": 1}, TIME)
    assert session["updated_at"] == "2026-03-01T09:00:05.000000+00:00"
    assert not sessions.compare_and_swap("nowhere", 0, {})
    with pytest.raises(InvalidRecord, match="status must be text"):
        sessions.compare_and_swap(id, 1, {"status": 5})


def test_a_completed_session_takes_no_entries(sessions: SharedMemory) -> None:
    id = begin(sessions)
    assert sessions.complete(id, {"warned": True}) and not sessions.complete("nowhere")
    session = sessions.session(id)
    assert session is not None
    assert (session["status"], session["outcome"], session["revision"]) == ("completed", {"warned": True}, 1)
    for change in (lambda: sessions.post(id, "agent-keel", "Late."), lambda: sessions.complete(id)):
        with pytest.raises(InvalidRecord, match=r"status must be active \(got 'completed'\)"):
            change()


def test_the_session_itself_is_changed_by_its_revision_only(sessions: SharedMemory) -> None:
    id = begin(sessions)
    with pytest.raises(InvalidRecord, match="content must be changed by its revision"):
        sessions.update(id, content="{}")
    assert sessions.update(id, access_list=["agent-guest"])
    assert sessions.post(id, "agent-guest", "Here.") is not None


def test_entries_of_history_and_context_are_no_sessions(sessions: SharedMemory, provider: MemoryProvider) -> None:
    enable_memory_history(provider, new_id=counted())
    id = begin(sessions)
    snapshot = ContextSnapshots(provider).capture("span-1", [], user_id="ana")
    assert [record["_id"] for record in sessions.list()] == [id]
    assert SharedMemory(provider).get(snapshot) is None
    assert SharedMemory(provider).get("mem-change-id-1") is None and not SharedMemory(provider).delete(snapshot)


def test_a_post_is_attributed_to_the_agent_on_behalf_of_who_runs_it(
    sessions: SharedMemory, provider: MemoryProvider
) -> None:
    enable_memory_history(provider)
    with memory_change_context(actor="operator-1", run_id="run-1"):
        id = begin(sessions)
        sessions.post(id, "agent-plover", 3.4)
    (change,) = timeline(provider, action="updated").changes
    assert (change["actor"], change["initiator"], change["source"]) == (
        "agent-plover",
        "operator-1",
        "shared-memory:blackboard",
    )
    assert (change["label"], change["operation"]) == ("Shared result", "compare_and_swap_shared_memory")
    assert (change["changed_fields"], change["run_id"], change["agent_id"]) == (["content"], "run-1", "agent-keel")


def test_a_restored_session_goes_on(provider: MemoryProvider) -> None:
    record = next(
        r for r in archive("agent_coordinator")["stores"]["shared_memory"] if "blackboard" in r["data"]["content"]
    )
    provider.put(MemoryType.SHARED_MEMORY, [(record["id"], record["data"])])
    sessions = SharedMemory(provider)
    assert sessions.post(record["id"], "agent-plover", "Again.") is not None
    assert len(sessions.entries(record["id"])) == 2


def test_what_is_no_session_is_refused(provider: MemoryProvider, sessions: SharedMemory) -> None:
    provider.store({"_id": "odd", "content": "no JSON", "user_id": "ana"}, MemoryType.SHARED_MEMORY)
    with pytest.raises(InvalidRecord, match=r"'odd': content must be a session as JSON \(got 'no JSON'\)"):
        sessions.session("odd")


def test_of_threads_that_post_at_once_every_one_succeeds(provider: MemoryProvider, sessions: SharedMemory) -> None:
    id = begin(sessions)

    def post(agent: str) -> None:
        for number in range(8):
            assert sessions.post(id, agent, number) is not None

    threads = [threading.Thread(target=post, args=(agent,)) for agent in ("agent-keel", "agent-plover")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for agent in ("agent-keel", "agent-plover"):
        assert [entry["content"] for entry in sessions.entries(id, agent_id=agent)] == list(range(8))
    session = sessions.session(id)
    assert session is not None and session["revision"] == 16


def post_from_elsewhere(backend: str, directory: Path, id: str, agent: str) -> None:
    with open_provider(backend, directory) as provider:
        for number in range(8):
            assert SharedMemory(provider).post(id, agent, number) is not None


@pytest.mark.parametrize("backend", BACKENDS)
def test_of_processes_that_post_at_once_every_one_succeeds(backend: str, tmp_path: Path) -> None:
    agents = ("agent-keel", "agent-plover")
    with open_provider(backend, tmp_path) as provider:
        id = begin(SharedMemory(provider))
        start = multiprocessing.get_context("spawn")
        others = [start.Process(target=post_from_elsewhere, args=(backend, tmp_path, id, agent)) for agent in agents]
        for other in others:
            other.start()
        for other in others:
            other.join()
        assert [other.exitcode for other in others] == [0, 0]
        assert len(SharedMemory(provider).entries(id)) == 16
