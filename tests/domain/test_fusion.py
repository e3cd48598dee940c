"""Reciprocal Rank Fusion, against its golden numbers and a slow reference."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.domain.fusion import OVERSAMPLE, RRF_K, fuse, reciprocal_ranks

rankings = st.lists(st.integers(1, 30), unique=True, max_size=20)


def fresh(_: int) -> float:
    """No decay."""
    return 1.0


def slow_fuse(semantic: list[int], keyword: list[int], decay: dict[int, float]) -> list[int]:
    """The contract, word by word: for each memory look for its rank in each ranking."""
    scored = []
    for memory_id in set(semantic) | set(keyword):
        score = 0.0
        for ranking in (semantic, keyword):
            for place, candidate in enumerate(ranking):
                if candidate == memory_id:
                    score += 1.0 / (60.0 + (place + 1))
        scored.append((score * decay[memory_id], memory_id))
    order: list[int] = []
    while scored:
        best = max(score for score, _ in scored)
        chosen = min(memory_id for score, memory_id in scored if score == best)
        order.append(chosen)
        scored = [entry for entry in scored if entry[1] != chosen]
    return order


def test_the_scores_are_golden() -> None:
    scores = reciprocal_ranks([[7, 8, 9], [9, 8]])
    assert scores[7] == pytest.approx(0.01639344262295082, rel=1e-15)
    assert scores[8] == pytest.approx(0.03225806451612903, rel=1e-15)
    assert reciprocal_ranks([[1], [1]])[1] == pytest.approx(0.03278688524590164, rel=1e-15)


def test_the_constants_are_those_of_the_contract() -> None:
    assert (RRF_K, OVERSAMPLE) == (60, 4)


def test_second_in_both_beats_first_in_one() -> None:  # 15.2 #33
    assert fuse([[1, 3], [2, 3]], fresh) == [3, 1, 2]


def test_equal_scores_stand_by_ascending_id() -> None:  # 15.2 #33
    for a, b in itertools.permutations((4, 9)):
        assert fuse([[a, b], [b, a]], fresh) == [4, 9]


def test_nothing_found_is_nothing_fused() -> None:
    assert fuse([[], []], fresh) == []


@given(rankings, rankings, st.lists(st.floats(1e-6, 1.0), min_size=31, max_size=31))
def test_fusion_agrees_with_the_slow_reference(semantic: list[int], keyword: list[int], decays: list[float]) -> None:
    decay = dict(enumerate(decays))
    assert fuse([semantic, keyword], decay.__getitem__) == slow_fuse(semantic, keyword, decay)
