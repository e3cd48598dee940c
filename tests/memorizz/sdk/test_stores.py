"""What all stores have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import pytest

from memorizz import (
    ConversationMemory,
    EntityMemory,
    InvalidRecord,
    KnowledgeBase,
    MemoryProvider,
    Persona,
    RecordExists,
    SemanticCache,
    SharedMemory,
    ShortTermMemory,
    Skillbox,
    Summaries,
    Toolbox,
    ToolLog,
    WorkflowMemory,
)
from memorizz.stores.base import Store
from memorizz.taxonomy import ID_FIELDS
from tests.memorizz.sdk.ports import TestClock, counted

Create: TypeAlias = Callable[..., str]


class Kind(NamedTuple):
    store: type[Store]
    create: Callable[[Any], Create]
    shared_with_users: bool = False


def bound(*arguments: Any, **fixed: Any) -> Callable[[Any], Create]:
    """A way to create a record of a store with no more than what it cannot do without."""
    return lambda store: lambda **fields: store.create(*arguments, **fixed, **fields)


KINDS = [
    Kind(Persona, bound("Keel", role="Watch lead"), True),
    Kind(Toolbox, bound("ring_bell", "Ring the bell."), True),
    Kind(EntityMemory, bound("Tide gauge", "instrument")),
    Kind(KnowledgeBase, bound("High water at 06:40."), True),
    Kind(SharedMemory, bound("agent-keel", ["agent-plover"])),
    Kind(WorkflowMemory, bound("Gale drill", {"1": {"tool": "post"}})),
    Kind(Skillbox, bound("gale-warning", "# Gale"), True),
    Kind(ConversationMemory, bound("user", "Hi.", memory_id="ns")),
    Kind(Summaries, bound("Pressure fell.")),
    Kind(ShortTermMemory, bound("Check the bearings.")),
    Kind(SemanticCache, bound("when is high water", "06:40")),
    Kind(ToolLog, bound("read_gauge", {"depth_m": 3}, "3.4")),
]

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.store.__name__)


@each_kind
def test_a_record_is_created_read_changed_and_removed(provider: MemoryProvider, clock: TestClock, kind: Kind) -> None:
    store = kind.store(provider, clock=clock, new_id=counted())
    id = kind.create(store)(agent_id="agent-keel", colour="red")
    record = store.get(id)
    assert record is not None
    assert record["_id"] == record["id"]
    assert record[ID_FIELDS.get(store.memory_type.value, "_id")] == id
    assert (record["agent_id"], record["colour"]) == ("agent-keel", "red")
    assert store.get(record["_id"]) == record
    assert record["timestamp"] in ("2026-03-01T09:00:00.000000+00:00", clock.time.timestamp())

    assert store.update(id, colour="blue", note=None)
    changed = store.get(id)
    assert changed is not None and (changed["colour"], changed["note"]) == ("blue", None)
    assert set(record) <= set(changed)
    assert store.list() == [changed] == store.list(colour="blue", agent_id="agent-keel")
    assert store.list(colour="red") == []

    assert store.delete(id) and not store.delete(id)
    assert store.get(id) is None and store.list() == [] and not store.update(id, colour="green")


@each_kind
def test_a_user_sees_the_own_records_and_those_of_nobody_only_where_they_are_shared(
    provider: MemoryProvider, kind: Kind
) -> None:
    everybody = kind.store(provider)
    ana, bo = kind.store(provider, user_id="ana"), kind.store(provider, user_id="bo")
    nobody = kind.store(provider, user_id=None)
    hers, his, free = (kind.create(store)(agent_id=name) for store, name in ((ana, "a"), (bo, "b"), (nobody, "n")))

    def seen(store: Store) -> set[str]:
        listed = {record["agent_id"] for record in store.list()}
        assert listed == {name for name, id in (("a", hers), ("b", his), ("n", free)) if store.get(id) is not None}
        return listed

    assert seen(everybody) == {"a", "b", "n"}
    assert seen(nobody) == {"n"}
    assert seen(ana) == ({"a", "n"} if kind.shared_with_users else {"a"})
    assert seen(bo) == ({"b", "n"} if kind.shared_with_users else {"b"})

    assert not bo.update(hers, colour="red") and not bo.delete(hers)
    if kind.shared_with_users:
        for change in (lambda: ana.update(free, colour="red"), lambda: ana.delete(free)):
            with pytest.raises(InvalidRecord, match=r"user_id must be 'ana' to change it \(got None"):
                change()
    else:
        assert not ana.update(free, colour="red") and not ana.delete(free)
    assert ana.update(hers, colour="red") and nobody.update(free, colour="red") and everybody.delete(his)
    owner = everybody.get(hers)
    assert owner is not None and owner["user_id"] == "ana"


@each_kind
def test_an_application_sees_its_own_records(provider: MemoryProvider, kind: Kind) -> None:
    tides = kind.store(provider, application_id="tides")
    winds = kind.store(provider, application_id="winds", user_id="ana")
    id = kind.create(tides)()
    record = tides.get(id)
    assert record is not None and record["application_id"] == "tides"
    assert kind.store(provider).get(id) is not None
    assert winds.get(id) is None and winds.list() == [] and not winds.delete(id)
    assert kind.store(provider, application_id="tides", user_id="ana").list() == (
        [record] if kind.shared_with_users else []
    )


@each_kind
def test_what_is_created_cannot_be_somebody_elses(provider: MemoryProvider, kind: Kind) -> None:
    store = kind.store(provider, user_id="ana", application_id="tides")
    with pytest.raises(InvalidRecord, match=r"user_id must be that of this store, 'ana' \(got 'bo'\)"):
        kind.create(store)(user_id="bo")
    with pytest.raises(InvalidRecord, match="application_id must be that of this store, 'tides'"):
        kind.create(store)(application_id="winds")
    assert kind.store(provider).list() == []
    unbound = kind.store(provider)
    record = unbound.get(kind.create(unbound)(user_id="bo"))
    assert record is not None and record["user_id"] == "bo"


@each_kind
def test_an_id_that_is_taken_is_not_written_over(provider: MemoryProvider, kind: Kind) -> None:
    ana, bo = kind.store(provider, user_id="ana"), kind.store(provider, user_id="bo")
    field = ID_FIELDS.get(ana.memory_type.value, "_id")
    id = kind.create(ana)(**{field: "taken"})
    before = ana.get(id)
    with pytest.raises(RecordExists, match=f"{ana.memory_type}: 'taken': a record of this id is there already"):
        kind.create(bo)(**{field: "taken"})
    assert id == "taken" and ana.get("taken") == before


@each_kind
def test_an_id_under_which_it_would_not_be_kept_is_refused(provider: MemoryProvider, kind: Kind) -> None:
    store = kind.store(provider)
    with pytest.raises(InvalidRecord, match=r"id must be .*, for a record is kept under its"):
        kind.create(store)(id="mine", **{ID_FIELDS.get(store.memory_type.value, "_id"): "other"})
    assert store.list() == []


@each_kind
def test_what_identifies_a_record_cannot_change(provider: MemoryProvider, kind: Kind) -> None:
    store = kind.store(provider)
    id = kind.create(store)(user_id="ana")
    for name in ("_id", "user_id", "application_id", store.id_field):
        with pytest.raises(InvalidRecord, match=f"{name} must be .*, for it cannot change"):
            store.update(id, **{name: "other"})
    assert store.update(id, user_id="ana", colour="red")


@each_kind
def test_a_field_of_the_wrong_kind_is_refused_when_created_and_when_changed(
    provider: MemoryProvider, kind: Kind
) -> None:
    store = kind.store(provider)
    with pytest.raises(InvalidRecord, match=rf"^{store.memory_type}: .*agent_id must be text or null \(got 7\)$"):
        kind.create(store)(agent_id=7)
    assert store.list() == []
    id = kind.create(store)()
    with pytest.raises(InvalidRecord, match=r"memory_id must be text or null \(got \['ns'\]\)"):
        store.update(id, memory_id=["ns"])


@pytest.mark.parametrize(
    ("store", "arguments", "said"),
    [
        (Persona, {"name": ""}, r"name must be text that is not empty \(got ''\)"),
        (Toolbox, {"name": "t", "import_reference": "os.system"}, "import_reference must be text of the form"),
        (Toolbox, {"name": "t", "parameters": [1]}, "parameters must be an object"),
        (EntityMemory, {"name": "n", "entity_type": 5}, "entity_type must be text"),
        (
            EntityMemory,
            {"name": "n", "entity_type": "t", "relations": [5]},
            r"relations\[0\] must be an object \(got 5",
        ),
        (KnowledgeBase, {"content": None}, r"content must be text \(got None\)"),
        (KnowledgeBase, {"content": "c", "status": "gone"}, "status must be one of 'active', 'superseded'"),
        (SharedMemory, {"root_agent_id": "a", "delegate_agent_ids": [5]}, r"delegate_agent_ids\[0\] must be text"),
        (WorkflowMemory, {"name": "w", "steps": ["one"]}, "steps must be an object"),
        (Skillbox, {"name": "s", "content": "c", "version": -1}, "version must be a whole number >= 0"),
        (ConversationMemory, {"role": "", "content": "c", "memory_id": "ns"}, "role must be text that is not empty"),
        (Summaries, {"content": "c", "period_start": "noon"}, "period_start must be a number or null"),
        (ShortTermMemory, {"content": "c", "ttl": 0}, "ttl must be a number of seconds, more than 0"),
        (SemanticCache, {"query": "q", "response": "r", "similarity_threshold": 1.5}, "must be a number <= 1"),
        (ToolLog, {"tool_name": "t", "arguments": {"a": object()}}, "arguments must be text or JSON data"),
    ],
)
def test_each_store_knows_the_rules_of_its_fields(
    provider: MemoryProvider, store: type[Any], arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidRecord, match=said):
        store(provider).create(**arguments)
    assert store(provider).list() == []
