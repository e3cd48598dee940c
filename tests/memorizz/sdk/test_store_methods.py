"""What single stores can do beyond the rest."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from memorizz import (
    ConversationMemory,
    EntityMemory,
    InvalidRecord,
    KnowledgeBase,
    MemoryProvider,
    MemoryType,
    Persona,
    SemanticCache,
    ShortTermMemory,
    Skillbox,
    Summaries,
    Toolbox,
    ToolLog,
    WorkflowMemory,
)
from tests.memorizz.sdk.ports import TestClock, counted

TIME = "2026-03-01T09:00:00.000000+00:00"


def found(record: dict[str, Any] | None) -> dict[str, Any]:
    assert record is not None
    return record


def test_a_correction_supersedes_what_it_corrects(provider: MemoryProvider, clock: TestClock) -> None:
    knowledge = KnowledgeBase(provider, user_id="ana", clock=clock, new_id=counted("kb"))
    old = knowledge.create("High water at 06:10.", memory_id="ns", agent_id="keel", metadata={"source": "log"})
    clock.forward(60)
    new = knowledge.correct(old, "High water at 06:40.", reason="The clock was slow.")
    assert (old, new) == ("kb-1", "kb-2")
    before, after = found(knowledge.get(old)), found(knowledge.get("kb-2"))
    assert (before["status"], before["superseded_by"]) == ("superseded", new)
    assert before["superseded_at"] == "2026-03-01T09:01:00.000000+00:00"
    assert before["supersede_reason"] == "The clock was slow."
    assert (after["status"], after["supersedes"], after["content"]) == ("active", old, "High water at 06:40.")
    for name in ("memory_id", "agent_id", "user_id", "metadata"):
        assert after[name] == before[name]
    assert [record["_id"] for record in knowledge.list(status="active")] == [new]


def test_what_was_corrected_or_is_not_seen_cannot_be_corrected(provider: MemoryProvider) -> None:
    ana, everybody = KnowledgeBase(provider, user_id="ana"), KnowledgeBase(provider)
    shared, hers = everybody.create("Shared."), ana.create("Hers.")
    assert KnowledgeBase(provider, user_id="bo").correct(hers, "His.") is None
    ana.correct(hers, "Hers, mended.")
    with pytest.raises(InvalidRecord, match=r"status must be active to be corrected: .* has taken its place"):
        ana.correct(hers, "Again.")
    with pytest.raises(InvalidRecord, match="user_id must be 'ana' to change it"):
        ana.correct(shared, "Mine.")
    with pytest.raises(InvalidRecord, match="content must be text that is not empty"):
        everybody.correct(shared, "")
    assert len(everybody.list()) == 3 and found(everybody.get(shared))["status"] == "active"


def test_a_document_is_kept_in_chunks(provider: MemoryProvider) -> None:
    knowledge = KnowledgeBase(provider)
    ids = knowledge.create_chunks("kb-tides", ["One.", "Two."], namespace="tides", strategy="fixed", agent_id="keel")
    chunks = knowledge.list(knowledge_base_id="kb-tides")
    assert [chunk["_id"] for chunk in chunks] == ids
    assert [(c["chunk_index"], c["chunk_count"], c["content"]) for c in chunks] == [(0, 2, "One."), (1, 2, "Two.")]
    assert {(c["namespace"], c["chunking_strategy"], c["agent_id"]) for c in chunks} == {("tides", "fixed", "keel")}
    with pytest.raises(InvalidRecord, match="content must be text"):
        knowledge.create_chunks("kb-2", ["One.", ""])
    with pytest.raises(InvalidRecord, match="_id must be left out"):
        knowledge.create_chunks("kb-2", ["One.", "Two."], _id="chunk")
    assert knowledge.list(knowledge_base_id="kb-2") == []


def test_an_attribute_keeps_its_earlier_values(provider: MemoryProvider, clock: TestClock) -> None:
    entities = EntityMemory(provider, clock=clock)
    id = entities.create("Tide gauge", "instrument", entity_id="ent-gauge")
    assert entities.set_attribute(id, "range_m", "0-8", confidence=0.9, source="label")
    clock.forward(60)
    assert entities.set_attribute(id, "range_m", "0-10", pinned=True)
    assert entities.set_attribute(id, "maker", "Gull")
    range_m, maker = found(entities.get(id))["attributes"]
    later = "2026-03-01T09:01:00.000000+00:00"
    assert range_m == {
        "name": "range_m",
        "value": "0-10",
        "confidence": 1.0,
        "source": None,
        "thread_id": None,
        "pinned": True,
        "history": [{"value": "0-8", "confidence": 0.9, "source": "label", "updated_at": TIME}],
        "created_at": TIME,
        "updated_at": later,
    }
    assert maker["value"] == "Gull"
    assert entities.remove_attribute(id, "maker") and not entities.remove_attribute(id, "maker")
    assert [attribute["name"] for attribute in found(entities.get(id))["attributes"]] == ["range_m"]
    with pytest.raises(InvalidRecord, match=r"confidence must be a number <= 1"):
        entities.set_attribute(id, "maker", "Gull", confidence=2)
    assert not entities.set_attribute("nobody", "a", 1)


def test_entities_are_related(provider: MemoryProvider) -> None:
    entities = EntityMemory(provider)
    id = entities.create("North pier", "place", entity_id="ent-pier")
    assert entities.relate(id, "ent-gauge", "hosts", confidence=0.7)
    assert entities.relate(id, "ent-gauge", "hosts", confidence=0.8, metadata={"since": 2020})
    assert entities.relate(id, "ent-gauge", "owns")
    hosts = {"entity_id": "ent-gauge", "relation_type": "hosts", "confidence": 0.8, "metadata": {"since": 2020}}
    assert found(entities.get(id))["relations"][0] == hosts
    assert entities.unrelate(id, "ent-gauge", "owns") and not entities.unrelate(id, "ent-gauge", "owns")
    assert found(entities.get(id))["relations"] == [hosts]
    assert not entities.relate("nobody", "ent-gauge", "hosts") and not entities.unrelate("nobody", "x", "y")


def test_a_persona_counts_its_versions(provider: MemoryProvider, clock: TestClock) -> None:
    personas = Persona(provider, clock=clock)
    id = personas.create("Keel", role="Watch lead", persona_id="persona-keel")
    assert found(personas.get(id))["version"] == 1
    assert personas.update(id, role="Harbour master", name="Keel")
    persona = found(personas.get(id))
    assert persona["version"] == 2
    assert persona["evolution_history"] == [{"version": 2, "changed_fields": ["role"], "updated_at": TIME}]
    assert personas.update(id, role="Harbour master")
    assert found(personas.get(id))["version"] == 2


def ring_bell(times: int) -> str:
    """Ring the fog bell.

    Once for each of ``times``.
    """
    return "ding" * times


def test_a_function_is_registered_by_where_it_is_and_never_itself(provider: MemoryProvider) -> None:
    tools = Toolbox(provider)
    tool = found(tools.get(tools.register(ring_bell, parameters={"times": {"type": "integer"}}, agent_id="keel")))
    assert tool["import_reference"] == "tests.memorizz.sdk.test_store_methods:ring_bell"
    assert (tool["name"], tool["description"]) == ("ring_bell", "Ring the fog bell.")
    assert tool["docstring"].endswith("Once for each of ``times``.")
    assert "times" in tool["signature"] and tool["parameters"] == {"times": {"type": "integer"}}
    json.dumps(tool)
    for function in (lambda: None, lambda x: x):
        with pytest.raises(InvalidRecord, match="import_reference must be defined by name in an importable module"):
            tools.register(function)


def test_a_summary_and_its_messages_are_linked_both_ways(provider: MemoryProvider, clock: TestClock) -> None:
    messages = ConversationMemory(provider, user_id="ana", clock=clock)
    first = messages.create("user", "The barometer fell.", memory_id="ns", thread_id="t")
    clock.forward(5.5)
    second = messages.create("assistant", "Reading the gauge.", memory_id="ns", thread_id="t")
    others = ConversationMemory(provider, user_id="bo").create("user", "Not hers.", memory_id="ns")
    summaries = Summaries(provider, user_id="ana", clock=clock)
    id = summaries.create("Pressure fell.", [first, second, others, "gone"], memory_id="ns")
    summary = found(summaries.get(id))
    assert summary["source_message_ids"] == [first, second, others, "gone"]
    begin = clock.time.timestamp()
    assert (summary["period_start"], summary["period_end"], summary["created_at"]) == (begin - 5.5, begin, begin)
    assert summary["memory_units_count"] == 4
    linked = [found(provider.get(MemoryType.CONVERSATION_MEMORY, m)).get("summary_id") for m in (first, second, others)]
    assert linked == [id, id, None]
    assert summaries.delete(id) and not summaries.delete(id)
    assert [found(messages.get(m))["summary_id"] for m in (first, second)] == [None, None]


def test_a_conversation_is_read_in_the_order_it_was_held(provider: MemoryProvider) -> None:
    ana = ConversationMemory(provider, user_id="ana")
    for hour in (11, 9, 10):
        ana.create("user", str(hour), memory_id="ns", thread_id="t", timestamp=f"2026-03-01T{hour:02}:00:00+00:00")
    ana.create("user", "elsewhere", memory_id="ns", thread_id="u")
    ConversationMemory(provider, user_id="bo").create("user", "his", memory_id="ns", thread_id="t")
    assert [m["content"] for m in ana.history("ns", thread_id="t")] == ["9", "10", "11"]
    assert [m["content"] for m in ana.history("ns", thread_id="t", limit=2)] == ["10", "11"]
    assert ana.history("ns", limit=0) == [] and ana.history("other") == []


def test_notes_lapse(provider: MemoryProvider, clock: TestClock) -> None:
    notes = ShortTermMemory(provider, user_id="ana", clock=clock)
    notes.create("Lasting.")
    brief = notes.create("Brief.", ttl=60)
    # As other programs write them: without the time at which they lapse.
    provider.store({"content": "Old.", "ttl": 90, "timestamp": TIME, "user_id": "ana"}, MemoryType.SHORT_TERM_MEMORY)
    assert found(notes.get(brief))["expires_at"] == "2026-03-01T09:01:00.000000+00:00"
    assert [note["content"] for note in notes.list()] == ["Lasting.", "Brief.", "Old."]
    clock.forward(60)
    assert [note["content"] for note in notes.list()] == ["Lasting.", "Old."]
    clock.forward(30)
    assert [note["content"] for note in notes.list()] == ["Lasting."]
    assert len(notes.list(include_expired=True)) == 3
    assert ShortTermMemory(provider, user_id="bo", clock=clock).purge() == 0
    assert (notes.purge(), notes.purge()) == (2, 0)


def test_an_answer_is_found_by_its_question_and_session(provider: MemoryProvider) -> None:
    cache = SemanticCache(provider, user_id="ana")
    key = cache.create("when is high water", "06:10", session_id="s")
    record = found(cache.get(key))
    assert record["_id"] == f"sc-{hashlib.sha256(key.encode()).hexdigest()[:32]}"
    assert found(cache.lookup("when is high water", session_id="s"))["hit_count"] == 1
    assert found(cache.lookup("when is high water", session_id="s"))["usage_count"] == 2
    assert cache.lookup("when is high water") is None
    assert SemanticCache(provider, user_id="bo").lookup("when is high water", session_id="s") is None
    assert cache.create("when is high water", "06:40", session_id="s") == key
    assert [answer["response"] for answer in cache.list()] == ["06:40"]
    SemanticCache(provider, user_id="bo").create("when is high water", "his", session_id="s")
    assert len(SemanticCache(provider).list()) == 2


def test_a_call_is_logged_with_what_came_of_it(provider: MemoryProvider) -> None:
    log = ToolLog(provider)
    good = found(log.get(log.create("read_gauge", {"depth_m": 3}, 3.4, tool_call_id="call-1")))
    assert (json.loads(good["arguments"]), good["result"], good["success"]) == ({"depth_m": 3}, "3.4", True)
    assert (good["outcome"], good["error"], good["tool_log_id"]) == ("success", None, good["_id"])
    bad = found(log.get(log.create("read_gauge", "{}", error="no answer")))
    assert (bad["success"], bad["outcome"], bad["result"]) == (False, "failure", None)
    assert len(log.list(tool_name="read_gauge", success=True)) == 1


def test_a_workflow_becomes_a_skill_that_can_be_promoted_and_demoted(
    provider: MemoryProvider, clock: TestClock
) -> None:
    workflows, skills = WorkflowMemory(provider), Skillbox(provider, clock=clock)
    workflow = workflows.create("Gale drill", {"1": {"tool": "post"}, "2": {"tool": "log"}}, outcome="success")
    assert found(workflows.get(workflow))["step_count"] == 2
    skill = skills.create("gale-warning", "# Gale", source_workflow_ids=[workflow], exemplar_workflow_id=workflow)
    assert workflows.update(workflow, promoted_skill_id=skill)
    assert skills.promote(skill)
    assert (found(skills.get(skill))["status"], found(skills.get(skill))["promoted_at"]) == ("active", TIME)
    assert skills.demote(skill, "It went wrong twice.")
    assert found(skills.get(skill))["demotion_reason"] == "It went wrong twice."


def test_rows_that_other_programs_keep_under_another_physical_id_are_found_and_changed_in_place(
    provider: MemoryProvider,
) -> None:
    provider.put(MemoryType.PERSONAS, [("file-1", {"persona_id": "persona-keel", "name": "Keel"})])
    personas = Persona(provider)
    assert found(personas.get("persona-keel"))["_id"] == "file-1" == found(personas.get("file-1"))["_id"]
    assert personas.update("persona-keel", role="Watch lead")
    assert [(p["_id"], p["role"], p["version"]) for p in personas.list()] == [("file-1", "Watch lead", 2)]
    assert personas.delete("persona-keel") and personas.list() == []
