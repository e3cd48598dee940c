from __future__ import annotations

import json
from typing import Any

import pytest

from memorizz import InvalidRecord, MemAgentModel, MemoryProvider, MemoryType
from tests.memorizz.support import DATA

REFERENCE = [
    path for path in sorted((DATA / "filesystem-store" / "agents").glob("*.json")) if path.stem.startswith("agent-")
]


@pytest.mark.parametrize("path", REFERENCE, ids=lambda path: path.stem)
def test_an_agent_of_the_reference_folder_is_read_and_written_back_equal(path: Any) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    agent = MemAgentModel.from_dict(data)
    assert agent.to_dict() == data
    assert agent.extra == {}


def test_the_fields_of_a_fresh_agent_are_those_of_the_reference() -> None:
    data = json.loads(REFERENCE[0].read_text(encoding="utf-8"))
    fresh = MemAgentModel(agent_id="a").to_dict()
    assert set(fresh) == set(data)
    assert (fresh["max_steps"], fresh["tool_access"], fresh["default_harness"]) == (20, "private", "auto")
    assert fresh["automations_enabled"] is True and fresh["semantic_cache"] is False


def test_fields_that_this_version_does_not_know_are_kept() -> None:
    agent = MemAgentModel.from_dict({"agent_id": "a", "mood": {"calm": [1]}, "extra": "mine"})
    assert agent.to_dict()["mood"] == {"calm": [1]}
    assert MemAgentModel.from_dict(agent.to_dict()).to_dict() == agent.to_dict()
    assert agent.to_dict()["extra"] == "mine"


@pytest.mark.parametrize(
    ("field", "value", "place", "rule"),
    [
        ("max_steps", "20", "max_steps", "a whole number"),
        ("max_steps", True, "max_steps", "a whole number"),
        ("memory_ids", ["ns", 7], r"memory_ids\[1\]", "text"),
        ("delegates", "agent-b", "delegates", "a list or null"),
        ("persona", [], "persona", "an object or null"),
        ("multi_tenant", None, "multi_tenant", "true or false"),
        ("thread_titles", {"t": 1}, r"thread_titles\[...\]", "text"),
        ("llm_config", "gpt", "llm_config", "an object or null"),
        ("agent_id", "", "agent_id", "text that is not empty"),
        ("agent_id", 7, "agent_id", "text"),
    ],
)
def test_a_field_that_breaks_its_rule_is_named_with_rule_and_value(
    field: str, value: object, place: str, rule: str
) -> None:
    shown = value[1] if field == "memory_ids" and isinstance(value, list) else value
    with pytest.raises(InvalidRecord, match=rf"^agents: .*: {place} must be {rule} \(got ") as raised:
        MemAgentModel.validate({"agent_id": "agent-a", field: value})
    assert f"(got {shown!r})" in str(raised.value)


def test_an_agent_without_id_is_refused() -> None:
    with pytest.raises(InvalidRecord, match=r"agents: a new record: agent_id must be text that is not empty"):
        MemAgentModel.from_dict({"name": "Keel"})


def test_what_was_set_wrongly_is_refused_when_it_is_written() -> None:
    agent = MemAgentModel(agent_id="a")
    agent.max_steps = "many"  # type: ignore[assignment]
    with pytest.raises(InvalidRecord, match="max_steps"):
        agent.to_dict()
    with pytest.raises(InvalidRecord, match="JSON data"):
        MemAgentModel(agent_id="a", tools=[{"name": "t", "function": print}]).to_dict()


def test_a_provider_keeps_agents_with_delegates_and_namespaces(provider: MemoryProvider) -> None:
    plover = MemAgentModel(agent_id="agent-plover", name="Plover", memory_ids=["ns-plover"])
    keel = MemAgentModel(agent_id="agent-keel", name="Keel", memory_ids=["ns-keel"], delegates=["agent-plover"])
    keel.tools = [{"name": "post", "description": "Post a warning.", "parameters": {"level": {"type": "integer"}}}]
    assert [provider.store_memagent(agent) for agent in (plover, keel)] == ["agent-plover", "agent-keel"]

    stored = provider.retrieve_memagent("agent-keel")
    assert stored is not None
    found = MemAgentModel.from_dict(stored)
    assert (found.delegates, found.memory_ids, found.name) == (["agent-plover"], ["ns-keel"], "Keel")
    assert found.created_at is not None and found.created_at == found.updated_at
    assert provider.get(MemoryType.TOOLBOX, "agent-keel:post") is not None

    found.instruction = "Watch."
    assert provider.update_memagent(found)
    again = provider.retrieve_memagent("agent-keel")
    assert again is not None and again["instruction"] == "Watch." and again["created_at"] == found.created_at
    assert [row["agent_id"] for row in provider.list_memagents()] == ["agent-plover", "agent-keel"]
    assert provider.delete_memagent("agent-plover") and not provider.delete_memagent("agent-plover")
    assert [row["agent_id"] for row in provider.list_memagents()] == ["agent-keel"]
