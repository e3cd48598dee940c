"""memory_link and memory_unlink."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import database
from tests.support.doors import Door, DoorError

KINDS = ("relates_to", "supersedes", "caused_by")
DIRECTED = ("supersedes", "caused_by")


def pair(door: Door) -> tuple[int, int]:
    """Two memories, the lower id first."""
    first, second = (door.store(content=text, type="DECISION") for text in ("first", "second"))
    assert first < second
    return first, second


def edges(door: Door) -> list[Any]:
    """The stored relations."""
    return database.rows(door.path, "SELECT from_id, to_id, kind FROM memory_links ORDER BY from_id, to_id, kind")


@pytest.mark.parametrize("kind", KINDS)
def test_linking_echoes_the_request(door: Door, kind: str) -> None:
    a, b = pair(door)
    assert door.link(from_id=a, to_id=b, kind=kind) == {"from_id": a, "to_id": b, "kind": kind, "linked": True}
    assert edges(door) == [(a, b, kind)]


def test_the_members_stand_in_documented_order(door: Door) -> None:
    a, b = pair(door)
    assert list(door.link(from_id=a, to_id=b, kind="supersedes")) == ["from_id", "to_id", "kind", "linked"]
    assert list(door.unlink(from_id=a, to_id=b, kind="supersedes")) == ["from_id", "to_id", "kind", "unlinked"]


@pytest.mark.parametrize("kind", KINDS)
def test_linking_again_is_a_success_that_changes_nothing(door: Door, kind: str) -> None:  # 15.2 #21
    a, b = pair(door)
    first = door.link(from_id=b, to_id=a, kind=kind)
    database.execute(door.path, "UPDATE memory_links SET created_at = 77")
    before = database.everything(door.path)
    assert door.link(from_id=b, to_id=a, kind=kind) == first
    assert database.everything(door.path) == before


def test_two_kinds_between_a_pair_are_two_relations(door: Door) -> None:
    a, b = pair(door)
    for kind in KINDS:
        door.link(from_id=a, to_id=b, kind=kind)
    assert len(edges(door)) == 3


def test_a_symmetric_relation_is_stored_once_with_the_smaller_id_first(door: Door) -> None:
    a, b = pair(door)
    assert door.link(from_id=b, to_id=a, kind="relates_to") == {
        "from_id": b,
        "to_id": a,
        "kind": "relates_to",
        "linked": True,
    }
    assert edges(door) == [(a, b, "relates_to")]
    assert door.link(from_id=a, to_id=b, kind="relates_to")["linked"] is True
    assert edges(door) == [(a, b, "relates_to")]


@pytest.mark.parametrize("kind", DIRECTED)
def test_a_directed_relation_and_its_reverse_are_two(door: Door, kind: str) -> None:
    a, b = pair(door)
    door.link(from_id=a, to_id=b, kind=kind)
    door.link(from_id=b, to_id=a, kind=kind)
    assert edges(door) == [(a, b, kind), (b, a, kind)]


@pytest.mark.parametrize("known", [True, False])
def test_a_memory_cannot_be_linked_to_itself(door: Door, known: bool) -> None:  # 15.2 #22
    memory_id = pair(door)[0] if known else 57
    with pytest.raises(DoorError) as caught:
        door.link(from_id=memory_id, to_id=memory_id, kind="supersedes")
    assert (caught.value.kind, caught.value.message) == (
        "invalid",
        f"invalid argument: from_id and to_id must differ (got {memory_id})",
    )
    assert edges(door) == []


@pytest.mark.parametrize("kind", ["blocks", "SUPERSEDES", "superseded_by", "relates to", "supersedes "])
@pytest.mark.parametrize("operation", ["link", "unlink"])
def test_an_unknown_kind_is_refused_with_the_known_ones(door: Door, operation: str, kind: str) -> None:  # 15.2 #23
    a, b = pair(door)
    door.link(from_id=a, to_id=b, kind="supersedes")
    with pytest.raises(DoorError) as caught:
        getattr(door, operation)(from_id=a, to_id=b, kind=kind)
    assert (caught.value.kind, caught.value.message) == (
        "invalid",
        f"invalid argument: kind must be one of relates_to, supersedes, caused_by (got '{kind}')",
    )
    assert edges(door) == [(a, b, "supersedes")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_link_to_an_unknown_id_names_the_missing_memory(door: Door, kind: str) -> None:  # 15.2 #24, H15
    a, _ = pair(door)
    missing = {"kind": kind, "linked": False, "reason": "not_found", "missing_id": 999}
    assert door.link(from_id=a, to_id=999, kind=kind) == {"from_id": a, "to_id": 999, **missing}
    assert door.link(from_id=999, to_id=a, kind=kind) == {"from_id": 999, "to_id": a, **missing}
    assert edges(door) == []


def test_of_two_unknown_ids_the_first_is_named(door: Door) -> None:
    assert door.link(from_id=900, to_id=800, kind="relates_to")["missing_id"] == 900
    assert door.link(from_id=800, to_id=900, kind="relates_to")["missing_id"] == 800


@pytest.mark.parametrize("kind", KINDS)
def test_unlinking_removes_the_relation_once(door: Door, kind: str) -> None:  # 15.2 #25
    a, b = pair(door)
    door.link(from_id=a, to_id=b, kind=kind)
    echo = {"from_id": a, "to_id": b, "kind": kind}
    assert door.unlink(from_id=a, to_id=b, kind=kind) == {**echo, "unlinked": True}
    assert edges(door) == []
    assert door.unlink(from_id=a, to_id=b, kind=kind) == {**echo, "unlinked": False, "reason": "not_found"}
    assert len(door.list()) == 2


def test_a_symmetric_relation_can_be_removed_from_either_end(door: Door) -> None:
    a, b = pair(door)
    for from_id, to_id in ((a, b), (b, a)):
        door.link(from_id=a, to_id=b, kind="relates_to")
        answer = door.unlink(from_id=from_id, to_id=to_id, kind="relates_to")
        assert answer == {"from_id": from_id, "to_id": to_id, "kind": "relates_to", "unlinked": True}
        assert edges(door) == []


@pytest.mark.parametrize("kind", DIRECTED)
def test_a_directed_relation_is_not_removed_from_the_other_end(door: Door, kind: str) -> None:
    a, b = pair(door)
    door.link(from_id=a, to_id=b, kind=kind)
    assert door.unlink(from_id=b, to_id=a, kind=kind)["unlinked"] is False
    assert edges(door) == [(a, b, kind)]


def test_unlinking_another_kind_leaves_the_relation(door: Door) -> None:
    a, b = pair(door)
    door.link(from_id=a, to_id=b, kind="supersedes")
    assert door.unlink(from_id=a, to_id=b, kind="caused_by")["unlinked"] is False
    assert edges(door) == [(a, b, "supersedes")]


@pytest.mark.parametrize("ends", [(1, 999), (998, 999), (7, 7)])
def test_unlinking_what_never_existed_is_a_clean_not_found(door: Door, ends: tuple[int, int]) -> None:
    answer = door.unlink(from_id=ends[0], to_id=ends[1], kind="supersedes")
    assert (answer["unlinked"], answer["reason"]) == (False, "not_found")


def test_linking_does_not_count_as_a_use(door: Door) -> None:
    a, b = pair(door)
    database.age(door.path, a, 500)
    before = database.row(door.path, a), database.row(door.path, b)
    door.link(from_id=a, to_id=b, kind="supersedes")
    door.unlink(from_id=a, to_id=b, kind="supersedes")
    assert (database.row(door.path, a), database.row(door.path, b)) == before


def test_relations_end_when_a_memory_expires(open_door: Any) -> None:  # 15.2 #27
    door = open_door(sweeps=True)
    a, b = pair(door)
    c = door.store(content="third", type="TODO")
    door.link(from_id=a, to_id=b, kind="supersedes")
    door.link(from_id=c, to_id=b, kind="caused_by")
    door.link(from_id=a, to_id=c, kind="relates_to")
    database.expire(door.path, b)
    door.sweep()
    assert edges(door) == [(a, c, "relates_to")]
    database.check_integrity(door.path)
