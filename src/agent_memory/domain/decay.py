"""How a memory fades in ranking since its last use. It never deletes anything.

score = exp(-ln 2 * age / half-life), with a half-life of 30 days, or 180 for pinned types.
"""

from __future__ import annotations

import math
from typing import Final

HALF_LIFE_SECS: Final = 2_592_000
PINNED_MULTIPLIER: Final = 6
PINNED_HALF_LIFE_SECS: Final = HALF_LIFE_SECS * PINNED_MULTIPLIER
NEGATIVE_LN_2: Final = -math.log(2)


def decay_score(now: int, last_accessed: int, *, pinned: bool) -> float:
    """The score in (0, 1] at ``now``, both times in unix seconds; a use in the future counts as just now."""
    age = max(now - last_accessed, 0)
    return math.exp(NEGATIVE_LN_2 * age / (PINNED_HALF_LIFE_SECS if pinned else HALF_LIFE_SECS))
