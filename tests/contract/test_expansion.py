"""expand_links on search and list: one hop, bounded, a pure read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from tests.support import database
from tests.support.doors import Door

Read: TypeAlias = Callable[[Door], dict[int, dict[str, Any]]]


def listed(door: Door, **arguments: Any) -> dict[int, dict[str, Any]]:
    """Every memory by id, as list shows it."""
    return {row["id"]: row for row in door.list(**{"limit": 200, "expand_links": True, **arguments})}


def searched(door: Door, **arguments: Any) -> dict[int, dict[str, Any]]:
    """Every memory that says "word", by id, as search shows it."""
    results = door.search(**{"query": "word", "expand_links": True, **arguments})["results"]
    return {row["id"]: row for row in results}


both = pytest.mark.parametrize("read", [listed, searched])


def store(door: Door, content: str = "", **more: Any) -> int:
    """A memory that says "word"."""
    return door.store(**{"content": f"word {content}", "type": "DECISION", **more})


@both
def test_a_relation_is_seen_from_both_ends(door: Door, read: Read) -> None:  # 15.2 #28
    newer = store(door, "newer", tags=["maven"])
    older = store(door, "older", type="TODO")
    door.link(from_id=newer, to_id=older, kind="supersedes")
    rows = read(door)
    assert rows[newer]["related"] == [
        {"id": older, "kind": "supersedes", "direction": "out", "type": "TODO", "snippet": "word older", "tags": []}
    ]
    assert rows[older]["related"] == [
        {
            "id": newer,
            "kind": "superseded_by",
            "direction": "in",
            "type": "DECISION",
            "snippet": "word newer",
            "tags": ["maven"],
        }
    ]
    assert list(rows[older]["related"][0]) == ["id", "kind", "direction", "type", "snippet", "tags"]
    assert list(rows[older])[-1] == "related"


@both
@pytest.mark.parametrize(
    ("kind", "seen_from_target"),
    [("supersedes", "superseded_by"), ("caused_by", "caused"), ("relates_to", "relates_to")],
)
def test_a_kind_reads_from_the_side_of_the_result(door: Door, read: Read, kind: str, seen_from_target: str) -> None:
    source, target = store(door), store(door)
    door.link(from_id=source, to_id=target, kind=kind)
    rows = read(door)
    assert rows[source]["related"][0]["kind"] == kind
    assert rows[target]["related"][0]["kind"] == seen_from_target
    assert rows[source]["related"][0]["direction"] == "out"
    assert rows[target]["related"][0]["direction"] == "in"


@both
def test_a_memory_without_relations_has_an_empty_list(door: Door, read: Read) -> None:
    memory_id = store(door)
    assert read(door)[memory_id]["related"] == []


@both
@pytest.mark.parametrize("arguments", [{}, {"expand_links": False}])
def test_without_the_flag_there_is_no_such_member(door: Door, read: Any, arguments: dict[str, Any]) -> None:
    # 15.2 #29
    a, b = store(door), store(door)
    door.link(from_id=a, to_id=b, kind="supersedes")
    for row in read(door, **{"expand_links": None, **arguments}).values():
        assert "related" not in row


@both
def test_of_twelve_relations_the_ten_newest_are_shown_newest_first(door: Door, read: Read) -> None:  # 15.2 #30
    hub = store(door)
    spokes = [store(door, str(number)) for number in range(12)]
    for number, spoke in enumerate(spokes):
        if number % 2:
            door.link(from_id=hub, to_id=spoke, kind="caused_by")
        else:
            door.link(from_id=spoke, to_id=hub, kind="supersedes")
        database.execute(
            door.path,
            "UPDATE memory_links SET created_at = ? WHERE ? IN (from_id, to_id)",
            (1_000 + (number * 7) % 12, spoke),
        )
    newest_first = [spoke for _, spoke in sorted(((number * 7) % 12, spoke) for number, spoke in enumerate(spokes))]
    assert [entry["id"] for entry in read(door)[hub]["related"]] == newest_first[::-1][:10]


@both
def test_exactly_ten_relations_are_all_shown(door: Door, read: Read) -> None:
    hub = store(door)
    spokes = {store(door) for _ in range(10)}
    for spoke in spokes:
        door.link(from_id=hub, to_id=spoke, kind="relates_to")
    assert {entry["id"] for entry in read(door)[hub]["related"]} == spokes


@both
def test_relations_of_one_second_stand_by_the_neighbours_id(door: Door, read: Read) -> None:
    hub = store(door)
    spokes = [store(door) for _ in range(4)]
    for number, kind in ((2, "relates_to"), (0, "supersedes"), (3, "caused_by"), (1, "supersedes")):
        door.link(from_id=spokes[number], to_id=hub, kind=kind)
    database.execute(door.path, "UPDATE memory_links SET created_at = 1000")
    assert [entry["id"] for entry in read(door)[hub]["related"]] == spokes


@both
@pytest.mark.parametrize(
    ("content", "snippet"),
    [
        ("x" * 155, "word " + "x" * 155),
        ("x" * 156, "word " + "x" * 155 + "…"),
        ("é" * 400, "word " + "é" * 155 + "…"),
        ("🎉" * 156, "word " + "🎉" * 155 + "…"),
    ],
    ids=["160 fit", "161 are cut", "accents count once", "emoji count once"],
)
def test_a_snippet_has_160_characters_and_an_ellipsis_only_when_cut(
    door: Door, read: Read, content: str, snippet: str
) -> None:  # 15.2 #32
    a = store(door)
    b = door.store(content=f"word {content}", type="TODO")
    door.link(from_id=a, to_id=b, kind="relates_to")
    assert read(door)[a]["related"][0]["snippet"] == snippet


@both
def test_expansion_is_one_hop(door: Door, read: Any) -> None:
    a, b, c = store(door, scope="here"), store(door), store(door)
    door.link(from_id=a, to_id=b, kind="supersedes")
    door.link(from_id=b, to_id=c, kind="supersedes")
    rows = read(door, scope="here")
    assert list(rows) == [a]
    assert [entry["id"] for entry in rows[a]["related"]] == [b]
    assert "related" not in rows[a]["related"][0]


@both
def test_neighbours_are_not_counted_as_used(door: Door, read: Any) -> None:  # 15.2 #31
    result = store(door, scope="here")
    neighbour = store(door)
    for memory_id in (result, neighbour):
        database.age(door.path, memory_id, 5_000)
    door.link(from_id=result, to_id=neighbour, kind="supersedes")
    before = database.row(door.path, neighbour)
    assert read(door, scope="here")[result]["related"][0]["id"] == neighbour
    assert database.row(door.path, neighbour) == before


def test_expansion_works_in_hybrid_mode_too(hybrid: Door) -> None:
    a, b = store(hybrid), store(hybrid)
    hybrid.link(from_id=a, to_id=b, kind="caused_by")
    answer = hybrid.search(query="word", expand_links=True)
    assert answer["search_mode"] == "hybrid"
    assert {row["id"]: row["related"][0]["kind"] for row in answer["results"]} == {a: "caused_by", b: "caused"}


def test_two_kinds_to_one_neighbour_are_two_entries(door: Door) -> None:
    a, b = store(door), store(door)
    door.link(from_id=a, to_id=b, kind="caused_by")
    door.link(from_id=a, to_id=b, kind="supersedes")
    assert sorted(entry["kind"] for entry in listed(door)[a]["related"]) == ["caused_by", "supersedes"]
