"""Whatever is done to a provider, it holds what a dictionary would."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from memorizz.errors import RecordExists
from memorizz.providers.base import MemoryProvider
from memorizz.records import natural_id
from memorizz.taxonomy import MemoryType
from tests.memorizz.providers.backends import Backend, Place

Model: TypeAlias = dict[MemoryType, dict[str, dict[str, Any]]]

STORES = [MemoryType.PERSONAS, MemoryType.CONVERSATION_MEMORY]
IDS = st.sampled_from(["a", "b", "A", "é", "e\u0301", "x:y", "p-1", "p-2"])
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
RECORDS = st.builds(
    lambda fields, natural: {**fields, **natural},
    st.dictionaries(TEXT.filter(lambda name: "conversation_id" not in name), JSON, max_size=3),
    st.fixed_dictionaries({}, optional={"persona_id": st.sampled_from(["p-1", "p-2", "", None])}),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("put"), st.sampled_from(STORES), st.lists(st.tuples(IDS, RECORDS), max_size=4), st.booleans()
        ),
        st.tuples(st.just("delete"), st.sampled_from(STORES), st.lists(IDS, max_size=3)),
        st.tuples(st.just("find"), st.sampled_from(STORES)),
        st.tuples(st.just("reopen")),
        st.tuples(st.just("abandon")),
    ),
    max_size=25,
)


def expected_put(model: dict[str, dict[str, Any]], rows: list[tuple[str, dict[str, Any]]], replace: bool) -> bool:
    ids = [id for id, _ in rows]
    if not replace and (len(set(ids)) < len(ids) or model.keys() & set(ids)):
        return False
    for id, record in rows:
        model[id] = {**record, "_id": id, "id": id}
    return True


def put(provider: MemoryProvider, store: MemoryType, rows: list[tuple[str, dict[str, Any]]], replace: bool) -> bool:
    try:
        provider.put(store, rows, replace=replace)
    except RecordExists:
        return False
    return True


def expected_find(store: MemoryType, model: dict[str, dict[str, Any]]) -> dict[str, str]:
    found = {id: id for id in model}
    for id, record in reversed(model.items()):
        natural = natural_id(store, record)
        if natural is not None:
            found[natural] = id
    # What is first added counts, also when it got its natural id later.
    return found


def check(provider: MemoryProvider, model: Model) -> None:
    for store, records in model.items():
        assert list(provider.scan(store)) == list(records.values())
        assert provider.count(store) == len(records)
        for id, record in records.items():
            assert provider.get(store, id) == record
    assert provider.problems() == []


def run(place: Place, steps: list[Any]) -> None:
    model: Model = {store: {} for store in STORES}
    opened = [place.open()]
    try:
        for name, *arguments in steps:
            provider = opened[-1]
            if name == "put":
                store, rows, replace = arguments
                assert put(provider, store, rows, replace) == expected_put(model[store], rows, replace)
            elif name == "delete":
                store, ids = arguments
                assert provider.delete(store, ids) == sum(model[store].pop(id, None) is not None for id in set(ids))
            elif name == "find":
                (store,) = arguments
                wanted = expected_find(store, model[store])
                found = provider.find(store, [*wanted, "never"])
                assert found.keys() == wanted.keys()
                assert all(
                    id in (physical, natural_id(store, model[store][physical])) for id, physical in found.items()
                )
            else:
                if name == "reopen":
                    provider.close()
                opened.append(place.open())
        check(opened[-1], model)
        opened.append(place.open())
        check(opened[-1], model)
    finally:
        for provider in opened:
            provider.close()
    with place.open() as provider:
        check(provider, model)


def property_of(backend: Backend) -> Callable[[], None]:
    @settings(max_examples=60)
    @given(STEPS)
    def holds(steps: list[Any]) -> None:
        with tempfile.TemporaryDirectory() as directory:
            run(backend.at(Path(directory)), steps)

    return holds


def test_any_sequence_of_puts_and_deletes_leaves_what_a_dictionary_would_hold(backend: Backend) -> None:
    property_of(backend)()
