"""memory_search with an embedder: two rankings, fused by rank and weighted by decay."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.queries import UNPARSABLE, WORDLESS
from tests.contract.test_search import FACTS
from tests.support import database
from tests.support.doors import Door
from tests.support.ollama import FakeOllama, at_angle, packed

QUERY = "needle"


def found(door: Door, query: str = QUERY, **arguments: Any) -> list[int]:
    """The ids of the results, best first; the mode has to be hybrid."""
    answer = door.search(query=query, **arguments)
    assert answer["search_mode"] == "hybrid"
    return [row["id"] for row in answer["results"]]


class Corpus:
    """Memories whose places in both rankings are chosen: ``semantic`` is an angle to the query, ``keyword`` how
    often the query's word stands in ten words (0: not at all)."""

    def __init__(self, door: Door, ollama: FakeOllama) -> None:
        self.door = door
        self.ollama = ollama
        ollama.vectors[QUERY] = at_angle(0)

    def add(self, semantic: float, keyword: int = 0, **more: Any) -> int:
        """Store one memory."""
        number = len(self.ollama.vectors)
        content = " ".join([QUERY] * keyword + [f"w{number}x{place}" for place in range(10 - keyword)])
        self.ollama.vectors[content] = at_angle(semantic)
        return self.door.store(**{"content": content, "type": "PATTERN", **more})


@pytest.fixture
def corpus(hybrid: Door, ollama: FakeOllama) -> Corpus:
    """An empty corpus behind each door."""
    return Corpus(hybrid, ollama)


def test_an_empty_hybrid_answer_is_still_hybrid(hybrid: Door) -> None:  # 15.2 #37 #41
    assert hybrid.search(query="anything") == {"search_mode": "hybrid", "results": []}
    hybrid.store(content="x", type="TODO")
    assert hybrid.search(query="anything", type="ERROR") == {"search_mode": "hybrid", "results": []}


def test_the_raw_text_is_embedded_without_prefixes_or_options(hybrid: Door, ollama: FakeOllama) -> None:
    hybrid.store(content="  The text,\nas it is. ", type="TODO")
    hybrid.search(query='what "is" it?')
    assert [(request.path, request.body) for request in ollama.requests if request.method == "POST"] == [
        ("/api/embed", {"model": "nomic-embed-text", "input": ["  The text,\nas it is. "]}),
        ("/api/embed", {"model": "nomic-embed-text", "input": ['what "is" it?']}),
    ]


def test_a_store_keeps_the_vector_as_it_came(hybrid: Door, ollama: FakeOllama) -> None:
    ollama.vectors["scaled"] = [5.0 * value for value in at_angle(10)]
    memory_id = hybrid.store(content="scaled", type="TODO")
    assert database.value(hybrid.path, "embedding_status", memory_id) == 1
    assert database.vector(hybrid.path, memory_id) == packed(ollama.vectors["scaled"])


def test_a_paraphrase_that_shares_no_word_comes_first(hybrid: Door, ollama: FakeOllama) -> None:  # 15.1 #37
    ollama.vectors["which database do we use"] = at_angle(0)
    ollama.vectors["SQLite was picked"] = at_angle(3)
    other = hybrid.store(content="unrelated", type="TODO")
    wanted = hybrid.store(content="SQLite was picked", type="TODO")
    assert found(hybrid, "which database do we use") == [wanted, other]


def test_a_paraphrase_and_an_exact_word_both_surface(corpus: Corpus) -> None:  # 15.2 #34
    semantic_only = corpus.add(semantic=1)
    keyword_only = corpus.add(semantic=90, keyword=1)
    for angle in range(30, 50):
        corpus.add(semantic=angle)
    assert set(found(corpus.door, limit=2)) == {semantic_only, keyword_only}


def test_second_in_both_rankings_beats_first_in_one(corpus: Corpus) -> None:  # 15.2 #33
    semantic_first = corpus.add(semantic=1)
    keyword_first = corpus.add(semantic=170, keyword=5)
    second_in_both = corpus.add(semantic=2, keyword=3)
    for angle in range(100, 110):
        corpus.add(semantic=angle)
    database.same_moment(corpus.door.path)
    assert found(corpus.door, limit=3) == [second_in_both, semantic_first, keyword_first]


