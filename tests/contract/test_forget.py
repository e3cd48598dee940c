"""memory_forget: the memory goes, with everything that hangs on it."""

from __future__ import annotations

import pytest

from tests.support import database
from tests.support.doors import Door
from tests.support.ollama import FakeOllama


def test_forgetting_says_so(door: Door) -> None:
    memory_id = door.store(content="x", type="TODO")
    assert door.forget(id=memory_id) == {"id": memory_id, "deleted": True}


@pytest.mark.parametrize("memory_id", [999_999, 0, -1, 2**63 - 1])
def test_forgetting_an_unknown_id_is_a_clean_not_found(door: Door, memory_id: int) -> None:  # 15.1 #77
    door.store(content="x", type="TODO")
    assert door.forget(id=memory_id) == {"id": memory_id, "deleted": False, "reason": "not_found"}
    assert len(door.list()) == 1


def test_a_memory_is_forgotten_once(door: Door) -> None:
    memory_id = door.store(content="x", type="TODO")
    door.forget(id=memory_id)
    assert door.forget(id=memory_id)["deleted"] is False


def test_a_forgotten_memory_is_gone_from_list_search_and_index(door: Door) -> None:  # 15.1 #77
    gone = door.store(content="the canary sings", type="TODO")
    kept = door.store(content="the crow stays", type="TODO")
    door.forget(id=gone)
    assert [row["id"] for row in door.list()] == [kept]
    assert door.search(query="canary")["results"] == []
    assert database.keyword_ids(door.path, "canary") == []
    assert database.count(door.path) == 1
    database.check_integrity(door.path)


def test_a_forgotten_memory_never_comes_back_by_meaning(hybrid: Door, ollama: FakeOllama) -> None:  # 15.1 #39
    gone = hybrid.store(content="the canary sings", type="TODO")
    kept = hybrid.store(content="the crow stays", type="TODO")
    ollama.vectors["yellow bird"] = ollama.vector_of("the canary sings")
    assert hybrid.search(query="yellow bird")["results"][0]["id"] == gone
    hybrid.forget(id=gone)
    assert [row["id"] for row in hybrid.search(query="yellow bird")["results"]] == [kept]
    assert database.vector_ids(hybrid.path) == [kept]


@pytest.mark.parametrize("end", ["from_id", "to_id"])
def test_forgetting_either_end_removes_the_relations(door: Door, end: str) -> None:  # 15.2 #26
    a, b = (door.store(content=text, type="TODO") for text in "ab")
    for kind in ("relates_to", "supersedes", "caused_by"):
        door.link(from_id=a, to_id=b, kind=kind)
    door.forget(id={"from_id": a, "to_id": b}[end])
    assert database.count(door.path, "memory_links") == 0
    (left,) = door.list(limit=5, expand_links=True)
    assert left["related"] == []


def test_a_reused_id_inherits_nothing(hybrid: Door) -> None:
    other = hybrid.store(content="other", type="TODO")
    old = hybrid.store(content="old meaning", type="TODO")
    hybrid.link(from_id=old, to_id=other, kind="supersedes")
    hybrid.forget(id=old)
    new = hybrid.store(content="new meaning", type="TODO")
    assert new == old  # SQLite gives the highest free id again
    assert hybrid.list(limit=1, expand_links=True)[0]["related"] == []
    assert hybrid.search(query="old")["results"][0]["content"] != "old meaning"
    assert len(database.vector_ids(hybrid.path)) == 2
