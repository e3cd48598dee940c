"""The database: what other programs find there and leave there, who waits for whom, and what a lost server leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import bson
import pytest
from bson import Binary, Code, DBRef, Decimal128, Int64, MaxKey, ObjectId, Regex, Timestamp
from bson.binary import BinaryVectorDtype
from hypothesis import given, settings
from hypothesis import strategies as st
from pymongo import monitoring
from pymongo.monitoring import CommandFailedEvent, CommandListener, CommandStartedEvent, CommandSucceededEvent
from pymongo.synchronous.database import Database

from memorizz import (
    FileSystemConfig,
    FileSystemProvider,
    MemoryArchive,
    MemoryProvider,
    MongoDBConfig,
    MongoDBProvider,
    SQLiteConfig,
    SQLiteProvider,
    enable_memory_history,
)
from memorizz.errors import ConfigurationError, InvalidRecord, ProviderFault, ReadOnlyProvider, RecordExists
from memorizz.providers import mongodb_documents as documents
from memorizz.providers.contract import Problem
from memorizz.providers.values import Unreadable
from memorizz.taxonomy import ID_FIELDS, MemoryType
from tests.memorizz.support import VALID, archive, reference_folder
from tests.support import mongodb

KB = MemoryType.KNOWLEDGE_BASE
CACHE = MemoryType.SEMANTIC_CACHE
SHARED = MemoryType.SHARED_MEMORY
HEX = "65a1b2c3d4e5f60718293a4b"
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
def name() -> str:
    return mongodb.fresh_database()


def opened(name: str, uri: str | None = None, **more: Any) -> MongoDBProvider:
    return MongoDBProvider(MongoDBConfig(uri or mongodb.uri(), name, **more))


@pytest.fixture
def provider(name: str) -> Iterator[MongoDBProvider]:
    with opened(name) as provider:
        yield provider


@pytest.fixture
def database(name: str) -> Database[Any]:
    """The same database, as another program sees it."""
    return mongodb.client()[name]


@pytest.fixture
def alone(name: str) -> Iterator[MongoDBProvider]:
    """A provider at a server that stands alone."""
    with opened(name, mongodb.standalone_uri()) as provider:
        yield provider


@pytest.fixture(scope="module")
def faulty() -> Iterator[mongodb.Server]:
    """A server that fails when it is told to."""
    server = mongodb.Server()
    yield server
    server.kill()


@contextmanager
def failing(server: mongodb.Server, *commands: str, times: int | None = None, **how: Any) -> Iterator[None]:
    """Let the server fail at those commands."""
    mode: Any = "alwaysOn" if times is None else {"times": times}
    admin = mongodb.client(server.uri).admin
    admin.command({"configureFailPoint": "failCommand", "mode": mode, "data": {"failCommands": list(commands), **how}})
    try:
        yield
    finally:
        admin.command({"configureFailPoint": "failCommand", "mode": "off"})


def ids(provider: MemoryProvider, store: MemoryType = KB) -> list[str]:
    return [record["_id"] for record in provider.scan(store)]


def everything(provider: MemoryProvider) -> dict[str, dict[str, Any]]:
    return {store.value: {record["_id"]: record for record in provider.scan(store)} for store in MemoryType}


def restored(made: dict[str, Any], directory: Path) -> dict[str, dict[str, Any]]:
    """What an archive is where it was restored into a file."""
    with SQLiteProvider(SQLiteConfig(directory / "restored.sqlite3")) as file:
        assert MemoryArchive(file).import_archive(made, dry_run=False)["ok"]
        return everything(file)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
NAMES = TEXT | st.sampled_from(
    ["$set", "$ref", "$id", "$db", "a.b", ".", "", "nul\0", "memorizz:", "memorizz:json", 'memorizz:"x"', "_memorizz",
     "expires_at", "id", "cache_key"]
)  # fmt: skip
DATES = st.sampled_from(
    ["2026-03-02T12:00:00+00:00", "2026-03-02T12:00:00Z", "2026-03-02T12:00:00", "2026-03-02", "20260302T120000.5+0130",
     "2026-03-02T12:00:00.123456+00:00", "2026-03-02T12:00:00.120000+00:00", "0001-01-01T00:00:00+14:00", "9999-12-31"]
)  # fmt: skip
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**62, max_value=10**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, -0.0, 1.0, 1, 1e16, 10**16, -(2**63), -(2**63) - 1, "\0", "\ufeff\uffff\U0010ffff"])
    | TEXT
    | DATES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)


def test_a_record_comes_back_to_the_letter_also_when_it_replaces_another(provider: MongoDBProvider) -> None:
    @settings(max_examples=150)
    @given(st.lists(st.dictionaries(NAMES, VALUES, max_size=5), min_size=1, max_size=3))
    def holds(records: list[dict[str, Any]]) -> None:
        provider.put(CACHE, [(str(number), record) for number, record in enumerate(records)], replace=True)
        for number, record in enumerate(records):
            # As text: 1 and 1.0, 0.0 and -0.0, or two orders of keys would be equal as values.
            record.pop("id", None)
            id = str(number)
            assert json.dumps(provider.get(CACHE, id)) == json.dumps({**record, "_id": id, "id": id})

    holds()


def test_a_document_is_what_the_reference_would_have_written_but_for_one_field(
    provider: MongoDBProvider, database: Database[Any]
) -> None:
    record = {"content": "x", "n": 1, "big": 2**40, "x": 0.5, "a": [{"$ref": "#/x", "b.c": None}], "when": "2026-03-02"}
    provider.put(KB, [(HEX, {**record, "id": "other"})])
    document = database["knowledge_base"].find_one()
    assert document is not None
    assert document.pop("_memorizz").keys() == {"order"}
    assert document == {"_id": ObjectId(HEX), **record}
    assert list(document) == ["_id", *record]


FORMS = [
    (NOON, "2026-03-02T12:00:00+00:00"),
    (datetime(2026, 3, 2, 12, 0, 0, 123_000, tzinfo=UTC), "2026-03-02T12:00:00.123000+00:00"),
    (ObjectId(HEX), HEX),
    (Int64(5), 5),
    (Decimal128("12.50"), "12.50"),
    (Decimal128("NaN"), "NaN"),
    (float("nan"), "NaN"),
    (float("-inf"), "-Infinity"),
    (b"\0\xff", "AP8="),
    (Binary(b"\x01" * 16, 4), "01010101-0101-0101-0101-010101010101"),
    (Binary(b"abc", 4), "YWJj"),
    (Binary.from_vector([0.5, -1.0], BinaryVectorDtype.FLOAT32), [0.5, -1.0]),
    (Binary.from_vector([1, 2], BinaryVectorDtype.INT8), [1, 2]),
    (Binary.from_vector([1], BinaryVectorDtype.PACKED_BIT), "EAAB"),
    (Regex("^a", "im"), "/^a/im"),
    (Timestamp(5, 6), {"t": 5, "i": 6}),
    (Code("f()"), "f()"),
    (Code("f()", {"x": Int64(1)}), {"code": "f()", "scope": {"x": 1}}),
    (DBRef("agents", ObjectId(HEX)), {"$ref": "agents", "$id": HEX}),
    (MaxKey(), "MaxKey"),
    ({"memorizz:nothing": [NOON]}, {"memorizz:nothing": ["2026-03-02T12:00:00+00:00"]}),
]  # fmt: skip


@pytest.mark.parametrize(("value", "form"), FORMS, ids=lambda value: ascii(value)[:40])
def test_a_value_that_json_has_not_has_a_form_and_stays_what_it_is_when_something_else_is_changed(
    provider: MongoDBProvider, database: Database[Any], value: Any, form: Any
) -> None:
    there = database["knowledge_base"]
    there.insert_one({"_id": "one", "value": value, "inside": [value], "n": 1})
    before = there.find_one({}, {"n": 0})
    record = provider.get(KB, "one")
    assert record == {"value": form, "inside": [form], "n": 1, "_id": "one", "id": "one"}
    assert json.loads(json.dumps(MemoryArchive(provider).export()))["stores"]["knowledge_base"][0]["data"] == record
    assert provider.update_by_id("one", {"n": 2}, KB)
    after = there.find_one({}, {"n": 0, "updated_at": 0})
    # As bytes: two values that are no number are never equal.
    assert bson.encode(after or {}) == bson.encode(before or {})


def test_an_expiry_is_a_date_for_the_index_and_the_same_text_for_everybody_else(
    provider: MongoDBProvider, database: Database[Any]
) -> None:
    texts = {
        "canonical": "2026-03-02T12:00:00+00:00", "zulu": "2026-03-02T12:00:00Z", "naive": "2026-03-02T12:00:00",
        "elsewhere": "2026-03-02T13:00:00+01:00", "finer": "2026-03-02T12:00:00.000999+00:00",
    }  # fmt: skip
    provider.put(CACHE, [(id, {"expires_at": text}) for id, text in texts.items()])
    provider.put(CACHE, [("epoch", {"expires_at": 5.5}), ("never", {"expires_at": "never"})])
    stored = {row["_id"]: row["expires_at"] for row in database["semantic_cache"].find()}
    assert stored == {**dict.fromkeys(texts, NOON), "epoch": 5.5, "never": "never"}
    assert {row["_id"]: row["expires_at"] for row in provider.scan(CACHE)} == {**texts, "epoch": 5.5, "never": "never"}
    database["semantic_cache"].update_one({"_id": "finer"}, {"$set": {"expires_at": NOON.replace(hour=13)}})
    assert (provider.get(CACHE, "finer") or {})["expires_at"] == "2026-03-02T13:00:00+00:00"


def test_a_date_of_another_program_stays_a_date_when_it_is_changed(
    provider: MongoDBProvider, database: Database[Any]
) -> None:
    database["knowledge_base"].insert_one({"_id": "one", "updated_at": NOON, "created_at": NOON, "x": NOON})
    assert provider.update_by_id("one", {"x": "no date"}, KB)
    record, document = provider.get(KB, "one"), database["knowledge_base"].find_one()
    assert record is not None and document is not None
    assert document["created_at"] == NOON
    assert document["x"] == record["x"] == "no date"
    assert document["updated_at"] > NOON
    assert datetime.fromisoformat(record["updated_at"]) - document["updated_at"] < (NOON.replace(second=1) - NOON)


def test_a_record_keeps_the_kind_of_id_that_its_document_has(
    provider: MongoDBProvider, database: Database[Any]
) -> None:
    there = database["knowledge_base"]
    text, upper = "65a1b2c3d4e5f60718293a4c", HEX.upper()
    there.insert_many([{"_id": ObjectId(HEX)}, {"_id": text}])
    provider.put(KB, [(HEX, {"n": 1}), (text, {"n": 1}), (upper, {"n": 1})], replace=True)
    assert [row["_id"] for row in there.find({"n": 1})] == [ObjectId(HEX), text, upper]
    assert ids(provider) == [HEX, text, upper]
    assert provider.find(KB, [HEX, text, upper]) == {id: id for id in (HEX, text, upper)}
    with pytest.raises(RecordExists, match="there already"):
        provider.put(KB, [(text, {})])
    assert provider.delete(KB, [HEX, text, upper]) == 3


def test_of_two_documents_that_have_one_text_as_id_the_object_id_counts_and_the_other_is_named(
    provider: MongoDBProvider, database: Database[Any]
) -> None:
    database["knowledge_base"].insert_many([{"_id": HEX, "n": "hidden"}, {"_id": ObjectId(HEX), "n": "seen"}])
    assert [record["n"] for record in provider.scan(KB)] == ["seen"]
    assert provider.count(KB) == 1
    assert (provider.get(KB, HEX) or {})["n"] == "seen"
    assert [(problem.store, problem.id) for problem in provider.problems()] == [(KB, HEX)]
    assert provider.delete(KB, [HEX]) == 1
    assert (provider.get(KB, HEX) or {})["n"] == "hidden"
    assert provider.problems() == []


def test_a_document_whose_id_is_none_is_named_and_hides_no_other(
    provider: MongoDBProvider, database: Database[Any]
) -> None:
    database["knowledge_base"].insert_many([{"_id": 7}, {"_id": "good"}, {"_id": {"a": 1}}])
    assert ids(provider) == ["good"]
    assert provider.count(KB) == 1
    message = "the document has an _id that is neither text nor an ObjectId"
    assert provider.problems() == [Problem(KB, "7", message), Problem(KB, "{'a': 1}", message)]
    warnings = MemoryArchive(provider).export()["manifest"]["warnings"]
    assert any("neither text nor an ObjectId" in warning for warning in warnings)


def test_a_date_beyond_the_calendar_is_its_milliseconds() -> None:
    found = documents.stored(bson.encode({"_id": "a", "x": bson.DatetimeMS(10**15)}))
    assert documents.to_record(found)["x"] == 10**15


def test_of_a_document_that_cannot_be_decoded_the_id_is_known() -> None:
    raw = bson.encode({"_id": "bad", "x": "é", "_memorizz": {"order": 5}}).replace("é".encode(), b"\xff\xfe")
    found = documents.stored(raw)
    assert (found.key, found.order) == ("bad", 5)
    with pytest.raises(Unreadable, match="cannot be decoded"):
        documents.to_record(found)
    assert documents.to_document(KB, "bad", {"x": "mended"}, 5, found) == {
        "_id": "bad", "x": "mended", "_memorizz": {"order": 5},
    }  # fmt: skip
    assert documents.stored(b"").fault is not None


def test_documents_of_other_programs_come_first_and_stay_where_they_are(
    provider: MongoDBProvider, database: Database[Any]
) -> None:
    provider.put(KB, [("b", {}), ("a", {})])
    database["knowledge_base"].insert_many([{"_id": "z"}, {"_id": ObjectId(HEX)}, {"_id": "y"}])
    provider.put(KB, [("z", {"n": 1}), ("b", {"n": 1}), ("0", {})], replace=True)
    assert ids(provider) == ["z", HEX, "y", "b", "a", "0"]


def test_many_records_are_written_together_in_their_order_whatever_places_others_gave(
    provider: MongoDBProvider, database: Database[Any]
) -> None:
    rows = [(f"r{7919 * n % 10_007}", {"n": n, "text": "x" * 100}) for n in range(2_300)]
    provider.put(KB, rows)
    assert ids(provider) == [id for id, _ in rows]
    with pytest.raises(RecordExists, match=f"{rows[2_000][0]!r}: a record of this id is there already"):
        provider.put(KB, [(f"new-{n}", {}) for n in range(1_500)] + rows[2_000:])
    assert provider.count(KB) == 2_300
    # As somebody may do who copies documents.
    database["knowledge_base"].update_many({"n": {"$lt": 1_200}}, {"$set": {"_memorizz.order": 5.5}})
    database["knowledge_base"].update_one({"n": 1_300}, {"$set": {"_memorizz.order": Decimal128("7")}})
    database["knowledge_base"].update_one({"n": 1_400}, {"$set": {"_memorizz": "nothing"}})
    found = [record["n"] for record in provider.scan(KB)]
    assert found[0] == 1_400 and sorted(found[1:1_201]) == list(range(1_200)) and found[1_201] == 1_300
    assert len(found) == len(set(found)) == 2_300


@pytest.mark.parametrize(
    ("value", "id"), [(5, "5"), (Int64(2**40), str(2**40)), (2.5, "2.5"), (ObjectId(HEX), HEX), ("t", "t")]
)
def test_a_natural_id_is_found_whatever_type_another_program_gave_it(
    provider: MongoDBProvider, database: Database[Any], value: Any, id: str
) -> None:
    database["personas"].insert_many([{"_id": "p", "persona_id": value}, {"_id": "q", "persona_id": [value, ""]}])
    database["personas"].insert_many([{"_id": "zero", "persona_id": 0}, {"_id": "none", "persona_id": ""}])
    assert provider.find(MemoryType.PERSONAS, [id, "0", "", "p", "half \ud800"]) == {id: "p", "p": "p"}


def test_a_document_that_would_be_too_big_is_refused_before_anything_is_written(provider: MongoDBProvider) -> None:
    fits = {"text": "x" * (16 * 1024 * 1024 - 200)}
    provider.put(KB, [("big", fits)])
    assert provider.get(KB, "big") == {**fits, "_id": "big", "id": "big"}
    refused = r"knowledge_base 'bad': the document of \d+ bytes is bigger than 16777216 bytes"
    for record in ({"text": "\U0001f600" * 4_200_000}, {"text": "x" * 16 * 1024 * 1024}):
        with pytest.raises(InvalidRecord, match=refused):
            provider.check(KB, "bad", record)
    with pytest.raises(InvalidRecord, match=refused):
        provider.put(KB, [("good", {}), ("bad", record)])
    assert ids(provider) == ["big"]


def test_reading_only_makes_nothing_in_a_database_of_the_reference_and_exports_it(
    name: str, database: Database[Any]
) -> None:
    database["agents"].insert_one({"agent_id": "harbor", "memory_ids": ["tides"], "created_at": NOON})
    database["knowledge_base"].insert_one({"content": "High water", "memory_id": "tides", "agent_id": "harbor"})
    with opened(name, read_only=True) as provider:
        made = MemoryArchive(provider).export(agent_id="harbor")
        assert made["manifest"]["counts"]["knowledge_base"] == 1
        assert MemoryArchive(provider).import_archive(archive(), dry_run=True)["planned"] > 0
        with pytest.raises(ReadOnlyProvider, match=f"the database '{name}' was opened for reading only"):
            provider.transaction().__enter__()
        with pytest.raises(ReadOnlyProvider):
            provider.compare_and_swap_shared_memory("x", 0, {})
    assert sorted(database.list_collection_names()) == ["agents", "knowledge_base"]
    assert list(database["agents"].index_information()) == ["_id_"]


def test_the_documented_indexes_are_made_once_and_those_of_the_reference_are_left_alone(
    name: str, database: Database[Any]
) -> None:
    database["semantic_cache"].create_index("expires_at", name="theirs")
    database["tool_log"].create_index("tool_log_id", unique=True, sparse=True)
    for _ in range(2):
        with opened(name) as provider:
            for store, field in ID_FIELDS.items():
                fields = [index["key"][0][0] for index in database[store].index_information().values()]
                assert field in fields
    agents = database["agents"].index_information()["agent_id_1"]
    assert agents["unique"] and agents["partialFilterExpression"] == {"agent_id": {"$type": "string"}}
    cache = database["semantic_cache"].index_information()
    assert "theirs" in cache
    assert {"memory_id_1_thread_id_1_timestamp_1", "user_id_1_timestamp_1", "memorizz_order"} <= set(
        database["conversation_memory"].index_information()
    )
    with opened(name) as provider:
        provider.put(MemoryType.TOOL_LOG, [("a", {"tool_log_id": "t"})])
        with pytest.raises(RecordExists, match="a record of that identity is there already"):
            provider.put(MemoryType.TOOL_LOG, [("b", {}), ("c", {"tool_log_id": "t"})])
        assert ids(provider, MemoryType.TOOL_LOG) == ["a"]


def test_a_fresh_cache_expires_by_its_index(provider: MongoDBProvider, database: Database[Any]) -> None:
    assert database["semantic_cache"].index_information()["expires_at_1"]["expireAfterSeconds"] == 0


def test_records_are_found_by_an_index(provider: MongoDBProvider, database: Database[Any]) -> None:
    provider.put(MemoryType.PERSONAS, [(f"p{n}", {"persona_id": f"nat-{n}"}) for n in range(300)])
    for wanted in ({"persona_id": {"$in": ["nat-7"]}}, {"_id": {"$in": ["p7"]}}, {"_memorizz.order": {"$gte": 0}}):
        plan = json.dumps(database["personas"].find(wanted).explain()["queryPlanner"]["winningPlan"], default=str)
        assert "COLLSCAN" not in plan


def test_opening_goes_on_where_no_index_may_be_made_and_says_so(
    name: str, faulty: mongodb.Server, caplog: pytest.LogCaptureFixture
) -> None:
    refused = {"errorCode": 13}
    with failing(faulty, "createIndexes", "listIndexes", **refused), opened(name, faulty.uri) as provider:
        provider.put(MemoryType.PERSONAS, [("a", {"persona_id": "p"})])
        assert provider.find(MemoryType.PERSONAS, ["p"]) == {"p": "a"}
    assert f"the database '{name}': " in caplog.text and "indexes could not be made" in caplog.text


def test_a_missing_driver_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [module for module in sys.modules if module.startswith("memorizz.providers.mongodb_")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "pymongo", None)
    monkeypatch.setitem(sys.modules, "bson", None)
    with pytest.raises(ConfigurationError) as raised:
        MongoDBProvider(MongoDBConfig("mongodb://127.0.0.1"))
    assert str(raised.value) == "the provider mongodb needs the library pymongo: pip install 'agent-memory[mongodb]'"


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("", "x"), ("http://h", "x"), ("mongodb://", "x"), ("mongodb://me:sec/ret@h", "x"),
        ("mongodb://me:secret@h:x", "x"),
        ("mongodb://h", "a b"), ("mongodb://h", ""), ("mongodb://h", "a/b"), ("mongodb://h", "nul\0"),
    ],
)  # fmt: skip
def test_an_address_or_name_that_is_none_is_refused_without_repeating_a_password(uri: str, name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"like mongodb://|cannot be the name") as raised:
        opened(name, uri or "nothing")
    assert "sec" not in str(raised.value)


def test_no_message_holds_the_password(name: str) -> None:
    config = MongoDBConfig(
        "mongodb://me:secret@127.0.0.1:1/?serverSelectionTimeoutMS=50", name, embedding_config={"k": 1}
    )
    assert repr(config) == (
        f"MongoDBConfig(uri='mongodb://me:***@127.0.0.1:1/?serverSelectionTimeoutMS=50', db_name={name!r}, "
        "read_only=False)"
    )
    with pytest.raises(ProviderFault) as raised:
        MongoDBProvider(config)
    assert str(raised.value).startswith(f"the database {name!r}: the server cannot be reached (127.0.0.1:1: ")
    assert "secret" not in str(raised.value) and "Topology" not in str(raised.value)
    with pytest.raises(ProviderFault, match="cannot be reached"):
        opened(name, "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=50", read_only=True)


def test_an_archive_goes_from_a_folder_through_the_database_to_a_file_unchanged(
    provider: MongoDBProvider, tmp_path: Path
) -> None:
    folder = FileSystemProvider(FileSystemConfig(reference_folder(tmp_path / "folder")))
    file = SQLiteProvider(SQLiteConfig(tmp_path / "memory.sqlite3"))
    made = MemoryArchive(folder).export()
    for target in (provider, file):
        assert MemoryArchive(target).import_archive(made, dry_run=False)["ok"]
        made = MemoryArchive(target).export()
    first = MemoryArchive(folder).export()
    assert made["stores"] == {**first["stores"], "agents": made["stores"]["agents"]}
    assert made["stores"] == MemoryArchive(provider).export()["stores"]
    folder.close()
    file.close()


@pytest.mark.parametrize("name_of", [path.name.removesuffix(".memorizz.json") for path in VALID])
def test_every_archive_of_the_reference_is_restored_as_into_a_file(
    provider: MongoDBProvider, tmp_path: Path, name_of: str
) -> None:
    with SQLiteProvider(SQLiteConfig(tmp_path / "memory.sqlite3")) as file:
        for target in (provider, file):
            target.put(MemoryType.MEMAGENT, [(id, {"agent_id": id}) for id in ("agent-plover", "agent-keel")])
            report = MemoryArchive(target).import_archive(archive(name_of), dry_run=False, conflict="replace")
            assert report["ok"], report["errors"]
        for store in MemoryType:
            assert list(provider.scan(store)) == list(file.scan(store))


def test_a_block_waits_until_that_of_another_program_ends(name: str, provider: MongoDBProvider) -> None:
    provider.put(SHARED, [("s", {"n": 0})])

    def add(one: MongoDBProvider) -> None:
        with one.exclusive(SHARED):
            one.put(SHARED, [("s", {"n": (one.get(SHARED, "s") or {})["n"] + 1})], replace=True)

    with opened(name) as other, ThreadPoolExecutor(4) as threads:
        for job in [threads.submit(add, one) for one in (provider, other) * 10]:
            job.result()
    assert (provider.get(SHARED, "s") or {})["n"] == 20


def test_a_block_of_a_program_that_died_holds_others_up_only_as_long_as_the_server_keeps_it(name: str) -> None:
    server = mongodb.Server(lifetime_secs=0.3)
    with opened(name, server.uri) as dead, opened(name, server.uri) as other:
        other.put(KB, [("a", {})])
        with pytest.raises(ProviderFault, match="ended the block, which it allows for a limited time only"):
            _die_in_a_block(dead, other)
        assert ids(other) == ["a"]
        assert (other.get(KB, "a") or {})["n"] == 1
    server.kill()


def _die_in_a_block(dead: MongoDBProvider, other: MongoDBProvider) -> None:
    with dead.transaction():
        dead.put(KB, [("b", {})])
        assert other.update_by_id("a", {"n": 1}, KB)


def test_a_block_whose_records_another_program_changed_meanwhile_is_undone_as_a_whole(
    name: str, provider: MongoDBProvider
) -> None:
    provider.put(KB, [("a", {"n": 1})])
    changed = "another program changed the same records at the same time"
    with opened(name) as other, pytest.raises(ProviderFault, match=changed):
        _lose_the_race(provider, other)
    assert list(provider.scan(KB)) == [{"n": 2, "_id": "a", "id": "a"}]


def _lose_the_race(provider: MongoDBProvider, other: MongoDBProvider) -> None:
    with provider.transaction():
        provider.put(KB, [("b", {})])
        other.put(KB, [("a", {"n": 2})], replace=True)
        provider.put(KB, [("a", {"n": 3})], replace=True)


def test_a_block_in_which_a_statement_failed_is_not_taken_for_written(provider: MongoDBProvider) -> None:
    provider.put(MemoryType.MEMAGENT, [("a", {"agent_id": "x"})])
    with pytest.raises(ProviderFault, match="so the whole block is undone"):
        _swallow_a_failure(provider)
    assert ids(provider) == []
    provider.put(KB, [("c", {})])
    assert ids(provider) == ["c"]


def _swallow_a_failure(provider: MongoDBProvider) -> None:
    with provider.transaction():
        provider.put(KB, [("a", {})])
        with pytest.raises(RecordExists, match="of that identity"):
            provider.put(MemoryType.MEMAGENT, [("b", {"agent_id": "x"})])
        with pytest.raises(ProviderFault, match="so the whole block is undone"):
            provider.get(KB, "a")


def test_an_update_that_meets_another_programs_begins_again(name: str) -> None:
    with opened(name) as one, opened(name) as two, ThreadPoolExecutor(4) as threads:
        one.put(KB, [("r", {})])
        enable_memory_history(one)
        jobs = [
            threads.submit(provider.update_by_id, "r", {f"{number}": True}, KB)
            for provider in (one, two)
            for number in (range(10) if provider is one else range(10, 20))
        ]
        jobs += [threads.submit(two.put, KB, [("other", {"n": n})], replace=True) for n in range(10)]
        assert [job.result() for job in jobs] == [True] * 20 + [None] * 10
        assert {str(number) for number in range(20)} <= (one.get(KB, "r") or {}).keys()


@pytest.mark.parametrize("code", [251, 290])
def test_a_block_that_the_server_ended_is_a_fault_and_says_why(name: str, faulty: mongodb.Server, code: int) -> None:
    with (
        opened(name, faulty.uri) as provider,
        failing(faulty, "commitTransaction", times=1, errorCode=code),
        pytest.raises(ProviderFault, match="ended the block, which it allows for a limited time only"),
    ):
        provider.put(KB, [("a", {})])


def test_a_connection_that_is_lost_at_the_end_of_a_block_leaves_it_open_and_says_so(
    name: str, faulty: mongodb.Server
) -> None:
    with opened(name, faulty.uri) as provider:
        with (
            failing(faulty, "commitTransaction", times=2, closeConnection=True),
            pytest.raises(ProviderFault, match="it may be written or not"),
        ):
            provider.put(KB, [("a", {})])
        provider.put(KB, [("b", {})])
        assert "b" in ids(provider)


def test_what_is_not_confirmed_by_a_majority_is_a_fault(name: str, faulty: mongodb.Server) -> None:
    concern = {"code": 64, "errmsg": "waiting for replication timed out"}
    with (
        opened(name, faulty.uri) as provider,
        failing(faulty, "commitTransaction", times=1, writeConcernError=concern),
        pytest.raises(ProviderFault, match="may be written or not"),
    ):
        provider.put(KB, [("a", {})])


def test_a_server_that_stands_alone_promises_nothing_and_takes_whole_records(
    alone: MongoDBProvider, tmp_path: Path
) -> None:
    assert alone.capabilities == (False, False, False)
    report = MemoryArchive(alone).import_archive(archive("agent_coordinator"), dry_run=False)
    assert report["ok"] and report["atomic"] is False
    assert everything(alone) == restored(archive("agent_coordinator"), tmp_path)
    with alone.snapshot(), alone.transaction():
        alone.put(KB, [("a", {}), ("b", {})])
    with pytest.raises(RecordExists, match="'b': a record of this id is there already"):
        alone.put(KB, [("c", {}), ("b", {})])
    with pytest.raises(RecordExists, match="of that identity"):
        alone.put(MemoryType.MEMAGENT, [("x", {"agent_id": "x"}), ("y", {"agent_id": "x"})])
    assert alone.get(MemoryType.MEMAGENT, "x") is None


def test_a_server_that_stands_alone_loses_no_update_either(name: str, alone: MongoDBProvider) -> None:
    alone.put(KB, [("r", {})])
    alone.put(SHARED, [("s", {"content": {"revision": 0}})])

    def work(provider: MongoDBProvider, number: int) -> None:
        assert provider.update_by_id("r", {str(number): True}, KB)
        while True:
            revision = (provider.get(SHARED, "s") or {})["content"]["revision"]
            if provider.compare_and_swap_shared_memory("s", revision, {"content": {"revision": revision + 1}}):
                return

    with opened(name, mongodb.standalone_uri()) as other, ThreadPoolExecutor(4) as threads:
        enable_memory_history(other)
        for job in [threads.submit(work, (alone, other)[number % 2], number) for number in range(20)]:
            job.result()
    assert {str(number) for number in range(20)} <= (alone.get(KB, "r") or {}).keys()
    assert (alone.get(SHARED, "s") or {})["content"] == {"revision": 20}


def test_a_block_at_a_server_that_stands_alone_fails_when_what_it_read_was_changed(
    name: str, alone: MongoDBProvider
) -> None:
    alone.put(KB, [("a", {"n": 1})])
    with opened(name, mongodb.standalone_uri()) as other:
        for _ in range(2):
            with pytest.raises(ProviderFault, match="'a': another program changed the record at the same time"):
                _lose_the_record(alone, other)
    assert alone.get(KB, "a") is None


def _lose_the_record(provider: MongoDBProvider, other: MongoDBProvider) -> None:
    with provider.exclusive(KB):
        found = provider.get(KB, "a")
        if found is None:
            other.put(KB, [("a", {})])
        else:
            other.delete(KB, ["a"])
        try:
            provider.put(KB, [("a", {"n": 2})], replace=True)
        finally:
            other.delete(KB, ["a"])


def test_a_block_at_a_server_that_stands_alone_may_change_a_record_again_and_again(alone: MongoDBProvider) -> None:
    alone.put(KB, [("a", {"n": 1})])
    with alone.exclusive(KB), alone.exclusive(KB):
        for n in (2, 3):
            assert alone.get(KB, "a") is not None
            alone.put(KB, [("a", {"n": n})], replace=True)
        assert alone.get(KB, "a") == {"n": 3, "_id": "a", "id": "a"}
        assert alone.delete(KB, ["a"]) == 1
        alone.put(KB, [("a", {"n": 4})], replace=True)
        assert alone.get(KB, "b") is None
        alone.put(KB, [("b", {})])
        alone.put(KB, [("b", {"n": 5})], replace=True)
    assert everything(alone)["knowledge_base"] == {
        "a": {"n": 4, "_id": "a", "id": "a"}, "b": {"n": 5, "_id": "b", "id": "b"},
    }  # fmt: skip


class _Killer(CommandListener):
    """Ends a server when a command of that name, for a store, is about to be sent for the so-and-so-many-th time."""

    def __init__(self) -> None:
        self.armed: tuple[mongodb.Server, str, str, int] | None = None

    def started(self, event: CommandStartedEvent) -> None:
        if self.armed is None or (event.command_name, event.database_name) != self.armed[1:3]:
            return
        if event.command[event.command_name] == "memorizz_lock":
            return
        server, command, database, left = self.armed
        self.armed = (server, command, database, left - 1) if left > 1 else None
        if left == 1:
            server.kill()

    def succeeded(self, event: CommandSucceededEvent) -> None:
        pass

    def failed(self, event: CommandFailedEvent) -> None:
        pass


KILLER = _Killer()
monitoring.register(KILLER)


@pytest.mark.parametrize("standalone", [False, True], ids=["replica set", "standalone"])
@pytest.mark.parametrize(("command", "number"), [("insert", 6), ("update", 1)])
def test_a_server_that_dies_in_the_middle_of_a_restore_leaves_what_is_reported_and_a_repeat_completes(
    name: str, tmp_path: Path, standalone: bool, command: str, number: int
) -> None:
    made = archive("agent_coordinator")
    server = mongodb.Server(tmp_path / "data", standalone=standalone)
    uri = f"{server.uri}/?serverSelectionTimeoutMS=300"
    with opened(name, uri) as provider:
        provider.put(KB, [("kept", {"content": "x"})])
        # So that some of the restore are replacements.
        first = made["stores"]["conversation_memory"][0]
        provider.put(MemoryType.CONVERSATION_MEMORY, [(first["id"], {"content": "before"})])
        KILLER.armed = (server, command, name, number)
        report = MemoryArchive(provider).import_archive(made, dry_run=False, conflict="replace")
    assert KILLER.armed is None
    assert report["ok"] is False
    assert "cannot be reached" in report["errors"][0]["message"]
    again = mongodb.Server(tmp_path / "data", standalone=standalone, port=server.port)
    with opened(name, again.uri) as provider:
        left = sum(provider.count(store) for store in MemoryType)
        assert ids(provider)[0] == "kept"
        assert report["imported"] == 0 if not standalone else left <= 2 + report["imported"]
        if not standalone:
            assert left == 2
            assert (provider.get(MemoryType.CONVERSATION_MEMORY, first["id"]) or {})["content"] == "before"
        assert MemoryArchive(provider).import_archive(made, dry_run=False, conflict="replace")["ok"]
        provider.delete(KB, ["kept"])
        assert everything(provider) == restored(made, tmp_path)
    again.kill()


def test_a_forked_process_has_to_open_a_provider_of_its_own(name: str) -> None:
    program = (
        "import os, sys\n"
        "from memorizz import MemoryType, MongoDBConfig, MongoDBProvider\n"
        "from memorizz.errors import ProviderFault\n"
        "provider = MongoDBProvider(MongoDBConfig(sys.argv[1], sys.argv[2]))\n"
        "child = os.fork()\n"
        # One after the other: what both print at once is torn.
        "child and os.waitpid(child, 0)\n"
        "try: print(provider.get(MemoryType.KNOWLEDGE_BASE, 'a'), flush=True)\n"
        "except ProviderFault as error: print(error, flush=True)\n"
        "provider.close()\n"
        "os._exit(0)\n"
    )
    words = [sys.executable, "-W", "ignore", "-c", program, mongodb.uri(), name]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["a provider cannot be used in a forked process; open one there", "None"]
