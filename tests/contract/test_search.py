"""memory_search without an embedder: what is found, in which order, and what a search leaves behind."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.bounds import BAD_LIMITS, MEMBERS, limit_message, type_message
from tests.contract.queries import UNPARSABLE, WORDLESS
from tests.support import database
from tests.support.doors import Door, DoorError


def found(door: Door, query: str, **arguments: Any) -> list[int]:
    """The ids of the results, best first; the mode has to be keyword."""
    answer = door.search(query=query, **arguments)
    assert answer["search_mode"] == "keyword"
    return [row["id"] for row in answer["results"]]


def note(door: Door, content: str, **more: Any) -> int:
    """Store a note."""
    return door.store(**{"content": content, "type": "PATTERN", **more})


def test_the_answer_is_an_envelope_of_mode_and_results(door: Door) -> None:  # 15.1 #35 #76
    memory_id = note(door, "sqlite keeps everything", tags=["db"], scope="kore", source="hidden")
    answer = door.search(query="sqlite")
    assert list(answer) == ["search_mode", "results"]
    assert answer["search_mode"] == "keyword"
    (row,) = answer["results"]
    assert list(row) == MEMBERS
    assert (row["id"], row["content"], row["tags"], row["scope"]) == (
        memory_id,
        "sqlite keeps everything",
        ["db"],
        "kore",
    )


@pytest.mark.parametrize("query", ["absent", '"keeps sqlite"', "sqlite AND absent", "absent*", "NEAR(sqlite absent)"])
def test_a_query_that_matches_nothing_is_an_empty_list(door: Door, query: str) -> None:  # 15.1 #30
    note(door, "sqlite keeps everything")
    assert door.search(query=query) == {"search_mode": "keyword", "results": []}


def test_an_empty_memory_is_searched_in_vain(door: Door) -> None:
    assert door.search(query="anything") == {"search_mode": "keyword", "results": []}


@pytest.mark.parametrize(
    "query",
    [
        " NOT ".join(["safe"] * 300),
        "safe " * 40_000,
        " OR ".join(["safe"] * 20_000),
        '"' + "safe " * 40_000 + '"',
        " ".join(f"safe word{n}" for n in range(20_000)),
    ],
    ids=["deep", "long", "many operators", "a long phrase", "many words"],
)
def test_a_deep_or_long_query_is_read_as_words(door: Door, query: str) -> None:
    found = door.store(content="Rust is memory safe", type="TODO")
    assert [row["id"] for row in door.search(query=query)["results"]] == [found]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("sqlite AND vec", {"both", "apart"}),
        ("sqlite vec", {"both", "apart"}),
        ("sqlite OR vec", {"both", "sqlite", "vec", "apart"}),
        ("sqlite NOT vec", {"sqlite"}),
        ('"sqlite vec"', {"both"}),
        ('"vec sqlite"', set()),
        ("vec*", {"both", "vec", "vector", "apart"}),
        ("NEAR(sqlite vec, 1)", {"both"}),
        ("NEAR(sqlite vec, 9)", {"both", "apart"}),
        ("content : vector", {"vector"}),
        ("^vec", {"vec", "apart"}),
        ("(sqlite OR vector) NOT vec", {"sqlite", "vector"}),
        ("sqlite + vec", {"both"}),
    ],
)
def test_fts5_syntax_keeps_its_meaning(door: Door, query: str, expected: set[str]) -> None:
    ids = {
        name: note(door, text)
        for name, text in {
            "both": "use sqlite vec here",
            "sqlite": "only sqlite here",
            "vec": "vec stands first",
            "vector": "a vector index",
            "apart": "vec with many words in between sqlite",
        }.items()
    }
    assert set(found(door, query)) == {ids[name] for name in expected}


def test_no_text_is_a_wrong_query(door: Door) -> None:  # 15.1 #34, A1, A5
    note(door, "Rust is memory safe")
    for query in (*UNPARSABLE, *WORDLESS):
        assert door.search(query=query)["search_mode"] == "keyword", query


@pytest.mark.parametrize(
    "query",
    [
        "memory:safe", 'say "safe', "(safe", "what is safe?", "rust-lang", "TODO: safe", "safe AND", "don't be safe",
        "-rust", "*rust", "nocol:rust", "rust)", "rust\x00", "absent\x00rust", "NEAR(rust b, x)", "sqlite, rust",
        "'rust'",
    ],
)  # fmt: skip
def test_a_query_that_fts5_cannot_parse_finds_what_holds_any_of_its_words(door: Door, query: str) -> None:
    memory_id = note(door, "Rust is memory safe")
    note(door, "nothing to see")
    assert found(door, query) == [memory_id]


@pytest.mark.parametrize("query", WORDLESS)
def test_a_query_without_words_finds_nothing(door: Door, query: str) -> None:
    note(door, "Rust is memory safe ?! * 🎉")
    assert found(door, query) == []


@pytest.mark.parametrize("query", ["multi-agent", "multi agent", "agent AND multi-agent", "agent, multi"])
def test_hyphens_do_not_hide_a_memory(door: Door, query: str) -> None:  # A3
    memory_id = note(door, "multi-agent launch")
    note(door, "unrelated")
    assert found(door, query)[0] == memory_id


@pytest.mark.parametrize("scope", ["my-app", "a:b", "x/y", "o'neil", 'q"t', "日本", "a b", "*", "AND"])
def test_a_scope_of_any_characters_can_be_stored_and_searched_in(door: Door, scope: str) -> None:  # A7
    wanted = note(door, "shared words", scope=scope)
    note(door, "shared words", scope="elsewhere")
    assert found(door, "shared", scope=scope) == [wanted]
    assert [row["scope"] for row in door.list(scope=scope)] == [scope]


@pytest.mark.parametrize("query", ["cheese blue", "blue cheese", "what about blue, or cheese?"])
def test_word_order_does_not_matter(door: Door, query: str) -> None:  # A10
    memory_id = note(door, "we eat blue cheese")
    assert found(door, query) == [memory_id]


FACTS = (
    "The sidebar colour is teal, chosen over orange.",
    "Deployments run every Tuesday at noon.",
    "The API gateway times out after thirty seconds.",
    "We pin Python to 3.11 in CI.",
    "Invoices are generated by the billing worker.",
    "The landing page uses a serif font.",
    "Redis holds sessions, not caches.",
    "Last year we moved from Jenkins to Actions.",
    "User avatars live in object storage.",
    "The search index is rebuilt each night.",
    "Feature flags are read at start-up only.",
    "Error budgets reset each quarter.",
    "The mobile app supports two languages.",
    "Passwords are hashed with argon2.",
    "A week of logs is kept on disk.",
    "The queue drops messages older than a day.",
    "Pick lists are sorted by name.",
    "Retries back off with jitter.",
    "The staging cluster has three nodes.",
    "Migrations run before the pods start.",
)


def test_a_natural_question_finds_its_fact_among_twenty(door: Door) -> None:  # A9
    ids = [note(door, fact) for fact in FACTS]
    assert ids[0] in found(door, "what colour did we pick for the sidebar last week?")[:3]
    assert ids[13] in found(door, "how are passwords stored by us")[:3]


def test_fifty_results_are_the_default_and_limit_changes_it(door: Door) -> None:  # C11, 15.1 #52
    database.fill(door.path, 220, content="needle {n}")
    assert len(found(door, "needle")) == 50
    assert len(found(door, "needle", limit=None)) == 50
    assert len(found(door, "needle", limit=1)) == 1
    assert len(found(door, "needle", limit=200)) == 200


@pytest.mark.parametrize("limit", BAD_LIMITS)
def test_a_limit_out_of_bounds_is_refused_with_the_range(door: Door, limit: int) -> None:  # 15.1 #51
    with pytest.raises(DoorError) as caught:
        door.search(query="x", limit=limit)
    assert (caught.value.kind, caught.value.message) == ("invalid", limit_message(limit))


def test_an_unknown_type_filter_is_refused_by_name(door: Door) -> None:
    with pytest.raises(DoorError) as caught:
        door.search(query="x", type="todo")
    assert (caught.value.kind, caught.value.message) == ("invalid", type_message("todo"))


def test_filters_narrow_by_type_tag_and_scope_together(door: Door) -> None:  # 15.1 #32
    wanted = note(door, "needle a", type="TODO", tags=["x", "y"], scope="one")
    note(door, "needle b", type="ERROR", tags=["x", "y"], scope="one")
    note(door, "needle c", type="TODO", tags=["y"], scope="one")
    note(door, "needle d", type="TODO", tags=["x", "y"], scope="two")
    note(door, "other e", type="TODO", tags=["x", "y"], scope="one")
    assert found(door, "needle", type="TODO", tag="x", scope="one") == [wanted]
    assert len(found(door, "needle", type="TODO")) == 3
    assert len(found(door, "needle", tag="x")) == 3
    assert len(found(door, "needle", scope="one")) == 3


def test_a_tag_filter_matches_whole_tags_case_sensitively(door: Door) -> None:  # 15.1 #33
    rust = note(door, "needle a", tags=["rust"])
    rustling = note(door, "needle b", tags=["rustling"])
    assert found(door, "needle", tag="rust") == [rust]
    assert found(door, "needle", tag="Rust") == []
    assert sorted(found(door, "needle")) == [rust, rustling]


def test_a_scope_filter_never_matches_global_memories(door: Door) -> None:
    note(door, "needle a")
    scoped = note(door, "needle b", scope="kore")
    assert found(door, "needle", scope="kore") == [scoped]


@pytest.mark.parametrize("field", ["type", "tag", "scope"])
def test_an_empty_filter_is_none(door: Door, field: str) -> None:
    memory_id = note(door, "needle")
    assert found(door, "needle", **{field: ""}) == [memory_id]


def test_filters_apply_before_the_limit(door: Door) -> None:
    database.fill(door.path, 300, content="needle needle needle")
    wanted = note(door, "one needle in a much longer text about quite other things", type="ERROR")
    database.age(door.path, wanted, database.MONTH)
    assert found(door, "needle", type="ERROR", limit=1) == [wanted]


def test_a_filter_applies_to_the_words_of_an_unparsable_query_too(door: Door) -> None:
    wanted = note(door, "needle a", scope="one")
    note(door, "needle b", scope="two")
    assert found(door, "needle?", scope="one") == [wanted]


def test_of_equally_relevant_memories_the_fresher_comes_first(door: Door) -> None:
    stale, fresh = note(door, "equal words"), note(door, "equal words")
    database.age(door.path, stale, database.MONTH)
    assert found(door, "equal") == [fresh, stale]


def test_of_equally_old_memories_the_pinned_type_comes_first(door: Door) -> None:  # 15.1 #28
    ids = [note(door, "equal words", type=type) for type in ("PATTERN", "DECISION")]
    for memory_id in ids:
        database.age(door.path, memory_id, 3 * database.MONTH)
    assert found(door, "equal") == ids[::-1]


def test_relevance_and_decay_add_up(door: Door) -> None:
    # The rarer word is worth more than the whole freshness of the other memory.
    database.fill(door.path, 200, content="common filler text")
    relevant = note(door, "zebra zebra zebra")
    fresh = note(door, "common zebra filler text that goes on and on and on and on and on and on")
    database.age(door.path, relevant, 10 * database.MONTH)
    assert found(door, "zebra", limit=2) == [relevant, fresh]


def test_equal_scores_stand_by_id(door: Door) -> None:
    ids = [note(door, "equal words") for _ in range(5)]
    database.same_moment(door.path)
    assert found(door, "equal") == ids


def test_the_decay_score_is_that_of_the_moment_of_reading(door: Door) -> None:
    memory_id = note(door, "needle")
    database.age(door.path, memory_id, database.MONTH)
    (row,) = door.search(query="needle")["results"]
    assert row["decay_score"] == pytest.approx(0.5, abs=1e-4)
    (row,) = door.search(query="needle")["results"]
    assert row["decay_score"] == pytest.approx(1.0, abs=1e-4)


def test_a_returned_memory_counts_as_used_after_it_was_read(door: Door) -> None:  # 15.1 #29
    memory_id = note(door, "needle")
    database.age(door.path, memory_id, 5_000)
    before = database.row(door.path, memory_id)
    (row,) = door.search(query="needle")["results"]
    assert row["last_accessed"] == before["last_accessed"]
    after = database.row(door.path, memory_id)
    assert after["access_count"] == 1
    assert after["last_accessed"] - before["last_accessed"] >= 5_000
    assert {name for name in before if before[name] != after[name]} == {"access_count", "last_accessed"}


def test_only_what_is_returned_counts_as_used(door: Door) -> None:
    ids = [note(door, "needle") for _ in range(20)]
    database.same_moment(door.path)
    returned = found(door, "needle", limit=5)
    used = database.rows(door.path, "SELECT id FROM memories WHERE access_count = 1 ORDER BY id")
    assert used == sorted(returned) == ids[:5]
    assert database.rows(door.path, "SELECT DISTINCT last_accessed FROM memories WHERE access_count = 0") == [
        1_700_000_000
    ]


def test_a_searched_memory_ranks_above_its_untouched_twin(door: Door) -> None:  # 15.1 #29
    touched, twin = note(door, "twin words tango"), note(door, "twin words foxtrot")
    for memory_id in (touched, twin):
        database.age(door.path, memory_id, database.MONTH)
    assert found(door, "tango") == [touched]
    answer = door.search(query="twin")["results"]
    assert [row["id"] for row in answer] == [touched, twin]
    assert answer[0]["decay_score"] > 0.99 > 0.51 > answer[1]["decay_score"]


def test_an_expired_memory_is_found_until_the_sweep(door: Door) -> None:
    memory_id = note(door, "needle", ttl_secs=60)
    database.expire(door.path, memory_id)
    assert found(door, "needle") == [memory_id]


def test_a_memory_is_found_however_faded(door: Door) -> None:  # 15.1 #48
    memory_id = note(door, "needle")
    database.age(door.path, memory_id, 20 * database.MONTH)
    assert found(door, "needle") == [memory_id]


def test_a_stored_memory_is_found_at_once_while_the_embedder_is_down(door: Door) -> None:  # 15.1 #31, G5, G6
    memory_id = note(door, "needle")
    assert database.value(door.path, "embedding_status", memory_id) == 0
    assert database.vector_ids(door.path) == []
    assert found(door, "needle") == [memory_id]
