"""Every test of this area that takes ``provider`` runs over each of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memorizz import MemoryProvider
from tests.memorizz.sdk.ports import BACKENDS, TestClock, open_provider


@pytest.fixture(params=BACKENDS)
def provider(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryProvider]:
    with open_provider(request.param, tmp_path) as provider:
        yield provider


@pytest.fixture
def clock() -> TestClock:
    return TestClock()
