from __future__ import annotations

import json
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from agent_memory.errors import InvalidArgument
from memorizz import (
    FileSystemConfig,
    FileSystemProvider,
    MemoryProvider,
    MemoryType,
    enable_memory_history,
    memory_change_context,
)
from memorizz.entries import row
from memorizz.timeline import timeline
from tests.memorizz.sdk.ports import TestClock, open_provider
from tests.memorizz.support import archive, reference_folder

KNOWLEDGE = MemoryType.KNOWLEDGE_BASE


def targets(changes: list[dict[str, Any]]) -> list[str]:
    return [change["target_record_id"] for change in changes]


@pytest.fixture
def written(provider: MemoryProvider) -> MemoryProvider:
    """A provider with a short history: a-1 and b-1 created, a-1 updated, b-1 deleted, a note of nobody created."""
    enable_memory_history(provider, clock=TestClock(timedelta(seconds=1)))
    with memory_change_context(actor="operator", run_id="run-1"):
        provider.store(
            {"_id": "a-1", "content": "A", "agent_id": "a", "memory_id": "ns-a", "user_id": "ana"}, KNOWLEDGE
        )
        provider.store({"_id": "b-1", "content": "B", "agent_id": "b", "memory_id": "ns-b", "user_id": "bo"}, KNOWLEDGE)
    provider.update_by_id("a-1", {"content": "AA"}, KNOWLEDGE)
    provider.delete_by_id("b-1", KNOWLEDGE)
    provider.store({"_id": "n-1", "content": "N"}, MemoryType.SHORT_TERM_MEMORY)
    return provider


def test_changes_come_newest_first(written: MemoryProvider) -> None:
    page = timeline(written)
    assert targets(page.changes) == ["n-1", "b-1", "a-1", "b-1", "a-1"]
    assert [change["action"] for change in page.changes] == ["created", "deleted", "updated", "created", "created"]
    assert page.cursor is None


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"agent_id": "a"}, ["a-1", "a-1"]),
        ({"memory_id": "ns-b"}, ["b-1", "b-1"]),
        ({"run_id": "run-1"}, ["b-1", "a-1"]),
        ({"memory_type": "short_term_memory"}, ["n-1"]),
        ({"memory_type": MemoryType.SHORT_TERM_MEMORY}, ["n-1"]),
        ({"memory_type": "long_term_memory"}, ["b-1", "a-1", "b-1", "a-1"]),
        ({"actor": "operator"}, ["b-1", "a-1"]),
        ({"action": "deleted"}, ["b-1"]),
        ({"user_id": "ana"}, ["a-1", "a-1"]),
        ({"user_id": None}, ["n-1"]),
        ({"user_id": ""}, []),
        ({"actor": "a", "action": "updated"}, ["a-1"]),
        ({"agent_id": "a", "user_id": "bo"}, []),
    ],
)
def test_filters_narrow_the_timeline(written: MemoryProvider, filters: dict[str, Any], expected: list[str]) -> None:
    assert targets(timeline(written, **filters).changes) == expected


def test_a_change_is_current_while_the_record_has_the_content_that_it_left(written: MemoryProvider) -> None:
    assert [change["current"] for change in timeline(written).changes] == [True, True, True, False, False]
    with written.recording_paused():
        written.update_by_id("a-1", {"content": "A"}, KNOWLEDGE)
        written.store({"_id": "b-1", "content": "Back."}, KNOWLEDGE)
    changes = timeline(written).changes
    assert [change["current"] for change in changes] == [True, False, False, False, True]
    with written.recording_paused():
        written.delete_all(MemoryType.SHORT_TERM_MEMORY)
    assert timeline(written).changes[0]["current"] is False


def test_changes_made_between_two_pages_move_nothing(written: MemoryProvider) -> None:
    first = timeline(written, limit=2)
    written.store({"_id": "c-1", "content": "C"}, KNOWLEDGE)
    second = timeline(written, limit=2, cursor=first.cursor)
    third = timeline(written, limit=2, cursor=second.cursor)
    assert targets(first.changes + second.changes + third.changes) == ["n-1", "b-1", "a-1", "b-1", "a-1"]
    assert third.cursor is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"limit": 0}, "limit must be a whole number from 1 to 1000"),
        ({"limit": 1001}, "limit must be"),
        ({"limit": True}, "limit must be"),
        ({"limit": "5"}, "limit must be"),
        ({"action": "forgot"}, "action must be one of created, updated, deleted"),
        ({"cursor": "soon"}, "cursor must be one that a page of the timeline gave"),
        ({"cursor": ""}, "cursor must be"),
    ],
)
def test_an_argument_outside_its_rule_is_refused(
    provider: MemoryProvider, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidArgument, match=said):
        timeline(provider, **arguments)


