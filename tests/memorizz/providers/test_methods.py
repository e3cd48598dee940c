"""The methods by which people keep records, over every provider."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime
from enum import Enum
from typing import Any

import pytest

from memorizz.errors import InvalidRecord
from memorizz.providers.base import MemoryProvider
from memorizz.taxonomy import MemoryType

KB = MemoryType.KNOWLEDGE_BASE
MESSAGES = MemoryType.CONVERSATION_MEMORY


class Colour(Enum):
    RED = "red"


class Model:
    """An object that says what it is, as models of other libraries do."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self) -> dict[str, Any]:
        return self.fields


def get(provider: MemoryProvider, id: str, store: MemoryType = KB) -> dict[str, Any]:
    found = provider.get(store, id)
    assert found is not None
    return found


def test_a_stored_record_gets_an_id_and_the_time(provider: MemoryProvider) -> None:
    id = provider.store({"content": "x"}, "knowledge_base")
    assert str(uuid.UUID(id)) == id
    record = get(provider, id)
    assert record == {"content": "x", "timestamp": record["timestamp"], "_id": id, "id": id}
    assert abs((datetime.fromisoformat(record["timestamp"]) - datetime.now(UTC)).total_seconds()) < 600
    assert record["timestamp"].endswith("+00:00")


@pytest.mark.parametrize(
    ("store", "data", "id"),
    [
        (KB, {"_id": "a", "id": "b"}, "a"),
        (KB, {"_id": None, "id": "b"}, "b"),
        (KB, {"id": 7}, "7"),
        (KB, {"tool_log_id": "t", "id": "b"}, "b"),
        (MemoryType.TOOL_LOG, {"tool_log_id": "t"}, "t"),
        (MemoryType.TOOL_LOG, {"tool_log_id": "t", "_id": "a"}, "a"),
        (MemoryType.MEMAGENT, {"agent_id": "g", "_id": "a"}, "g"),
        (MemoryType.MEMAGENT, {"_id": "a"}, "a"),
        ("long_term_memory", {"id": "kb"}, "kb"),
    ],
)
def test_the_id_of_a_stored_record_is_the_one_it_brings(
    provider: MemoryProvider, store: Any, data: dict[str, Any], id: str
) -> None:
    assert provider.store(data, store) == id
    record = provider.retrieve_by_id(id, store)
    assert record is not None and record["_id"] == record["id"] == id
    if store == MemoryType.MEMAGENT:
        assert record["agent_id"] == id


def test_values_are_stored_as_json(provider: MemoryProvider) -> None:
    key = uuid.uuid4()
    data = {
        "when": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "day": date(2026, 1, 2), "colour": Colour.RED, "key": key,
        "pair": (1, (2,)), "set": {"b", "a"}, "call": len, "calls": [print, 1], "kind": MemoryType.PERSONAS,
        "class": Colour, "timestamp": 5.5,
    }  # fmt: skip
    record = get(provider, provider.store(data, KB))
    del record["_id"], record["id"]
    assert record == {
        "when": "2026-01-02T03:04:05+00:00", "day": "2026-01-02", "colour": "red", "key": str(key),
        "pair": [1, [2]], "set": ["a", "b"], "calls": [1], "kind": "personas", "timestamp": 5.5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"_id": "r", "a": {"b": [0, b"x"]}}, r"knowledge_base 'r': a\.b\[1\] has no JSON form \(got bytes\)"),
        ({"a": complex(1)}, r"a has no JSON form \(got complex\)"),
        ({"a": {1: 2}}, r"a has a key that is no string \(got 1\)"),
        ({"a": float("nan")}, r"a must be a finite number"),
        ("text", r"knowledge_base: a record must be a mapping \(got str\)"),
        (None, r"must be a mapping \(got NoneType\)"),
    ],
)
def test_a_value_without_json_form_is_refused(provider: MemoryProvider, data: Any, message: str) -> None:
    with pytest.raises(InvalidRecord, match=message):
        provider.store(data, KB)
    with pytest.raises(InvalidRecord, match=message):
        provider.store_many([{"content": "fine"}, data], KB)
    assert provider.count(KB) == 0


def test_the_store_is_said_by_the_record_where_the_call_does_not(provider: MemoryProvider) -> None:
    id = provider.store(memory_unit=Model(content="x", memory_type="short_term_memory"), memory_id="ns")
    assert get(provider, id, MemoryType.SHORT_TERM_MEMORY)["memory_id"] == "ns"
    assert get(provider, provider.store({"memory_id": "own"}, KB, memory_id="ns"))["memory_id"] == "own"
    with pytest.raises(InvalidRecord, match="memory_store_type"):
        provider.store({"content": "x"})
    with pytest.raises(ValueError, match="unknown memory type 'nonsense'"):
        provider.store({"content": "x"}, "nonsense")


def test_storing_under_an_id_that_is_there_replaces_the_record(provider: MemoryProvider) -> None:
    provider.store({"_id": "a", "x": 1}, KB)
    provider.store({"_id": "a", "y": 2}, KB)
    assert get(provider, "a").keys() == {"y", "timestamp", "_id", "id"}


def test_many_records_are_stored_in_one_call(provider: MemoryProvider) -> None:
    ids = provider.store_many([{"n": 0}, Model(_id="own", n=1), {"n": 2}], KB)
    assert ids[1] == "own"
    assert [record["n"] for record in provider.list_all(KB)] == [0, 1, 2]
    assert [record["_id"] for record in provider.list_all(KB)] == ids


