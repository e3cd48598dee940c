"""Ranking: which memories answer a query, in which order."""

from __future__ import annotations

from agent_memory.domain.decay import decay_score
from agent_memory.domain.fusion import OVERSAMPLE, fuse
from agent_memory.domain.memory import Filters
from agent_memory.service.ports import Reader


def hybrid(
    reader: Reader, query: str, vector: bytes, filters: Filters, limit: int, now: int, *, strict: bool
) -> list[int]:
    """Up to ``limit`` ids: the semantic and the keyword ranking, each of 4 x ``limit``, fused and weighted by decay."""
    semantic = reader.nearest(vector, filters, OVERSAMPLE * limit)
    keyword = reader.keyword(query, filters, OVERSAMPLE * limit, strict=strict)
    last_use = reader.decay_inputs({*semantic, *keyword})

    def decay(memory_id: int) -> float:
        last_accessed, pinned = last_use[memory_id]
        return decay_score(now, last_accessed, pinned=pinned)

    return fuse([semantic, keyword], decay)[:limit]
