"""Reciprocal Rank Fusion of several rankings, weighted by decay.

A memory at 1-based rank r in a ranking scores 1 / (60 + r); ranks in several rankings add up
(Cormack, Clarke and Büttcher, SIGIR 2009, with their k = 60).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

RRF_K: Final = 60
OVERSAMPLE: Final = 4


def reciprocal_ranks(rankings: Iterable[Sequence[int]]) -> dict[int, float]:
    """The fused score of each id, summed over the rankings that hold it."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, memory_id in enumerate(ranking, start=1):
            scores[memory_id] = scores.get(memory_id, 0.0) + 1 / (RRF_K + rank)
    return scores


def fuse(rankings: Iterable[Sequence[int]], decay: Callable[[int], float]) -> list[int]:
    """All ids by fused score times decay, the highest first; equal scores stand in ascending id."""
    scores = reciprocal_ranks(rankings)
    return sorted(scores, key=lambda memory_id: (-scores[memory_id] * decay(memory_id), memory_id))