def test_a_record_is_found_and_removed_by_name(provider: MemoryProvider) -> None:
    provider.store_many([{"_id": id, "name": name} for id, name in (("1", "a"), ("2", "b"), ("3", "b"))], "personas")
    found = provider.retrieve_by_name("b", MemoryType.PERSONAS)
    assert found is not None and found["_id"] == "2"
    assert provider.retrieve_by_name("c", "personas") is None
    assert provider.delete_by_name("b", "personas") is True
    assert provider.delete_by_name("c", "personas") is False
    assert [record["_id"] for record in provider.list_all("personas")] == ["1", "3"]


@pytest.mark.parametrize(
    ("store", "user", "seen"),
    [
        (MESSAGES, "ana", ["ana"]), (MESSAGES, None, ["none", "null"]), (MESSAGES, "", []),
        (KB, "ana", ["ana", "none", "null"]), (KB, None, ["none", "null"]),
        (MemoryType.SKILLBOX, "ana", ["ana", "none", "null"]), (MemoryType.TOOLBOX, "ana", ["ana", "none", "null"]),
        (MemoryType.PERSONAS, "ana", ["ana", "ben", "none", "null"]),
        (MemoryType.SHARED_MEMORY, None, ["ana", "ben", "none", "null"]),
    ],
)  # fmt: skip
def test_a_user_sees_the_records_of_that_user(
    provider: MemoryProvider, store: MemoryType, user: str | None, seen: list[str]
) -> None:
    rows = [{"_id": "ana", "user_id": "ana"}, {"_id": "ben", "user_id": "ben"}, {"_id": "none"}]
    provider.store_many([*rows, {"_id": "null", "user_id": None}], store)
    assert [record["_id"] for record in provider.list_all(store, user_id=user)] == seen
    assert len(provider.list_all(store)) == 4


def test_an_update_sets_fields_and_leaves_the_others(provider: MemoryProvider) -> None:
    id = provider.store({"a": {"x": 1}, "b": 1, "timestamp": "t"}, KB)
    assert provider.update_by_id(id, {"a": {"y": 2}, "_id": "other", "c": Colour.RED}, KB) is True
    record = get(provider, id)
    assert datetime.fromisoformat(record.pop("updated_at"))
    assert record == {"a": {"y": 2}, "b": 1, "c": "red", "timestamp": "t", "_id": id, "id": id}
    assert provider.update_by_id("nowhere", {"a": 1}, KB) is False


def test_records_are_deleted_by_id_and_all_together(provider: MemoryProvider) -> None:
    provider.store_many([{"_id": id} for id in "abc"], KB)
    provider.store({"_id": "a"}, MESSAGES)
    assert provider.delete_by_id("b", KB) is True
    assert provider.delete_by_id("b", KB) is False
    assert provider.delete_all("knowledge_base") == 2
    assert provider.delete_all(KB) == 0
    assert provider.count(MESSAGES) == 1


def test_a_conversation_is_read_from_its_beginning(provider: MemoryProvider) -> None:
    stamps = {
        "third": "2026-01-01T00:00:02Z", "first": "2026-01-01T01:00:00+01:00", "second": 1767225601.0,
        "fourth": "2026-01-01T00:00:03", "undated": "yesterday",
    }  # fmt: skip
    rows = [
        {"_id": id, "timestamp": stamp, "memory_id": "ns", "thread_id": "t", "user_id": "ana"}
        for id, stamp in stamps.items()
    ]
    provider.store_many([*rows, {"_id": "elsewhere", "memory_id": "other"}, {"_id": "u", "memory_id": "ns"}], MESSAGES)
    read = provider.retrieve_conversation_history_ordered_by_timestamp
    order = ["undated", "first", "second", "third", "fourth"]
    assert [row["_id"] for row in read("ns", thread_id="t")] == order
    assert [row["_id"] for row in read("ns", user_id="ana", limit=2)] == ["third", "fourth"]
    assert [row["_id"] for row in read("ns", user_id=None)] == ["u"]
    assert read("ns", limit=0) == []
    assert read("nowhere") == []


def test_a_summary_and_the_messages_it_covers_know_each_other(provider: MemoryProvider) -> None:
    provider.store_many([{"_id": "m1"}, {"_id": "m2"}, {"_id": "m3"}], MESSAGES)
    id = provider.store_summary_with_links({"content": "short"}, ["m1", "gone", "m2"])
    assert get(provider, id, MemoryType.SUMMARIES)["source_message_ids"] == ["m1", "gone", "m2"]
    assert [record.get("summary_id") for record in provider.list_all(MESSAGES)] == [id, id, None]


def test_a_session_is_changed_only_at_the_expected_revision(provider: MemoryProvider) -> None:
    store = MemoryType.SHARED_MEMORY
    provider.store({"_id": "s", "content": '{"revision": 3}', "scope": "private"}, store)
    swap = provider.compare_and_swap_shared_memory
    assert swap("s", 2, {"content": '{"revision": 9}'}) is False
    assert swap("s", 3, {"content": '{"revision": 4}'}) is True
    assert get(provider, "s", store)["content"] == '{"revision": 4}'
    assert get(provider, "s", store)["scope"] == "private"
    assert swap("nowhere", 0, {}) is False
    provider.store({"_id": "fresh", "content": "text"}, store)
    assert swap("fresh", 0, {"content": {"revision": 1}}) is True
    assert swap("fresh", 1, {"content": {"revision": 2}}) is True