def test_equal_fused_scores_stand_by_ascending_id(corpus: Corpus) -> None:  # 15.2 #33
    # First in one ranking and second in the other, the other way round: the sums are the same.
    a = corpus.add(semantic=2, keyword=5)
    b = corpus.add(semantic=1, keyword=3)
    database.same_moment(corpus.door.path)
    assert found(corpus.door) == [a, b]


def test_equal_distances_stand_by_ascending_id(corpus: Corpus) -> None:
    ids = [corpus.add(semantic=20) for _ in range(6)]
    database.same_moment(corpus.door.path)
    assert found(corpus.door) == ids


def test_at_equal_fused_rank_the_fresher_memory_wins(corpus: Corpus) -> None:  # 15.1 #38, 15.2 #36
    stale = corpus.add(semantic=1)
    fresh = corpus.add(semantic=1.5)
    database.age(corpus.door.path, stale, 10 * database.MONTH)
    assert found(corpus.door) == [fresh, stale]


def test_a_pinned_memory_keeps_its_slower_fade(corpus: Corpus) -> None:  # 15.2 #36
    unpinned = corpus.add(semantic=1, type="ERROR")
    pinned = corpus.add(semantic=2, type="CONSTRAINT")
    for memory_id in (unpinned, pinned):
        database.age(corpus.door.path, memory_id, 3 * database.MONTH)
    answer = corpus.door.search(query=QUERY)["results"]
    assert [row["id"] for row in answer] == [pinned, unpinned]
    assert answer[0]["decay_score"] == pytest.approx(0.7071067811865476, abs=1e-4)
    assert answer[1]["decay_score"] == pytest.approx(0.125, abs=1e-4)


def test_decay_weighs_once_not_twice(corpus: Corpus) -> None:
    # 2/61 halved is 1/61, above a fresh second place in one ranking, 1/62. Weighed twice it would be 1/122, below it.
    both_first_but_faded = corpus.add(semantic=1, keyword=5)
    fresh_second = corpus.add(semantic=2)
    database.age(corpus.door.path, both_first_but_faded, database.MONTH - 60)
    assert found(corpus.door) == [both_first_but_faded, fresh_second]


def test_a_keyword_hit_beyond_the_limit_still_enters_the_fusion(corpus: Corpus) -> None:  # 15.2 #35
    # With limit 1 each ranking looks at 4: the fourth of both beats the first of one.
    fourth_in_both = corpus.add(semantic=4, keyword=2)
    for angle, times in ((1, 0), (2, 0), (3, 0), (50, 5), (51, 4), (52, 3)):
        corpus.add(semantic=angle, keyword=times)
    database.same_moment(corpus.door.path)
    assert found(corpus.door, limit=1) == [fourth_in_both]


def test_each_ranking_is_cut_at_four_times_the_limit(corpus: Corpus) -> None:
    # Fifth in both rankings: with limit 1 it is not looked at, with limit 2 it wins.
    fifth_in_both = corpus.add(semantic=5, keyword=1)
    nearest, *_ = [corpus.add(semantic=angle) for angle in (1, 2, 3, 4, 6, 7, 8, 9)]
    for angle, times in ((50, 6), (51, 5), (52, 4), (53, 3)):
        corpus.add(semantic=angle, keyword=times)
    database.same_moment(corpus.door.path)
    assert found(corpus.door, limit=1) == [nearest]
    database.same_moment(corpus.door.path)
    assert found(corpus.door, limit=2) == [fifth_in_both, nearest]


def test_the_cut_of_the_keyword_ranking_keeps_the_most_relevant(corpus: Corpus) -> None:
    for angle in range(50, 56):
        corpus.add(semantic=angle, keyword=1)
    corpus.add(semantic=1)
    best_by_keyword = corpus.add(semantic=2, keyword=9)
    database.same_moment(corpus.door.path)
    assert found(corpus.door, limit=1) == [best_by_keyword]


def test_only_what_is_returned_counts_as_used(corpus: Corpus) -> None:  # 15.2 #40
    ids = [corpus.add(semantic=angle, keyword=1) for angle in range(20)]
    before = {memory_id: database.row(corpus.door.path, memory_id) for memory_id in ids}
    returned = found(corpus.door, limit=5)
    assert len(returned) == 5
    for memory_id in ids:
        after = database.row(corpus.door.path, memory_id)
        if memory_id in returned:
            assert after["access_count"] == 1
        else:
            assert after == before[memory_id]


