"""How memories fade."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.domain.decay import HALF_LIFE_SECS, decay_score

DAY = 86_400
GOLDEN = {
    0: (1.0, 1.0),
    1: (0.9771599684342459, 0.9961565872205752),
    7: (0.8506671609508557, 0.9734043393240235),
    30: (0.5, 0.8908987181403393),
    90: (0.125, 0.7071067811865476),
    180: (0.015625, 0.5),
    365: (0.00021750456985848138, 0.24523252191722877),
    600: (9.5367431640625e-07, 0.09921256574801247),
}


@pytest.mark.parametrize("days", GOLDEN)
def test_the_score_has_its_golden_value(days: int) -> None:  # 15.1 #3 #4
    unpinned, pinned = GOLDEN[days]
    assert decay_score(days * DAY + 5, 5, pinned=False) == pytest.approx(unpinned, rel=1e-12)
    assert decay_score(days * DAY + 5, 5, pinned=True) == pytest.approx(pinned, rel=1e-12)


def test_the_half_life_is_thirty_days() -> None:  # 15.1 #7
    assert HALF_LIFE_SECS == 2_592_000


@given(st.integers(-(10**12), 10**12), st.integers(0, 10**12), st.booleans())
def test_a_use_in_the_future_counts_as_just_now(now: int, ahead: int, pinned: bool) -> None:  # 15.1 #6
    assert decay_score(now, now + ahead, pinned=pinned) == 1.0


@given(st.integers(1, 10**9), st.integers(1, 10**8))
def test_the_score_falls_with_age_and_pinned_memories_fall_slower(age: int, more: int) -> None:  # 15.1 #5 #27
    for pinned in (False, True):
        assert decay_score(age + more, 0, pinned=pinned) <= decay_score(age, 0, pinned=pinned) <= 1.0
        assert decay_score(age, 0, pinned=pinned) >= 0.0
    assert decay_score(age, 0, pinned=True) >= decay_score(age, 0, pinned=False)


def test_the_curve_falls_strictly_over_ten_half_lives() -> None:  # 15.1 #27
    curve = [decay_score(age, 0, pinned=False) for age in range(0, 10 * HALF_LIFE_SECS, DAY)]
    assert all(earlier > later for earlier, later in itertools.pairwise(curve))