def test_an_unknown_memory_type_is_refused(provider: MemoryProvider) -> None:
    with pytest.raises(ValueError, match="unknown memory type 'thoughts'"):
        timeline(provider, memory_type="thoughts")


def test_the_timeline_of_the_reference_folder_can_be_read(tmp_path: Path) -> None:
    with FileSystemProvider(FileSystemConfig(root_path=reference_folder(tmp_path / "memory"))) as provider:
        page = timeline(provider)
        assert len(page.changes) == 30
        # All but the first versions of the three records that were changed later, and of the deleted message.
        assert sum(change["current"] for change in page.changes) == 26
        assert page.changes[0]["action"] == "deleted" and page.changes[0]["current"] is True
        (posted,) = timeline(provider, actor="agent-plover").changes
        assert (posted["initiator"], posted["label"]) == ("operator-1", "Shared result")


def test_restored_entries_are_read_and_do_not_claim_content_that_changed_on_the_way(provider: MemoryProvider) -> None:
    stores = archive("agent_coordinator")["stores"]
    for key, records in stores.items():
        provider.put(MemoryType(key), [(record["id"], record["data"]) for record in records])
    changes = timeline(provider).changes
    journal = [record for record in stores["shared_memory"] if record["id"].startswith("mem-change-")]
    assert all(isinstance(record["data"]["content"], dict) for record in journal)
    assert sorted(change["record_id"] for change in changes) == sorted(record["id"] for record in journal)
    current = {(change["memory_type"], change["target_record_id"]): change["current"] for change in reversed(changes)}
    # Credentials were left out of the agent, the session's text became an object; messages came as they were.
    assert current["agents", "agent-keel"] is False
    assert not any(value for (kind, _), value in current.items() if kind == "shared_memory")
    assert any(value for (kind, _), value in current.items() if kind == "conversation_memory")
    assert current["personas", "persona-keel"] is True


def entry(number: int, time: object) -> dict[str, Any]:
    return {
        "record_id": f"mem-change-{number}",
        "record_type": "memory_history_change",
        "timestamp": time,
        "target_record_id": f"r-{number}",
        "memory_type": "knowledge_base",
        "user_id": "ana" if number % 2 else None,
        "after_hash": None,
    }


TIMES = st.one_of(
    st.integers(0, 5).map(lambda second: f"2026-03-01T09:00:0{second}.000000+00:00"),
    st.sampled_from(["2026-03-01T10:00:03+01:00", "2026-03-01T09:00:03Z", "2026-03-01T09:00:03", "soon", None, 5]),
)


@settings(max_examples=40)
@given(times=st.lists(TIMES, max_size=12), limit=st.integers(1, 5), ours=st.booleans(), restored=st.booleans())
def test_the_pages_put_together_are_the_whole(times: list[Any], limit: int, ours: bool, restored: bool) -> None:
    with tempfile.TemporaryDirectory() as directory, open_provider("sqlite", Path(directory)) as provider:
        made = [row(entry(number, time)) for number, time in enumerate(times)]
        if restored:
            made = [{**record, "content": json.loads(record["content"])} for record in made]
        provider.put(MemoryType.SHARED_MEMORY, [(record["_id"], record) for record in made])
        filters: dict[str, Any] = {"user_id": "ana"} if ours else {}
        whole = timeline(provider, limit=1000, **filters)
        assert whole.cursor is None
        assert len(whole.changes) == (len(times) // 2 if ours else len(times))
        pages, cursor = [], None
        while True:
            page = timeline(provider, limit=limit, cursor=cursor, **filters)
            assert len(page.changes) <= limit
            pages += page.changes
            cursor = page.cursor
            if cursor is None:
                break
            assert len(page.changes) == limit
        assert pages == whole.changes


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "nonsense", None, 5])
def test_a_time_that_no_calendar_has_comes_last(tmp_path: Path, time: Any) -> None:
    entry = {"record_type": "memory_history_change", "record_id": "odd", "target_record_id": "odd", "timestamp": time}
    with FileSystemProvider(FileSystemConfig(tmp_path)) as provider:
        provider.put(MemoryType.SHARED_MEMORY, [("odd", row(entry))])
        real = {**entry, "record_id": "real", "target_record_id": "real", "timestamp": "2026-01-01T00:00:00+00:00"}
        provider.put(MemoryType.SHARED_MEMORY, [("real", row(real))])
        assert targets(timeline(provider).changes) == ["real", "odd"]
        provider.store({"_id": "m", "memory_id": "n", "timestamp": 10**400}, MemoryType.CONVERSATION_MEMORY)
        (message,) = provider.retrieve_conversation_history_ordered_by_timestamp("n")
        assert message["_id"] == "m"
