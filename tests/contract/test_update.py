"""memory_update: a merge patch in place."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.contract.bounds import BAD_TTLS, INVISIBLE, MEMBERS, ttl_message
from tests.support import database
from tests.support.doors import Door, DoorError
from tests.support.ollama import FakeOllama, packed

ABSENT = object()


def stored(door: Door) -> int:
    """A memory with every field set, stored and used an hour ago."""
    memory_id = door.store(
        content="the old words", type="DECISION", tags=["a", "b"], source="adr", scope="kore", ttl_secs=10_000
    )
    database.age(door.path, memory_id, 3_600)
    return memory_id


def refusal(door: Door, **arguments: Any) -> DoorError:
    """How an update is refused, with nothing written."""
    before = database.everything(door.path)
    with pytest.raises(DoorError) as caught:
        door.update(**arguments)
    assert database.everything(door.path) == before
    return caught.value


def test_an_update_answers_the_whole_memory_with_its_embedding_status(door: Door) -> None:  # 15.2 #13
    memory_id = stored(door)
    answer = door.update(id=memory_id, content="the new words")
    assert list(answer) == [*MEMBERS, "embedding_status"]
    (listed,) = door.list()
    assert {**listed, "decay_score": 1.0} == {name: answer[name] for name in MEMBERS}
    assert answer["content"] == "the new words"
    assert answer["decay_score"] == 1.0
    assert answer["embedding_status"] == 0


def test_fields_that_are_not_sent_stay(door: Door) -> None:
    memory_id = stored(door)
    before = database.row(door.path, memory_id)
    door.update(id=memory_id, tags=["c"])
    after = database.row(door.path, memory_id)
    unlike = {name for name in before if before[name] != after[name]}
    assert unlike == {"tags", "last_accessed", "access_count"}


def test_type_source_id_and_creation_time_never_change(door: Door) -> None:
    memory_id = stored(door)
    before = database.row(door.path, memory_id)
    door.update(id=memory_id, content="new", tags=None, scope=None, ttl_secs=None)
    after = database.row(door.path, memory_id)
    for name in ("id", "mem_type", "source", "created_at", "base_weight"):
        assert after[name] == before[name]


@pytest.mark.parametrize(
    ("tags", "scope", "ttl_secs"),
    list(itertools.product([ABSENT, None, ["new", "tags"]], [ABSENT, None, "other"], [ABSENT, None, 500])),
    ids=lambda choice: "absent" if choice is ABSENT else str(choice),
)
def test_absent_null_and_value_mean_leave_clear_and_replace(
    door: Door, tags: Any, scope: Any, ttl_secs: Any
) -> None:  # 15.2 #17
    memory_id = stored(door)
    before = database.row(door.path, memory_id)
    patch = {"content": "always", "tags": tags, "scope": scope, "ttl_secs": ttl_secs}
    answer = door.update(id=memory_id, **{name: value for name, value in patch.items() if value is not ABSENT})
    after = database.row(door.path, memory_id)
    assert answer["tags"] == (["a", "b"] if tags is ABSENT else tags or [])
    assert answer["scope"] == ("kore" if scope is ABSENT else scope)
    expiry = {None: None, 500: after["last_accessed"] + 500}
    assert after["expires_at"] == (before["expires_at"] if ttl_secs is ABSENT else expiry[ttl_secs])


@pytest.mark.parametrize("patch", [{"tags": []}, {"tags": None}])
def test_an_empty_list_or_null_clears_the_tags(door: Door, patch: dict[str, Any]) -> None:
    memory_id = stored(door)
    assert door.update(id=memory_id, **patch)["tags"] == []
    assert database.value(door.path, "tags", memory_id) == "[]"


def test_the_old_words_stop_matching_and_the_new_ones_match_at_once(door: Door) -> None:  # 15.2 #10
    memory_id = door.store(content="postgres replication slots", type="TODO")
    door.update(id=memory_id, content="kafka consumer lag")
    assert door.search(query="replication")["results"] == []
    assert [row["id"] for row in door.search(query="kafka")["results"]] == [memory_id]
    assert database.keyword_ids(door.path, "postgres") == []
    database.check_integrity(door.path)


def test_a_new_content_has_the_new_meaning_only(hybrid: Door, ollama: FakeOllama) -> None:  # 15.2 #10
    memory_id = hybrid.store(content="postgres replication slots", type="TODO")
    other = hybrid.store(content="unrelated", type="TODO")
    ollama.vectors["about the first text"] = ollama.vector_of("postgres replication slots")
    ollama.vectors["about the second text"] = ollama.vector_of("kafka consumer lag")
    answer = hybrid.update(id=memory_id, content="kafka consumer lag")
    assert answer["embedding_status"] == 1
    assert database.vector(hybrid.path, memory_id) == packed(ollama.vector_of("kafka consumer lag"))
    assert hybrid.search(query="about the second text")["results"][0]["id"] == memory_id
    assert {row["id"] for row in hybrid.search(query="about the first text")["results"]} == {memory_id, other}


def test_an_update_while_the_embedder_is_broken_leaves_the_memory_pending(
    hybrid: Door, ollama: FakeOllama
) -> None:  # 15.2 #11
    memory_id = hybrid.store(content="old meaning", type="TODO")
    near = hybrid.store(content="something else", type="TODO")
    ollama.mode = "error"
    assert hybrid.update(id=memory_id, content="new text")["embedding_status"] == 0
    assert database.vector(hybrid.path, memory_id) is None
    ollama.mode = "ok"
    # The semantic ranking has lost it, the keyword ranking of the same hybrid search has it already.
    answer = hybrid.search(query="old meaning")
    assert (answer["search_mode"], [row["id"] for row in answer["results"]]) == ("hybrid", [near])
    assert memory_id in {row["id"] for row in hybrid.search(query="text")["results"]}


def test_a_sweep_embeds_what_was_updated_while_the_embedder_was_broken(
    open_door: Any, ollama: FakeOllama
) -> None:  # 15.2 #11
    door = open_door(ollama.url, sweeps=True)
    memory_id = door.store(content="old meaning", type="TODO")
    ollama.mode = "error"
    door.update(id=memory_id, content="new text")
    ollama.mode = "ok"
    door.sweep()
    assert database.value(door.path, "embedding_status", memory_id) == 1
    assert database.vector(door.path, memory_id) == packed(ollama.vector_of("new text"))


@pytest.mark.parametrize("patch", [{"tags": ["c"]}, {"scope": None}, {"ttl_secs": 60}])
def test_a_patch_without_content_asks_no_embedder_and_keeps_the_vector(
    hybrid: Door, ollama: FakeOllama, patch: dict[str, Any]
) -> None:  # 15.2 #15
    memory_id = hybrid.store(content="embedded once", type="TODO", scope="s")
    asked = len(ollama.embedded)
    vector = database.vector(hybrid.path, memory_id)
    assert hybrid.update(id=memory_id, **patch)["embedding_status"] == 1
    assert len(ollama.embedded) == asked
    assert database.vector(hybrid.path, memory_id) == vector != None  # noqa: E711


@pytest.mark.parametrize(
    "patch", [{"content": ""}, {"content": " \n"}, {"content": None}, {"content": "fine", "ttl_secs": 0}, {}]
)
def test_an_invalid_patch_asks_no_embedder(hybrid: Door, ollama: FakeOllama, patch: dict[str, Any]) -> None:
    # 15.2 #16
    memory_id = hybrid.store(content="embedded once", type="TODO")
    asked = len(ollama.embedded)
    assert refusal(hybrid, id=memory_id, **patch).kind == "invalid"
    assert len(ollama.embedded) == asked


def test_an_update_counts_as_one_use_now(door: Door) -> None:  # 15.2 #12
    memory_id = stored(door)
    before = database.row(door.path, memory_id)
    answer = door.update(id=memory_id, scope="other")
    after = database.row(door.path, memory_id)
    assert after["access_count"] == before["access_count"] + 1
    assert after["last_accessed"] - before["last_accessed"] >= 3_600
    assert answer["last_accessed"] == after["last_accessed"]


def test_a_patch_of_nothing_is_refused(door: Door) -> None:
    error = refusal(door, id=stored(door))
    assert (error.kind, error.message) == (
        "invalid",
        "invalid argument: at least one of content, tags, scope, ttl_secs must be provided",
    )


@pytest.mark.parametrize("content", INVISIBLE)
def test_content_that_shows_nothing_is_refused(door: Door, content: str) -> None:  # 15.2 #18, I8
    error = refusal(door, id=stored(door), content=content, tags=["not", "written"])
    assert error.kind == "invalid"
    assert error.message.startswith("invalid argument: content must be a non-empty string (got ")


def test_content_null_is_refused(door: Door) -> None:  # 15.2 #18
    error = refusal(door, id=stored(door), content=None, tags=["not", "written"])
    assert error.kind == "invalid"
    assert error.message.startswith("invalid argument: content must be a non-empty string")


def test_content_over_one_mebibyte_is_refused_with_the_limit(door: Door) -> None:  # I6
    error = refusal(door, id=stored(door), content="x" * (1024 * 1024 + 1))
    assert error.message == "invalid argument: content must be at most 1048576 bytes of UTF-8 (got 1048577)"


@pytest.mark.parametrize("ttl_secs", BAD_TTLS)
def test_a_time_to_live_out_of_bounds_is_refused_with_the_range(door: Door, ttl_secs: int) -> None:  # 15.2 #19
    error = refusal(door, id=stored(door), content="not written", ttl_secs=ttl_secs)
    assert (error.kind, error.message) == ("invalid", ttl_message(ttl_secs))


@pytest.mark.parametrize("ttl_secs", [1, 3_155_760_000])
def test_the_bounds_themselves_are_accepted_and_count_from_the_update(door: Door, ttl_secs: int) -> None:
    memory_id = stored(door)
    door.update(id=memory_id, ttl_secs=ttl_secs)
    raw = database.row(door.path, memory_id)
    assert raw["expires_at"] == raw["last_accessed"] + ttl_secs


def test_an_expired_memory_can_be_updated_until_the_sweep(door: Door) -> None:
    memory_id = stored(door)
    database.expire(door.path, memory_id)
    assert door.update(id=memory_id, tags=["late"])["tags"] == ["late"]
    assert database.value(door.path, "expires_at", memory_id) == 1
    door.update(id=memory_id, ttl_secs=60)
    assert database.value(door.path, "expires_at", memory_id) > 1_000_000
    database.expire(door.path, memory_id)
    door.update(id=memory_id, ttl_secs=None)
    assert database.value(door.path, "expires_at", memory_id) is None


@pytest.mark.parametrize("memory_id", [42, 0, -7, 2**63 - 1])
def test_an_unknown_id_is_a_clean_not_found(door: Door, memory_id: int) -> None:  # 15.2 #14
    assert door.update(id=memory_id, content="x") == {"id": memory_id, "updated": False, "reason": "not_found"}
    assert door.list() == []


def test_a_forgotten_memory_cannot_be_updated(door: Door) -> None:
    memory_id = stored(door)
    door.forget(id=memory_id)
    assert door.update(id=memory_id, tags=[])["updated"] is False


def test_tags_that_cannot_be_read_are_left_alone_when_they_are_not_sent(door: Door) -> None:
    memory_id = stored(door)
    database.execute(door.path, "UPDATE memories SET tags = 'not json' WHERE id = ?", (memory_id,))
    door.update(id=memory_id, scope="other")
    assert database.value(door.path, "tags", memory_id) == "not json"
    door.update(id=memory_id, tags=["mended"])
    assert database.value(door.path, "tags", memory_id) == '["mended"]'


def test_relations_survive_an_update(door: Door) -> None:
    memory_id, other = stored(door), door.store(content="other", type="TODO")
    door.link(from_id=memory_id, to_id=other, kind="caused_by")
    door.update(id=memory_id, content="new words")
    assert database.rows(door.path, "SELECT from_id, to_id, kind FROM memory_links") == [
        (memory_id, other, "caused_by")
    ]


def test_updating_to_the_same_content_keeps_its_vector(hybrid: Door, ollama: FakeOllama) -> None:
    memory_id = hybrid.store(content="unchanged", type="TODO")
    ollama.mode = "error"
    answer = hybrid.update(id=memory_id, content="unchanged")
    # The status says whether the stored vector matches the content, and it does.
    assert answer["embedding_status"] == 1
    assert database.vector(hybrid.path, memory_id) == packed(ollama.vector_of("unchanged"))
