"""Both rankings against a slow reference that knows nothing of SQLite."""

from __future__ import annotations

import itertools
import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import agent_memory
from agent_memory.domain.bounds import MAX_LIMIT
from agent_memory.domain.fusion import OVERSAMPLE
from agent_memory.domain.memory import Filters, MemoryType, NewMemory
from agent_memory.embed.ollama import OllamaEmbedder
from agent_memory.store.store import SQLiteStore
from tests.contract.bounds import PINNED, TYPES
from tests.support import database
from tests.support.clock import Clock
from tests.support.ollama import FakeOllama, at_angle, packed

WORDS = ("alpha", "beta", "gamma", "delta", "omega")
NOW = 1_700_000_000
K1, B = 1.2, 0.75


@dataclass(frozen=True)
class Doc:
    """One memory of a random corpus; ``place`` is its place by meaning, the nearest first."""

    words: tuple[str, ...]
    type: str
    age: int
    scope: str | None
    place: int

    @property
    def content(self) -> str:
        """Its text, unlike that of any other."""
        return " ".join((*self.words, f"unique{self.place}"))

    @property
    def decay(self) -> float:
        """Its decay score at ``NOW``."""
        return math.pow(0.5, self.age / (2_592_000 * (6 if self.type in PINNED else 1)))


@st.composite
def corpora(draw: st.DrawFn) -> list[Doc]:
    """Up to 14 memories."""
    size = draw(st.integers(1, 14))
    places = draw(st.permutations(range(size)))
    return [
        Doc(
            words=tuple(draw(st.lists(st.sampled_from(WORDS), max_size=6))),
            type=draw(st.sampled_from(TYPES)),
            age=draw(st.integers(0, 300)) * 86_400,
            scope=draw(st.sampled_from([None, "a", "b"])),
            place=place,
        )
        for place in places
    ]


def bm25(docs: list[Doc], query: list[str]) -> dict[int, float]:
    """Relevance of each document that holds every word of ``query``; ids count from 1."""
    token_lists = [doc.content.split() for doc in docs]
    average = sum(len(tokens) for tokens in token_lists) / len(docs)
    scores: dict[int, float] = {}
    for number, tokens in enumerate(token_lists, start=1):
        if not all(word in tokens for word in query):
            continue
        score = 0.0
        for word in query:
            holding = sum(word in other for other in token_lists)
            idf = math.log((len(docs) - holding + 0.5) / (holding + 0.5))
            idf = max(idf, 1e-6)
            frequency = tokens.count(word)
            score += idf * frequency * (K1 + 1) / (frequency + K1 * (1 - B + B * len(tokens) / average))
        scores[number] = score
    return scores


def check_order(found: list[int], scores: dict[int, float], limit: int) -> None:
    """``found`` is the best of ``scores``, higher first, equal ones by id."""
    assert len(found) == min(limit, len(scores))
    assert len(set(found)) == len(found)
    for earlier, later in itertools.pairwise(found):
        if math.isclose(scores[earlier], scores[later], rel_tol=1e-9, abs_tol=1e-12):
            continue
        assert scores[earlier] > scores[later]
    if found:
        worst = min(scores[memory_id] for memory_id in found)
        left = [score for memory_id, score in scores.items() if memory_id not in found]
        assert all(score <= worst or math.isclose(score, worst, rel_tol=1e-9, abs_tol=1e-12) for score in left)
    assert all(a < b for a, b in itertools.pairwise(found) if scores[a] == scores[b])


@settings(max_examples=60)
@given(
    docs=corpora(),
    query=st.lists(st.sampled_from(WORDS), min_size=1, max_size=2, unique=True),
    limit=st.integers(1, 6),
    scope=st.sampled_from([None, "a"]),
)
def test_rankings_agree_with_the_slow_reference(
    docs: list[Doc], query: list[str], limit: int, scope: str | None
) -> None:
    wanted = {number for number, doc in enumerate(docs, start=1) if scope is None or doc.scope == scope}
    relevance = {number: score for number, score in bm25(docs, query).items() if number in wanted}
    with tempfile.TemporaryDirectory() as directory, FakeOllama() as ollama:
        path = Path(directory) / "memory.db"
        ollama.vectors[" ".join(query)] = at_angle(0)
        ollama.vectors.update({doc.content: at_angle(2 + 3 * doc.place) for doc in docs})
        with agent_memory.open(
            path, embedder=OllamaEmbedder(ollama.url), clock=Clock(NOW), strict_query=True
        ) as memory:
            for doc in docs:
                memory.store(doc.content, doc.type, scope=doc.scope)

            def found(mode: str) -> list[int]:
                for number, doc in enumerate(docs, start=1):
                    database.execute(
                        path, "UPDATE memories SET last_accessed = ? WHERE id = ?", (NOW - doc.age, number)
                    )
                answer = memory.search(" ".join(query), limit=limit, scope=scope)
                assert answer.search_mode == mode
                for result in answer.results:
                    assert math.isclose(result.decay_score, docs[result.id - 1].decay, rel_tol=1e-9)
                return [result.id for result in answer.results]

            semantic = sorted(wanted, key=lambda number: docs[number - 1].place)[: 4 * limit]
            keyword = sorted(relevance, key=lambda number: (-relevance[number], number))[: 4 * limit]
            fused = {
                number: docs[number - 1].decay
                * sum(1 / (60 + ranking.index(number) + 1) for ranking in (semantic, keyword) if number in ranking)
                for number in {*semantic, *keyword}
            }
            check_order(found("hybrid"), fused, limit)
            ollama.mode = "error"
            blended = {number: score + docs[number - 1].decay for number, score in relevance.items()}
            check_order(found("keyword"), blended, limit)


def test_at_the_largest_limit_each_ranking_offers_eight_hundred_candidates(db: Path) -> None:  # 15.2 #9
    assert OVERSAMPLE * MAX_LIMIT == 800
    store = SQLiteStore(db)
    with store.writing("store") as writer:
        for number in range(900):
            vector = packed(at_angle(number / 10))
            writer.insert(NewMemory(f"common word {number}", MemoryType.TODO), vector, 1_000)
    with store.reading("search") as reader:
        assert reader.nearest(packed(at_angle(0)), Filters(), 800) == list(range(1, 801))
        assert len(reader.keyword("common", Filters(), 800, strict=False)) == 800
    store.close()
