"""Every test of this area that takes ``place`` or ``provider`` runs over each of the backends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memorizz.providers.base import MemoryProvider
from tests.memorizz.providers.backends import BACKENDS, Backend, Place


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend.kind)
def backend(request: pytest.FixtureRequest) -> Backend:
    found: Backend = request.param
    return found


@pytest.fixture
def place(backend: Backend, tmp_path: Path) -> Place:
    return backend.at(tmp_path)


@pytest.fixture
def provider(place: Place) -> Iterator[MemoryProvider]:
    with place.open() as provider:
        yield provider
