from __future__ import annotations

import json
from pathlib import Path

import pytest

from memorizz import (
    ContextSnapshots,
    FileSystemConfig,
    FileSystemProvider,
    InvalidRecord,
    MemoryProvider,
    MemoryType,
    RecordExists,
    enable_memory_history,
)
from tests.memorizz.sdk.ports import TestClock, counted
from tests.memorizz.support import DATA, archive, reference_folder

SHARED = MemoryType.SHARED_MEMORY


@pytest.fixture
def snapshots(provider: MemoryProvider, clock: TestClock) -> ContextSnapshots:
    return ContextSnapshots(provider, clock=clock, new_id=counted())


def test_a_snapshot_is_written_as_the_reference_writes_it(provider: MemoryProvider, clock: TestClock) -> None:
    file = DATA / "filesystem-store" / "shared_memory" / "ctx-span-1.json"
    reference = json.loads(file.read_text(encoding="utf-8"))
    id = ContextSnapshots(provider, clock=clock).capture(
        "span-1",
        [{"role": "system", "content": "Coordinate."}, {"role": "user", "content": "The barometer fell."}],
        model="m-1",
        window_tokens=8000,
        estimated_tokens=52,
        iteration=1,
        stage="answer",
        agent_id="agent-keel",
        memory_id="ns-keel",
        thread_id="thr-1",
        user_id="ana",
        run_id="run-1",
        turn_id="turn-1",
        root_trace_id="trace-1",
    )
    stored = provider.get(SHARED, id)
    assert id == "ctx-span-1" and stored is not None
    ours, theirs = json.loads(stored.pop("content")), json.loads(reference.pop("content"))
    changing = {"timestamp", "created_at", "updated_at", "capture_boundary"}
    for made, given in ((stored, reference), (ours, theirs)):
        assert set(made) == set(given)
        assert {name: made[name] for name in set(made) - changing} == {n: given[n] for n in set(given) - changing}


def test_a_snapshot_is_found_by_its_id_and_by_its_span(snapshots: ContextSnapshots) -> None:
    id = snapshots.capture("span-1", [{"role": "user", "content": "Hi."}], tools=[{"name": "post"}])
    found = snapshots.get(id)
    assert found is not None and found == snapshots.get("span-1")
    assert (found["message_count"], found["tool_count"], found["span_id"]) == (1, 1, "span-1")
    assert snapshots.get("span-2") is None


def test_a_span_has_one_snapshot(snapshots: ContextSnapshots) -> None:
    snapshots.capture("span-1", [])
    with pytest.raises(RecordExists, match="ctx-span-1"):
        snapshots.capture("span-1", [{"role": "user", "content": "Other."}])
    found = snapshots.get("span-1")
    assert found is not None and found["messages"] == []


def test_snapshots_are_listed_by_whose_they_are_the_oldest_first(snapshots: ContextSnapshots, clock: TestClock) -> None:
    snapshots.capture("span-2", [], agent_id="keel", run_id="run-1", user_id="ana")
    clock.forward(-10)
    snapshots.capture("span-1", [], agent_id="keel", run_id="run-2")
    clock.forward(20)
    snapshots.capture("span-3", [], agent_id="plover", run_id="run-1")

    def spans(**filters: str | None) -> list[str]:
        return [found["span_id"] for found in snapshots.list(**filters)]  # type: ignore[arg-type]

    assert spans() == ["span-1", "span-2", "span-3"]
    assert spans(agent_id="keel") == ["span-1", "span-2"]
    assert spans(run_id="run-1") == ["span-2", "span-3"]
    assert spans(user_id="ana") == ["span-2"]
    assert spans(user_id=None) == ["span-1", "span-3"]


def test_other_observations_are_kept_as_they_are(snapshots: ContextSnapshots, provider: MemoryProvider) -> None:
    id = snapshots.observe("observability_feedback", {"score": 1, "agent_id": "keel", "status": "open"})
    assert id == "feedback-id-1"
    found = snapshots.get(id)
    assert found is not None and (found["score"], found["record_type"]) == (1, "observability_feedback")
    assert snapshots.list() == []
    assert [entry["record_id"] for entry in snapshots.list(record_type="observability_feedback")] == [id]
    assert [entry["record_id"] for entry in snapshots.list(record_type=None)] == [id]
    stored = provider.get(SHARED, id)
    assert stored is not None and (stored["status"], stored["owner_agent_id"]) == ("open", "keel")


def test_what_is_no_observation_is_refused(snapshots: ContextSnapshots) -> None:
    with pytest.raises(InvalidRecord, match="record_type must be a name that begins with observability_"):
        snapshots.observe("memory_history_change", {})
    with pytest.raises(InvalidRecord, match=r"ctx-s.*window_tokens must be a whole number"):
        snapshots.capture("s", [], window_tokens="many")  # type: ignore[arg-type]
    with pytest.raises(InvalidRecord, match="span_id must be text that is not empty"):
        snapshots.capture("", [])
    with pytest.raises(InvalidRecord, match="JSON data"):
        snapshots.capture("s", [{"role": "user", "content": object()}])
    with pytest.raises(InvalidRecord, match="agent_id must be text or null"):
        snapshots.capture("s", [], agent_id=5)  # type: ignore[arg-type]
    assert snapshots.list(record_type=None) == []


def test_entries_of_the_history_are_no_observations(provider: MemoryProvider, snapshots: ContextSnapshots) -> None:
    enable_memory_history(provider, new_id=counted())
    provider.store({"_id": "kb-1", "content": "One."}, MemoryType.KNOWLEDGE_BASE)
    assert snapshots.list(record_type=None) == [] and snapshots.get("mem-change-id-1") is None
    snapshots.capture("span-1", [])
    assert len(list(provider.scan(SHARED))) == 3


def test_the_snapshot_of_the_reference_folder_and_a_restored_one_can_be_read(
    provider: MemoryProvider, tmp_path: Path
) -> None:
    with FileSystemProvider(FileSystemConfig(root_path=reference_folder(tmp_path / "reference"))) as reference:
        (written,) = ContextSnapshots(reference).list(agent_id="agent-keel", thread_id="thr-1")
    assert written["window_tokens"] == 8000
    for record in archive("agent_coordinator")["stores"]["shared_memory"]:
        provider.put(SHARED, [(record["id"], record["data"])])
    (restored,) = ContextSnapshots(provider).list(agent_id="agent-keel")
    assert restored["messages"] == written["messages"]
