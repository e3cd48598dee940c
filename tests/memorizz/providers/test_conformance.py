"""What every provider does, whatever it keeps its records in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memorizz.errors import InvalidRecord, ProviderError, ReadOnlyProvider, RecordExists
from memorizz.providers.base import MemoryProvider
from memorizz.providers.contract import Provider
from memorizz.taxonomy import ID_FIELDS, MemoryType
from tests.memorizz.providers.backends import Backend, Place

KB = MemoryType.KNOWLEDGE_BASE
HOSTILE_IDS = [
    "agent:tool", "with space", " ", "é", "e\u0301", "日本語", "\U0001f600", "a@b", "--help", "%s%n", "*", "?", "a\nb",
    "'; DROP TABLE records; --", "INDEX2", "tail.", "tail ", "name.json", "x.tmp", "con", "\u202eabc", "\x7f", "\ufeff",
    "index", "INDEX", "a/b", "../../x", "a\\b", ".hidden", "..", "nul\0byte", "", "\ud800", "x" * 255, "x" * 256,
    "é" * 125, "é" * 126, "x" * 512, "x" * 513,
]  # fmt: skip
VALUE = {
    "text": 'é\u2028\U0001f600"\\\n\x00\x1f',
    "numbers": [0, -1, 2**63, 2**64 + 1, -(10**40), 0.1, 1e300, 5e-324, -0.0, 1.0],
    "nested": {"a": [{"b": [[], {}, None, True, False]}], "": 1},
    "_id": "something else",
}


def ids(provider: Provider, store: MemoryType = KB) -> list[str]:
    return [record["_id"] for record in provider.scan(store)]


def everything(provider: Provider) -> dict[str, Any]:
    return {store.value: list(provider.scan(store)) for store in MemoryType}


def test_it_fulfils_the_contract(provider: MemoryProvider) -> None:
    assert isinstance(provider, Provider)
    assert provider.capabilities.read_only is False


@pytest.mark.parametrize("store", MemoryType)
def test_a_record_comes_back_as_it_was_put_also_after_reopening(place: Place, store: MemoryType) -> None:
    expected = {**VALUE, "_id": "one", "id": "one"}
    with place.open() as provider:
        provider.put(store, [("one", dict(VALUE))])
        assert provider.get(store, "one") == expected
    with place.open() as provider:
        assert provider.get(store, "one") == expected
        assert list(provider.scan(store)) == [expected]
        assert provider.problems() == []


def test_what_is_returned_is_the_callers_own(provider: MemoryProvider) -> None:
    record: dict[str, Any] = {"tags": ["a"]}
    provider.put(KB, [("one", record)])
    assert record == {"tags": ["a"]}
    for found in (provider.get(KB, "one"), next(iter(provider.scan(KB)))):
        assert found is not None
        found["tags"].append("b")
    again = provider.get(KB, "one")
    assert again is not None and again["tags"] == ["a"]


def test_what_was_never_put_is_not_there(provider: MemoryProvider) -> None:
    assert provider.get(KB, "one") is None
    assert provider.find(KB, ["one"]) == {}
    assert provider.count(KB) == 0
    assert provider.delete(KB, ["one"]) == 0
    provider.put(KB, [])
    provider.put(MemoryType.SUMMARIES, [("one", {})])
    assert provider.get(KB, "one") is None
    assert ids(provider) == []


def test_records_are_listed_in_the_order_they_were_added_and_replacing_keeps_their_place(place: Place) -> None:
    with place.open() as provider:
        provider.put(KB, [(id, {}) for id in ("c", "a", "d")])
        provider.put(KB, [("b", {})])
        provider.put(KB, [("a", {"content": "changed"}), ("e", {})], replace=True)
        assert provider.delete(KB, ["d", "never there", "d"]) == 1
        provider.put(KB, [("d", {})])
        assert ids(provider) == ["c", "a", "b", "e", "d"]
    with place.open() as provider:
        assert ids(provider) == ["c", "a", "b", "e", "d"]
        assert provider.count(KB) == 5
        assert provider.get(KB, "a") == {"content": "changed", "_id": "a", "id": "a"}


def test_a_replaced_record_loses_the_fields_it_had(provider: MemoryProvider) -> None:
    provider.put(KB, [("one", {"a": 1})])
    provider.put(KB, [("one", {"b": 2})], replace=True)
    assert provider.get(KB, "one") == {"b": 2, "_id": "one", "id": "one"}


def test_an_id_that_is_taken_is_refused_and_nothing_is_written(provider: MemoryProvider) -> None:
    provider.put(KB, [("b", {"content": "first"})])
    before = everything(provider)
    with pytest.raises(RecordExists, match=r"knowledge_base 'b'.*there already"):
        provider.put(KB, [("a", {}), ("b", {}), ("c", {})])
    with pytest.raises(RecordExists, match=r"knowledge_base 'x'.*given twice"):
        provider.put(KB, [("w", {}), ("x", {}), ("x", {})])
    assert everything(provider) == before


def test_of_an_id_given_twice_to_replace_the_last_counts(provider: MemoryProvider) -> None:
    provider.put(KB, [("a", {"n": 1}), ("b", {}), ("a", {"n": 2})], replace=True)
    assert provider.get(KB, "a") == {"n": 2, "_id": "a", "id": "a"}
    assert ids(provider) == ["a", "b"]


@pytest.mark.parametrize("id", HOSTILE_IDS, ids=ascii)
def test_an_id_is_kept_exactly_or_refused_by_check_and_put_alike(provider: MemoryProvider, id: str) -> None:
    provider.put(KB, [("other", {})])
    before = everything(provider)
    refusal = _refusal(provider, id)
    if refusal is None:
        provider.put(KB, [(id, {"content": "x"})])
        assert provider.get(KB, id) == {"content": "x", "_id": id, "id": id}
        assert ids(provider) == ["other", id]
        assert provider.find(KB, [id]) == {id: id}
        assert provider.problems() == []
        assert provider.delete(KB, [id]) == 1
        assert everything(provider) == before
    else:
        with pytest.raises(InvalidRecord) as raised:
            provider.put(KB, [("fine", {}), (id, {"content": "x"})])
        assert str(raised.value) == refusal
        assert "knowledge_base" in refusal and "the id must" in refusal
        assert everything(provider) == before
        assert provider.get(KB, id) is None
        assert provider.find(KB, [id]) == {}
        assert provider.delete(KB, [id]) == 0


def _refusal(provider: MemoryProvider, id: str) -> str | None:
    try:
        provider.check(KB, id, {"content": "x"})
    except InvalidRecord as error:
        return str(error)
    return None


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"a": {"b": [1, {2, 3}]}}, r"a\.b\[1\] must be a JSON value \(got set\)"),
        ({"a": (1, 2)}, r"a must be a JSON value \(got tuple\)"),
        ({"a": b"x"}, r"got bytes"),
        ({"a": float("nan")}, r"a must be a finite number \(got nan\)"),
        ({"a": [float("inf")]}, r"a\[0\] must be a finite number \(got inf\)"),
        ({"a": "x\ud800"}, r"a holds half of a surrogate pair at character 1"),
        ({"\udfff": 1}, r"surrogate"),
        ({"a": {1: 2}}, r"a has a key that is no string \(got 1\)"),
        ({"a": _deep(64)}, r"nested deeper than 64 levels"),
        ({"a": 10**5000}, r"integer of too many digits"),
        (["a"], r"must be a JSON object \(got list\)"),
    ],
)
def test_a_record_that_is_no_json_is_refused_and_nothing_is_written(
    provider: MemoryProvider, record: Any, message: str
) -> None:
    with pytest.raises(InvalidRecord, match=message) as checked:
        provider.check(KB, "bad", record)
    assert "knowledge_base 'bad'" in str(checked.value)
    with pytest.raises(InvalidRecord, match=message):
        provider.put(KB, [("good", {}), ("bad", record)])
    assert everything(provider) == {store.value: [] for store in MemoryType}


def test_records_of_the_greatest_depth_and_of_a_megabyte_are_kept(provider: MemoryProvider, backend: Backend) -> None:
    record = {"deep": _deep(63), "text": "é" * backend.longest_text}
    provider.put(KB, [("big", record)])
    assert provider.get(KB, "big") == {**record, "_id": "big", "id": "big"}


@pytest.mark.parametrize("store", [MemoryType(store) for store in ID_FIELDS if store != "agents"])
def test_a_record_is_found_by_its_natural_id_before_its_physical_one(place: Place, store: MemoryType) -> None:
    name = ID_FIELDS[store.value]
    with place.open() as provider:
        provider.put(store, [("file-1", {name: "nat-1"}), ("file-2", {name: "file-1"}), ("file-3", {name: None})])
        expected = {"nat-1": "file-1", "file-1": "file-2", "file-3": "file-3", "file-2": "file-2"}
        assert provider.find(store, [*expected, "nowhere", "file-1"]) == expected
        provider.put(store, [("file-1", {name: "nat-9"}), ("file-4", {name: "nat-4"})], replace=True)
        assert provider.find(store, ["nat-1", "nat-9", "nat-4"]) == {"nat-9": "file-1", "nat-4": "file-4"}
        provider.delete(store, ["file-2"])
        assert provider.find(store, ["file-1", "file-2"]) == {"file-1": "file-1"}
    with place.open() as provider:
        assert provider.find(store, ["nat-1", "nat-9", "nat-4"]) == {"nat-9": "file-1", "nat-4": "file-4"}


def test_of_several_records_with_one_natural_id_the_first_is_found(provider: MemoryProvider) -> None:
    store = MemoryType.PERSONAS
    provider.put(store, [(id, {"persona_id": "p"}) for id in ("z", "y", "x")])
    assert provider.find(store, ["p"]) == {"p": "z"}
    provider.delete(store, ["z"])
    assert provider.find(store, ["p"]) == {"p": "y"}
    provider.put(store, [("y", {"persona_id": "q"})], replace=True)
    assert provider.find(store, ["p", "q"]) == {"p": "x", "q": "y"}


def test_a_scan_goes_on_while_its_records_are_changed(provider: MemoryProvider) -> None:
    provider.put(KB, [(f"r{n}", {"n": n}) for n in range(1_200)])
    seen = []
    for record in provider.scan(KB):
        seen.append(record["n"])
        provider.put(KB, [(record["_id"], {"n": -1})], replace=True)
        if len(seen) == 3:
            provider.delete(KB, [f"r{n}" for n in range(1_100, 1_200)])
    assert seen == list(range(1_100))


def test_a_transaction_that_fails_leaves_nothing_where_the_provider_is_atomic(provider: MemoryProvider) -> None:
    provider.put(KB, [("kept", {"n": 1})])
    before = everything(provider)
    with pytest.raises(RuntimeError):
        _fail_half_way(provider)
    if provider.capabilities.atomic:
        assert everything(provider) == before
    with provider.transaction():
        provider.put(KB, [("later", {})])
    assert provider.get(KB, "later") is not None


def _fail_half_way(provider: MemoryProvider) -> None:
    with provider.transaction():
        provider.put(KB, [("kept", {"n": 2}), ("a", {})], replace=True)
        provider.put(MemoryType.MEMAGENT, [("agent", {})])
        assert provider.get(KB, "a") is not None
        provider.delete(KB, ["kept"])
        assert ids(provider) == ["a"]
        raise RuntimeError


def test_a_refused_put_inside_a_transaction_leaves_its_other_writes(provider: MemoryProvider) -> None:
    with provider.transaction():
        provider.put(KB, [("a", {})])
        with pytest.raises(RecordExists):
            provider.put(KB, [("b", {}), ("a", {})])
        with provider.transaction():
            provider.put(KB, [("c", {})])
    assert ids(provider) == ["a", "c"]


def test_a_snapshot_is_of_one_moment_where_the_provider_says_so(place: Place) -> None:
    with place.open() as provider:
        provider.put(KB, [("a", {"n": 1}), ("b", {})])
        with provider.snapshot():
            if provider.capabilities.snapshot:
                first = everything(provider)
                place.run("put", "a", "c")
                place.run("delete", "b")
                provider.put(KB, [("d", {})])
                with provider.snapshot():
                    assert everything(provider) == first
                assert provider.find(KB, ["c"]) == {}
                assert provider.count(KB) == 2
                assert ids(provider) == ["a", "b"]
            else:
                provider.put(KB, [("c", {}), ("d", {})])
                provider.delete(KB, ["b"])
        assert sorted(ids(provider)) == ["a", "c", "d"]


def test_a_read_only_provider_reads_and_refuses_every_write(place: Place, tmp_path: Path) -> None:
    with place.open() as provider:
        provider.put(KB, [("a", {"n": 1})])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with place.open(read_only=True) as provider:
        assert provider.capabilities.read_only
        assert provider.get(KB, "a") == {"n": 1, "_id": "a", "id": "a"}
        assert provider.find(KB, ["a"]) == {"a": "a"}
        provider.check(KB, "b", {})
        assert provider.problems() == []
        writes = [
            lambda: provider.put(KB, [("b", {})]),
            lambda: provider.put(KB, [("a", {})], replace=True),
            lambda: provider.delete(KB, ["a"]),
            lambda: provider.store({"content": "x"}, KB),
            lambda: provider.update_by_id("a", {"n": 2}, KB),
            lambda: provider.delete_all(KB),
            lambda: provider.store_memagent({"agent_id": "x"}),
        ]
        for write in writes:
            with pytest.raises(ReadOnlyProvider, match="reading only"):
                write()
        with provider.snapshot():
            assert ids(provider) == ["a"]
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_reading_only_does_not_make_a_store_that_is_not_there(place: Place, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="to read from") as raised:
        place.open(read_only=True)
    assert type(raised.value).__name__ == "ConfigurationError"
    assert list(tmp_path.iterdir()) == []


def test_a_closed_provider_says_so_and_can_be_closed_again(place: Place) -> None:
    provider = place.open()
    provider.put(KB, [("a", {})])
    provider.close()
    provider.close()
    for use in (lambda: provider.get(KB, "a"), lambda: ids(provider), lambda: provider.put(KB, [("b", {})])):
        with pytest.raises(ProviderError, match="closed"):
            use()
