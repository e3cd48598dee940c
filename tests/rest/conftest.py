"""One daemon for the tests that leave nothing behind for each other but memories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.rest import RestServer


@pytest.fixture
def rest(db: Path) -> Iterator[RestServer]:
    """A daemon on ``db``; the embedder is down."""
    with RestServer(db, fork=True) as server:
        yield server
