"""Providers to export from and to import into."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import pytest

from memorizz import FileSystemConfig, FileSystemProvider, MemoryProvider, SQLiteConfig, SQLiteProvider
from tests.memorizz.support import reference_folder

Open: TypeAlias = Callable[..., MemoryProvider]


@pytest.fixture
def reference(tmp_path: Path) -> Iterator[FileSystemProvider]:
    """A copy of the folder that the reference provider wrote."""
    with FileSystemProvider(FileSystemConfig(reference_folder(tmp_path / "reference"))) as provider:
        yield provider


@pytest.fixture(params=["filesystem", "sqlite"])
def open_empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens empty providers of each kind in turn, by name."""
    with ExitStack() as opened:

        def open_one(name: str = "target") -> MemoryProvider:
            provider: MemoryProvider
            if request.param == "filesystem":
                provider = FileSystemProvider(FileSystemConfig(tmp_path / name))
            else:
                provider = SQLiteProvider(SQLiteConfig(tmp_path / f"{name}.sqlite3"))
            return opened.enter_context(provider)

        yield open_one


@pytest.fixture
def target(open_empty: Open) -> MemoryProvider:
    """An empty provider of each kind in turn."""
    return open_empty()
