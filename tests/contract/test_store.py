"""memory_store: what is kept, and what is refused before anything is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.contract.bounds import BAD_TTLS, INVISIBLE, MEMBERS, PINNED, TYPES, ttl_message, type_message
from tests.support import database
from tests.support.doors import Door, DoorError


def refusal(door: Door, **arguments: Any) -> DoorError:
    """How a store is refused, with nothing written."""
    before = database.everything(door.path)
    with pytest.raises(DoorError) as caught:
        door.store(**arguments)
    assert database.everything(door.path) == before
    return caught.value


def test_a_stored_memory_is_listed_with_every_documented_member_in_order(door: Door) -> None:
    memory_id = door.store(
        content="We chose io.github.unityinflow as the Maven group.",
        type="DECISION",
        tags=["maven", "release"],
        scope="kore-runtime",
        ttl_secs=None,
    )
    (row,) = door.list()
    assert list(row) == MEMBERS
    assert row["id"] == memory_id
    assert row["content"] == "We chose io.github.unityinflow as the Maven group."
    assert (row["type"], row["tags"], row["scope"]) == ("DECISION", ["maven", "release"], "kore-runtime")
    assert row["decay_score"] == pytest.approx(1.0, abs=1e-4)
    assert row["created_at"] == row["last_accessed"] == database.value(door.path, "created_at", memory_id)


def test_ids_are_positive_and_distinct(door: Door) -> None:  # 15.1 #74
    ids = [door.store(content=f"fact {number}", type="TODO") for number in range(3)]
    assert all(type(memory_id) is int and memory_id > 0 for memory_id in ids)
    assert len(set(ids)) == 3


def test_content_and_type_are_enough(door: Door) -> None:  # 15.1 #44
    raw = database.row(door.path, door.store(content="only the two", type="PATTERN"))
    assert (raw["tags"], raw["source"], raw["scope"], raw["expires_at"]) == ("[]", None, None, None)
    (row,) = door.list()
    assert (row["tags"], row["scope"]) == ([], None)


@pytest.mark.parametrize("type", TYPES)
def test_each_of_the_six_types_is_stored_with_its_weight(door: Door, type: str) -> None:
    raw = database.row(door.path, door.store(content="typed", type=type))
    assert raw["mem_type"] == type
    assert raw["base_weight"] == (2.0 if type in PINNED else 1.0)
    assert (raw["decay_score"], raw["access_count"], raw["embedding_status"]) == (1.0, 0, 0)


@pytest.mark.parametrize("type", ["NOT_A_TYPE", "decision", "Decision", "DECISION ", "PATTERN,ERROR"])
def test_any_other_type_is_refused_by_name(door: Door, type: str) -> None:  # 15.1 #9 #10 #43 #75
    error = refusal(door, content="x", type=type)
    assert (error.kind, error.message) == ("invalid", type_message(type))


def test_tags_are_kept_as_compact_json_in_their_order(door: Door) -> None:
    tags = ["b", "a", "b", "größe", "日本", 'quo"te', "with space", "🎉"]
    memory_id = door.store(content="tagged", type="TODO", tags=tags)
    assert door.list()[0]["tags"] == tags
    assert database.value(door.path, "tags", memory_id) == ('["b","a","b","größe","日本","quo\\"te","with space","🎉"]')


def test_the_source_is_kept_but_not_shown(door: Door) -> None:
    memory_id = door.store(content="sourced", type="TODO", source="docs/adr-7.md")
    assert database.value(door.path, "source", memory_id) == "docs/adr-7.md"
    assert "docs/adr-7.md" not in str(door.list())


@pytest.mark.parametrize("field", ["source", "scope"])
def test_an_empty_scope_or_source_is_none(door: Door, field: str) -> None:
    memory_id = door.store(content="x", type="TODO", **{field: ""})
    assert database.value(door.path, field, memory_id) is None


@pytest.mark.parametrize(
    "content",
    [
        "  leading and trailing \n",
        "two\nlines\r\nand\ttabs",
        '"quotes" \'and\' \\backslashes\\ {"json": [1]}',
        "★🎉 日本語 e\u0301 \u200d zero\u200bwidth",
        "a\x00b",
        "x' OR 1=1; DROP TABLE memories; --",
    ],
)
def test_content_comes_back_verbatim(door: Door, content: str) -> None:
    door.store(content=content, type="ERROR")
    assert door.list()[0]["content"] == content


@pytest.mark.parametrize("content", INVISIBLE)
def test_content_that_shows_nothing_is_refused(door: Door, content: str) -> None:  # I8
    error = refusal(door, content=content, type="TODO")
    assert error.kind == "invalid"
    assert error.message.startswith("invalid argument: content must be a non-empty string (got ")


def test_content_of_exactly_one_mebibyte_is_kept_whole(door: Door) -> None:
    content = "é" * (1024 * 512)
    door.store(content=content, type="TODO")
    assert door.list()[0]["content"] == content


@pytest.mark.parametrize("content", ["é" * (1024 * 512) + "x", "x" * 2_000_000], ids=["one byte more", "2 MB"])
def test_longer_content_is_refused_with_the_limit_and_never_cut(door: Door, content: str) -> None:  # I6
    error = refusal(door, content=content, type="TODO")
    assert error.kind == "invalid"
    assert error.message == (
        f"invalid argument: content must be at most 1048576 bytes of UTF-8 (got {len(content.encode())})"
    )


@pytest.mark.parametrize("ttl_secs", BAD_TTLS)
def test_a_time_to_live_out_of_bounds_is_refused_with_the_range(door: Door, ttl_secs: int) -> None:  # 15.1 #53
    error = refusal(door, content="x", type="TODO", ttl_secs=ttl_secs)
    assert (error.kind, error.message) == ("invalid", ttl_message(ttl_secs))


@pytest.mark.parametrize("ttl_secs", [1, 86_400, 3_155_760_000])
def test_a_time_to_live_counts_from_the_time_of_storing(door: Door, ttl_secs: int) -> None:  # 15.1 #54
    raw = database.row(door.path, door.store(content="x", type="TODO", ttl_secs=ttl_secs))
    assert raw["expires_at"] == raw["created_at"] + ttl_secs


@pytest.mark.parametrize("arguments", [{}, {"ttl_secs": None}])
def test_without_a_time_to_live_nothing_expires(door: Door, arguments: dict[str, Any]) -> None:
    memory_id = door.store(content="x", type="TODO", **arguments)
    assert database.value(door.path, "expires_at", memory_id) is None


def test_the_same_content_twice_is_two_memories(door: Door) -> None:
    first, second = (door.store(content="said twice", type="TODO") for _ in range(2))
    assert first != second
    assert len(door.list()) == 2


def test_memories_of_every_type_survive_closing_and_opening(door: Door, open_door: Any, tmp_path: Path) -> None:
    # 15.1 #42
    path = tmp_path / "second.db"
    writer = open_door(path=path)
    for type in TYPES:
        writer.store(content=f"a {type} to keep", type=type)
    writer.close()
    assert sorted(row["type"] for row in open_door(path=path).list()) == sorted(TYPES)
    assert door.list() == []


def test_what_one_door_stores_the_next_finds(open_door: Any) -> None:
    first, second = open_door(), open_door()
    memory_id = first.store(content="shared between agents", type="PATTERN")
    assert [row["id"] for row in second.search(query="shared")["results"]] == [memory_id]
