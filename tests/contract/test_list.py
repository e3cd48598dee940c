"""memory_list: newest first, filters, limits."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.bounds import BAD_LIMITS, MEMBERS, limit_message, type_message
from tests.support import database
from tests.support.doors import Door, DoorError


def ids(rows: list[dict[str, Any]]) -> list[int]:
    """The ids of result rows, in their order."""
    return [row["id"] for row in rows]


def test_an_empty_memory_lists_nothing(door: Door) -> None:
    assert door.list() == []


def test_the_newest_memory_comes_first(door: Door) -> None:  # 15.1 #46
    stored = [door.store(content=f"fact {number}", type="TODO") for number in range(4)]
    for place, memory_id in enumerate(stored):
        database.age(door.path, memory_id, 100 * (4 - place))
    assert ids(door.list()) == stored[::-1]
    assert ids(door.list(limit=2)) == [stored[3], stored[2]]
    database.age(door.path, stored[3], 10_000)
    assert ids(door.list()) == [stored[2], stored[1], stored[0], stored[3]]


def test_of_the_same_second_the_higher_id_comes_first(door: Door) -> None:
    stored = [door.store(content=f"fact {number}", type="TODO") for number in range(3)]
    database.same_moment(door.path)
    assert ids(door.list()) == stored[::-1]


def test_without_a_limit_everything_is_listed(door: Door) -> None:
    database.fill(door.path, 250)
    assert len(door.list()) == 250
    assert len(door.list(limit=200)) == 200
    assert len(door.list(limit=1)) == 1


@pytest.mark.parametrize("limit", BAD_LIMITS)
def test_a_limit_out_of_bounds_is_refused_with_the_range(door: Door, limit: int) -> None:  # 15.1 #51, C10
    with pytest.raises(DoorError) as caught:
        door.list(limit=limit)
    assert (caught.value.kind, caught.value.message) == ("invalid", limit_message(limit))


def test_a_row_holds_exactly_the_documented_members(door: Door) -> None:
    door.store(content="x", type="TODO", source="hidden", ttl_secs=60)
    assert [list(row) for row in door.list()] == [MEMBERS]


def test_filters_narrow_by_type_tag_and_scope_together(door: Door) -> None:
    wanted = door.store(content="a", type="TODO", tags=["x", "y"], scope="one")
    door.store(content="b", type="ERROR", tags=["x", "y"], scope="one")
    door.store(content="c", type="TODO", tags=["y"], scope="one")
    door.store(content="d", type="TODO", tags=["x", "y"], scope="two")
    assert ids(door.list(type="TODO", tag="x", scope="one")) == [wanted]
    assert len(door.list(type="TODO")) == 3
    assert len(door.list(tag="x")) == 3
    assert len(door.list(scope="one")) == 3


def test_a_tag_filter_matches_whole_tags_case_sensitively(door: Door) -> None:  # 15.1 #45
    rust = door.store(content="a", type="TODO", tags=["rust", "lang"])
    rustling = door.store(content="b", type="TODO", tags=["rustling"])
    assert ids(door.list(tag="rust")) == [rust]
    assert door.list(tag="Rust") == []
    assert door.list(tag="rus") == []
    assert door.list(tag="lang,rust") == []
    assert sorted(ids(door.list())) == [rust, rustling]


@pytest.mark.parametrize("tag", ['quo"te', "[", "]", ",", "ümlaut", "日本", "%", "_", "a'b", "\\"])
def test_a_tag_of_any_characters_can_be_filtered_by(door: Door, tag: str) -> None:
    wanted = door.store(content="a", type="TODO", tags=[tag])
    door.store(content="b", type="TODO", tags=["other"])
    assert ids(door.list(tag=tag)) == [wanted]


def test_a_scope_filter_never_matches_global_memories(door: Door) -> None:  # 15.1 #44
    door.store(content="global", type="TODO")
    scoped = {door.store(content=f"scoped {number}", type="TODO", scope="kore") for number in range(2)}
    assert set(ids(door.list(scope="kore"))) == scoped
    assert door.list(scope="KORE") == []
    assert len(door.list()) == 3


def test_filters_apply_before_the_limit(door: Door) -> None:
    wanted = door.store(content="old", type="ERROR")
    for number in range(5):
        door.store(content=f"newer {number}", type="TODO")
    assert ids(door.list(type="ERROR", limit=1)) == [wanted]


def test_an_unknown_type_filter_is_refused_by_name(door: Door) -> None:
    with pytest.raises(DoorError) as caught:
        door.list(type="BOGUS")
    assert (caught.value.kind, caught.value.message) == ("invalid", type_message("BOGUS"))


@pytest.mark.parametrize("field", ["type", "tag", "scope"])
def test_an_empty_filter_is_none(door: Door, field: str) -> None:
    door.store(content="x", type="TODO")
    assert len(door.list(**{field: ""})) == 1


def test_listing_does_not_count_as_a_use(door: Door) -> None:
    memory_id = door.store(content="x", type="TODO")
    database.age(door.path, memory_id, 1_000)
    before = database.row(door.path, memory_id)
    door.list()
    door.list(limit=10, expand_links=True)
    assert database.row(door.path, memory_id) == before


def test_an_expired_memory_is_listed_until_the_sweep(door: Door) -> None:
    memory_id = door.store(content="x", type="TODO", ttl_secs=60)
    database.expire(door.path, memory_id)
    assert ids(door.list()) == [memory_id]


def test_the_decay_score_is_that_of_the_moment_of_reading(door: Door) -> None:
    todo = door.store(content="a", type="TODO")
    decision = door.store(content="b", type="DECISION")
    for memory_id in (todo, decision):
        database.age(door.path, memory_id, database.MONTH)
    scores = {row["id"]: row["decay_score"] for row in door.list()}
    assert scores[todo] == pytest.approx(0.5, abs=1e-4)
    assert scores[decision] == pytest.approx(0.8908987181403393, abs=1e-4)


def test_a_memory_without_expiry_is_listed_however_faded(door: Door) -> None:  # 15.1 #48
    memory_id = door.store(content="x", type="TODO")
    database.age(door.path, memory_id, 20 * database.MONTH)
    (row,) = door.list()
    assert row["id"] == memory_id
    assert row["decay_score"] == pytest.approx(9.5367431640625e-07, rel=1e-3)


def test_tags_that_are_no_json_read_as_none_and_hide_nothing(door: Door) -> None:
    broken = door.store(content="a", type="TODO", tags=["x"])
    sound = door.store(content="b", type="TODO", tags=["x"])
    database.execute(door.path, "UPDATE memories SET tags = 'not json' WHERE id = ?", (broken,))
    assert {row["id"]: row["tags"] for row in door.list()} == {broken: [], sound: ["x"]}
    assert ids(door.list(tag="x")) == [sound]


def test_expansion_needs_a_limit(door: Door) -> None:
    with pytest.raises(DoorError) as caught:
        door.list(expand_links=True)
    assert (caught.value.kind, caught.value.message) == (
        "invalid",
        "invalid argument: limit is required when expand_links is true; pass a limit between 1 and 200",
    )
    assert door.list(expand_links=True, limit=200) == []
    assert door.list(expand_links=False) == []


def test_a_limit_out_of_bounds_is_named_before_a_missing_one(door: Door) -> None:
    with pytest.raises(DoorError) as caught:
        door.list(expand_links=True, limit=0)
    assert caught.value.message == limit_message(0)
