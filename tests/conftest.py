"""Fixtures that every room of the suite uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TypeAlias

import hypothesis
import pytest

from tests.support.doors import DOORS, Door, McpDoor
from tests.support.ollama import NOBODY, FakeOllama

hypothesis.settings.register_profile("suite", deadline=None, derandomize=True, database=None, print_blob=False)
hypothesis.settings.load_profile("suite")

OpenDoor: TypeAlias = Callable[..., Door]


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the settings of the person who runs it."""
    for name in ("DB", "OLLAMA_URL", "SWEEP_SECS", "STRICT_QUERY", "JOURNAL", "LOG"):
        monkeypatch.delenv(f"AGENT_MEMORY_{name}", raising=False)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Where a test's database file is, or will be."""
    return tmp_path / "memory.db"


@pytest.fixture
def ollama() -> Iterator[FakeOllama]:
    """A fake Ollama that listens."""
    with FakeOllama() as ollama:
        yield ollama


@pytest.fixture(params=sorted(DOORS, reverse=True))
def open_door(request: pytest.FixtureRequest, db: Path) -> Iterator[OpenDoor]:
    """Opens doors of each kind in turn, on ``db`` and without an embedder unless told otherwise."""
    with ExitStack() as opened:

        def open_one(ollama_url: str = NOBODY, path: Path = db, *, sweeps: bool = False) -> Door:
            door: Door = DOORS[request.param](path, ollama_url, sweeps=sweeps)
            return opened.enter_context(closing(door))

        yield open_one


@pytest.fixture
def door(open_door: OpenDoor) -> Door:
    """Each kind of door in turn; the embedder is down."""
    return open_door()


@pytest.fixture
def hybrid(open_door: OpenDoor, ollama: FakeOllama) -> Door:
    """Each kind of door in turn; the embedder is ``ollama``."""
    return open_door(ollama.url)


@pytest.fixture
def mcp(db: Path) -> Iterator[McpDoor]:
    """An MCP server; the embedder is down."""
    with closing(McpDoor(db)) as door:
        yield door
