"""A real browser on a real portal."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

import agent_memory
from tests.memorizz.served import GraphServer
from tests.memorizz.support import reference_folder
from tests.support.ollama import NOBODY

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip

Portal: TypeAlias = Callable[..., GraphServer]
Open: TypeAlias = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, without a window. While it runs, its thread has an event loop that no other test may meet."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on the path: apt-get install chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Opens pages in a browser of their own. A page that reports an error to its console fails the test."""
    problems: list[str] = []
    contexts = []

    def opened(*, width: int = 1280, scheme: str = "light") -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
            accept_downloads=True,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: problems.append(request.url) if _is_elsewhere(request.url) else None)
        return page

    yield opened
    for context in contexts:
        context.close()
    # Chromium says of each refusal that a resource could not be loaded.
    assert [problem for problem in problems if "Failed to load resource" not in problem] == []


def _is_elsewhere(url: str) -> bool:
    return not url.startswith(("http://127.0.0.1:", "blob:http://127.0.0.1:", "data:"))


@pytest.fixture
def typed(tmp_path: Path) -> Path:
    """A file with three typed memories, two of them linked."""
    path = tmp_path / "typed.db"
    with agent_memory.open(path, ollama_url=NOBODY) as memory:
        first = memory.store("We keep the tide tables in SQLite.", "DECISION", tags=["storage"])
        second = memory.store("We kept the tide tables in CSV files.", "DECISION", scope="harbor")
        memory.store("Check the gauge after each storm.", "TODO")
        memory.link(first, second, "supersedes")
    return path


@pytest.fixture
def portal(tmp_path: Path) -> Iterator[Portal]:
    """Starts portals, by default on a copy of the reference's folder."""
    started: list[GraphServer] = []

    def start(*arguments: str, store: Path | None = None, **variables: str) -> GraphServer:
        place = reference_folder(tmp_path / f"store-{len(started)}") if store is None else store
        backend = "sqlite" if place.suffix == ".sqlite3" else "filesystem"
        started.append(
            GraphServer(
                *("ui", "--backend", backend, "--path", str(place), *arguments),
                **{"MEMORIZZ_HOME": str(tmp_path / "home"), "AGENT_MEMORY_OLLAMA_URL": NOBODY, **variables},
            )
        )
        return started[-1]

    yield start
    for server in started:
        server.close()
        assert not any("Traceback" in line for line in server.stderr), server.stderr