def test_the_largest_limit_is_served(corpus: Corpus) -> None:  # G9
    for angle in range(30):
        corpus.add(semantic=angle, keyword=angle % 2)
    assert len(found(corpus.door, limit=200)) == 30


def test_a_tag_filter_matches_whole_tags_case_sensitively(corpus: Corpus) -> None:  # 15.1 #40
    rust = corpus.add(semantic=1, tags=["rust"])
    corpus.add(semantic=2, tags=["rustling"])
    assert found(corpus.door, tag="rust") == [rust]
    assert found(corpus.door, tag="Rust") == []
    assert len(found(corpus.door)) == 2


def test_type_and_scope_filters_act_on_both_rankings(corpus: Corpus) -> None:
    wanted = corpus.add(semantic=60, keyword=1, type="ERROR", scope="kore")
    corpus.add(semantic=1, keyword=5, type="ERROR")
    corpus.add(semantic=2, keyword=5, scope="kore")
    assert found(corpus.door, type="ERROR", scope="kore") == [wanted]


def test_a_filtered_search_fills_its_places_though_nearer_memories_are_filtered_out(corpus: Corpus) -> None:  # G9
    wanted = [corpus.add(semantic=80 + angle, scope="rare") for angle in range(3)]
    for angle in range(20):
        corpus.add(semantic=angle)
    assert found(corpus.door, scope="rare", limit=3) == wanted


def test_a_memory_stored_while_the_embedder_was_broken_is_found_by_its_words(
    hybrid: Door, ollama: FakeOllama
) -> None:  # G5
    ollama.mode = "error"
    pending = hybrid.store(content="needle in the dark", type="TODO")
    ollama.mode = "ok"
    assert found(hybrid) == [pending]
    assert found(hybrid, "unrelated") == []


def test_no_text_is_a_wrong_query(hybrid: Door) -> None:  # 15.2 #39 superseded, A1
    memory_id = hybrid.store(content="Rust is memory safe", type="TODO")
    for query in (*UNPARSABLE, *WORDLESS):
        assert found(hybrid, query) == [memory_id], query


@pytest.mark.parametrize("query", ["needle:x", "needle?", 'the "needle', "sharp-needle", "needle AND"])
def test_an_unparsable_query_is_read_as_words_in_both_modes(corpus: Corpus, query: str) -> None:
    keyword_only = corpus.add(semantic=90, keyword=1)
    for angle in range(30, 36):
        corpus.add(semantic=angle)
    corpus.ollama.vectors[query] = at_angle(0)
    # First by keyword and last by meaning: without the keyword ranking it would be last.
    assert found(corpus.door, query)[0] == keyword_only
    corpus.ollama.mode = "error"
    answer = corpus.door.search(query=query)
    assert answer["search_mode"] == "keyword"
    assert [row["id"] for row in answer["results"]] == [keyword_only]


@pytest.mark.parametrize("query", WORDLESS)
def test_a_query_without_words_is_answered_by_meaning_alone(corpus: Corpus, query: str) -> None:
    ids = [corpus.add(semantic=angle, keyword=1) for angle in (3, 1, 2)]
    corpus.ollama.vectors[query] = at_angle(0)
    database.same_moment(corpus.door.path)
    assert found(corpus.door, query) == [ids[1], ids[2], ids[0]]


def test_fts5_syntax_keeps_its_meaning_in_the_keyword_ranking(hybrid: Door, ollama: FakeOllama) -> None:
    phrase = hybrid.store(content="an exact phrase here", type="TODO")
    for number in range(8):
        content = f"phrase number {number}, exact or not"
        ollama.vectors[content] = at_angle(10 + number)
        hybrid.store(content=content, type="TODO")
    ollama.vectors["an exact phrase here"] = at_angle(90)
    ollama.vectors['"exact phrase"'] = at_angle(0)
    assert found(hybrid, '"exact phrase"')[0] == phrase


def test_the_natural_question_of_the_keyword_mode_is_answered_here_too(hybrid: Door) -> None:
    ids = [hybrid.store(content=fact, type="PATTERN") for fact in FACTS]
    assert ids[0] in found(hybrid, "what colour did we pick for the sidebar last week?")[:3]
