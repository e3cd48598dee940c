"""Portals over memories, shared by the tests of a file where none of them writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.memorizz.portal import stores
from tests.memorizz.portal.support import Portal
from tests.memorizz.support import reference_folder

Start: TypeAlias = Callable[..., Portal]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for the tests of a file."""
    return tmp_path_factory.mktemp("portal")


@pytest.fixture(scope="module")
def start_shared(place: Path) -> Iterator[Start]:
    """Starts portals that last for a file of tests."""
    with ExitStack() as started:
        yield lambda *arguments, **variables: started.enter_context(
            Portal(*arguments, **{"MEMORIZZ_HOME": str(place / "home"), **variables})
        )


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts portals of the test's own."""
    with ExitStack() as started:
        yield lambda *arguments, **variables: started.enter_context(
            Portal(*arguments, **{"MEMORIZZ_HOME": str(tmp_path / "home"), **variables})
        )


@pytest.fixture(scope="module")
def wild(start_shared: Start, place: Path) -> Portal:
    """A portal over records that no page expects, and over typed memories."""
    typed = stores.typed(place / "typed.db")
    return start_shared(*on(stores.wild(place / "wild.sqlite3")), "--memory-db", typed)


@pytest.fixture(scope="module")
def reference(start_shared: Start, place: Path) -> Portal:
    """A portal over the folder that the reference provider wrote."""
    return start_shared(*on(reference_folder(place / "reference")))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that the reference provider wrote, of the test's own."""
    return reference_folder(tmp_path / "reference")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file without records."""
    with stores.sqlite(tmp_path / "graph.sqlite3"):
        return tmp_path / "graph.sqlite3"


def on(place: Path) -> tuple[str, ...]:
    """The arguments that choose a memory."""
    return "--backend", "sqlite" if place.suffix == ".sqlite3" else "filesystem", "--path", str(place)
