"""Keeping agents, and telling a recorder of changes, over every provider."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memorizz.errors import ConfigurationError, InvalidRecord
from memorizz.providers.base import MemoryProvider
from memorizz.providers.registry import open_provider
from memorizz.records import Record
from memorizz.taxonomy import MemoryType
from tests.memorizz.support import reference_folder

KB = MemoryType.KNOWLEDGE_BASE
AGENTS = MemoryType.MEMAGENT
TOOLBOX = MemoryType.TOOLBOX


class Recorded:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[tuple[str, MemoryType, str, Record | None, Record | None]] = []

    def record(self, operation: str, store: MemoryType, id: str, before: Record | None, after: Record | None) -> None:
        self.events.append((operation, store, id, before, after))

    def brief(self) -> list[tuple[str, str, str]]:
        """Operation, id and which of before and after there are; forgotten afterwards."""
        found = [
            (operation, id, "".join(letter for letter, record in (("b", before), ("a", after)) if record is not None))
            for operation, _, id, before, after in self.events
        ]
        self.events.clear()
        return found


class Agent:
    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def to_dict(self) -> dict[str, Any]:
        return self.fields


def tools(provider: MemoryProvider) -> list[str]:
    return [row["_id"] for row in provider.scan(TOOLBOX)]


def test_an_agent_is_kept_under_its_id_with_the_times_it_was_made_and_changed(provider: MemoryProvider) -> None:
    assert provider.store_memagent(Agent(agent_id="a", name="Keel")) == "a"
    first = provider.retrieve_memagent("a")
    assert first is not None and first["created_at"] == first["updated_at"]
    assert "timestamp" not in first
    assert provider.store_memagent({"agent_id": "a", "name": "Plover", "created_at": "1999"}) == "a"
    second = provider.retrieve_memagent("a")
    assert second is not None and second["name"] == "Plover"
    assert second["created_at"] == first["created_at"] < second["updated_at"]
    made = provider.store_memagent({"name": "fresh", "created_at": "2020-01-01"})
    found = provider.retrieve_memagent(made)
    assert found is not None and found["agent_id"] == found["_id"] == made and found["created_at"] == "2020-01-01"
    assert [agent["_id"] for agent in provider.list_memagents()] == ["a", made]
    assert provider.retrieve_memagent("nobody") is None


def test_an_update_replaces_an_agent_that_is_there(provider: MemoryProvider) -> None:
    assert provider.update_memagent({"agent_id": "a", "name": "x"}) is False
    assert provider.update_memagent({"name": "x"}) is False
    provider.store_memagent({"agent_id": "a", "instruction": "y"})
    assert provider.update_memagent(Agent(agent_id="a", name="x")) is True
    found = provider.retrieve_memagent("a")
    assert found is not None and found["name"] == "x" and "instruction" not in found


def test_the_tools_of_an_agent_are_mirrored_in_the_toolbox(provider: MemoryProvider) -> None:
    provider.store({"_id": "a:by-hand", "name": "by-hand", "agent_id": "a"}, TOOLBOX)
    schema = {"type": "object", "properties": {"level": {"type": "integer"}}}
    tool = {"name": "warn", "description": "Warn.", "parameters": schema, "api_key": "zzz"}
    provider.store_memagent({"agent_id": "a", "tools": [tool, {"name": "bell"}, {"description": "nameless"}, "text"]})
    assert tools(provider) == ["a:by-hand", "a:warn", "a:bell"]
    row = provider.get(TOOLBOX, "a:warn")
    assert row is not None and row.pop("timestamp")
    assert row == {
        "_id": "a:warn", "tool_id": "a:warn", "name": "warn", "description": "Warn.", "signature": "",
        "docstring": "Warn.", "tool_type": "function", "parameters": schema, "agent_id": "a", "id": "a:warn",
    }  # fmt: skip
    provider.store_memagent({"agent_id": "a", "tools": [{"name": "warn"}]})
    assert tools(provider) == ["a:by-hand", "a:warn"]
    provider.store_memagent({"agent_id": "a"})
    assert tools(provider) == ["a:by-hand"]


def test_the_mirror_of_a_tool_is_the_one_the_reference_program_writes(tmp_path: Any) -> None:
    root = reference_folder(tmp_path / "reference")
    with open_provider("filesystem", {"root_path": root}) as provider:
        before = provider.get(TOOLBOX, "agent-keel:post_warning")
        provider.store_memagent(provider.retrieve_memagent("agent-keel"))
        after = provider.get(TOOLBOX, "agent-keel:post_warning")
    assert before is not None and after is not None
    assert list(before) == list(after)
    assert {**before, "timestamp": None} == {**after, "timestamp": None}


def test_an_agent_that_cannot_be_kept_changes_nothing(provider: MemoryProvider) -> None:
    provider.store_memagent({"agent_id": "a", "tools": [{"name": "t"}]})
    for broken in ({"agent_id": "a", "tools": [{"name": "t/" + "x" * 600}]}, {"agent_id": "a", "x": float("nan")}):
        with pytest.raises(InvalidRecord):
            provider.store_memagent(broken)
    assert tools(provider) == ["a:t"]


def test_a_deleted_agent_takes_its_mirrored_tools_along(provider: MemoryProvider) -> None:
    provider.store_memagent({"agent_id": "a", "tools": [{"name": "t"}], "memory_ids": ["ns"]})
    provider.store({"memory_id": "ns", "agent_id": "a"}, KB)
    assert provider.delete_memagent("a") is True
    assert provider.delete_memagent("a") is False
    assert tools(provider) == []
    assert provider.count(KB) == 1


def test_a_cascade_removes_what_was_the_agents_alone(provider: MemoryProvider) -> None:
    provider.store_memagent({"agent_id": "a", "memory_ids": ["own", "shared"]})
    provider.store_memagent({"agent_id": "b", "memory_ids": ["shared"]})
    rows = {
        "owned": {"agent_id": "a", "memory_id": "shared"}, "owned-2": {"owner_agent_id": "a"},
        "in-own": {"memory_id": "own"}, "in-shared": {"memory_id": "shared"},
        "others": {"agent_id": "b", "memory_id": "own"}, "unrelated": {},
    }  # fmt: skip
    provider.store_many([{"_id": id, **row} for id, row in rows.items()], KB)
    assert provider.delete_memagent("a", cascade=True) is True
    assert [record["_id"] for record in provider.scan(KB)] == ["in-shared", "others", "unrelated"]
    assert [agent["_id"] for agent in provider.list_memagents()] == ["b"]


def test_the_namespaces_of_an_agent_are_set_and_taken_away(provider: MemoryProvider) -> None:
    provider.store_memagent({"agent_id": "a", "name": "Keel"})
    assert provider.update_memagent_memory_ids("a", ("x", "y")) is True
    found = provider.retrieve_memagent("a")
    assert found is not None and found["memory_ids"] == ["x", "y"] and found["name"] == "Keel"
    assert provider.delete_memagent_memory_ids("a") is True
    found = provider.retrieve_memagent("a")
    assert found is not None and found["memory_ids"] == []
    assert provider.update_memagent_memory_ids("b", []) is False
    assert provider.delete_memagent_memory_ids("b") is False


def test_a_recorder_is_told_of_every_change_with_what_was_and_what_is(provider: MemoryProvider) -> None:
    provider.recorder = recorder = Recorded()
    provider.store({"_id": "a", "n": 1}, KB)
    provider.store({"_id": "a", "n": 2}, KB)
    (_, _, _, _, after), (operation, store, id, before, _) = recorder.events
    assert (operation, store, id, before) == ("store", KB, "a", after)
    assert recorder.brief() == [("store", "a", "a"), ("store", "a", "ba")]
    provider.store_many([{"_id": "a"}, {"_id": "b", "name": "B"}, {"_id": "c"}], KB)
    assert recorder.brief() == [("store_many", "a", "ba"), ("store_many", "b", "a"), ("store_many", "c", "a")]
    provider.update_by_id("a", {"x": 1}, KB)
    provider.update_by_id("nowhere", {"x": 1}, KB)
    assert recorder.brief() == [("update_by_id", "a", "ba")]
    provider.delete_by_name("B", KB)
    provider.delete_by_id("a", KB)
    provider.delete_by_id("a", KB)
    provider.delete_all(KB)
    assert recorder.brief() == [("delete_by_name", "b", "b"), ("delete_by_id", "a", "b"), ("delete_all", "c", "b")]
    provider.store_memagent({"agent_id": "g", "tools": [{"name": "t"}]})
    provider.update_memagent({"agent_id": "g"})
    provider.update_memagent_memory_ids("g", ["ns"])
    provider.delete_memagent_memory_ids("g")
    provider.delete_memagent("g")
    names = ["update_memagent", "update_memagent_memory_ids", "delete_memagent_memory_ids"]
    assert recorder.brief() == [
        ("store_memagent", "g", "a"), *((name, "g", "ba") for name in names), ("delete_memagent", "g", "b"),
    ]  # fmt: skip
    provider.store({"_id": "m"}, "conversation_memory")
    recorder.events.clear()
    provider.store_summary_with_links({"_id": "s"}, ["m"])
    assert recorder.brief() == [("store_summary_with_links", "s", "a"), ("store_summary_with_links", "m", "ba")]
    provider.store({"_id": "x", "content": "{}"}, "shared_memory")
    recorder.events.clear()
    provider.compare_and_swap_shared_memory("x", 0, {"content": '{"revision": 1}'})
    assert recorder.brief() == [("compare_and_swap_shared_memory", "x", "ba")]


def test_a_recorder_is_not_told_of_its_own_rows_nor_while_it_is_paused(provider: MemoryProvider) -> None:
    provider.recorder = recorder = Recorded()
    entry = json.dumps({"record_type": "memory_history_change"})
    provider.store({"_id": "a", "content": entry}, "shared_memory")
    provider.store({"_id": "b", "record_type": "observability_feedback"}, "shared_memory")
    provider.delete_by_id("a", "shared_memory")
    with provider.recording_paused():
        provider.store({"_id": "c"}, KB)
        with provider.recording_paused():
            provider.update_by_id("c", {}, KB)
        provider.delete_by_id("c", KB)
    # The narrow contract is below the recorder.
    provider.put(KB, [("d", {})])
    assert recorder.events == []
    provider.store({"_id": "e"}, KB)
    assert recorder.brief() == [("store", "e", "a")]


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("redis", {}, r"no provider 'redis'; it must be one of filesystem, sqlite"),
        ("sqlite", {}, r"'sqlite' needs the option 'path'"),
        ("filesystem", {}, r"'filesystem' needs the option 'root_path'"),
        ("sqlite", {"path": "x", "uri": "y"}, r"'sqlite' has no option 'uri'; it has path, read_only"),
    ],
)
def test_a_provider_that_cannot_be_opened_is_named(kind: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        open_provider(kind, options)
