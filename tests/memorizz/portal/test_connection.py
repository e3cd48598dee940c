"""Choosing another memory while the portal runs."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from memorizz.backends import BACKENDS
from memorizz.taxonomy import MemoryType
from tests.memorizz.portal import stores
from tests.memorizz.portal.conftest import Start, on
from tests.memorizz.portal.support import Page, Portal
from tests.memorizz.support import reference_folder


@pytest.fixture
def portal(start: Start, file: Path) -> Portal:
    return start(*on(file))


@pytest.fixture(scope="module")
def unmoved(start_shared: Start, place: Path) -> Portal:
    """A portal for tests that connect nothing."""
    with stores.sqlite(place / "graph.sqlite3"):
        return start_shared(*on(place / "graph.sqlite3"))


def test_another_memory_of_another_kind_is_connected(portal: Portal, folder: Path, file: Path) -> None:
    assert "graph.sqlite3" in portal.page("/").text
    page = portal.page("/connect")
    form = next(form for form in page.forms if form.action == "/connect")
    assert form.method == "POST"
    assert {"filesystem", "sqlite"} <= set(page.options["backend"])
    done = portal.done("/connect", {"backend": "filesystem", "path": f" {folder} "})
    assert "Connected." in portal.page(done).text
    assert str(folder) in portal.page("/connect").text
    assert "/agents/agent-keel/playground" in portal.page("/").links
    assert portal.done("/connect", {"backend": "sqlite", "path": str(file)}) == done
    assert "Nothing is stored here yet." in portal.page("/").text


def test_a_memory_may_be_connected_for_reading_only(portal: Portal, folder: Path) -> None:
    portal.done("/connect", {"backend": "filesystem", "path": str(folder), "read_only": "true"})
    page = portal.page("/connect")
    assert "read-only" in page.within("header")[0]
    portal.done("/connect", {"backend": "filesystem", "path": str(folder)})
    assert "read-only" not in portal.page("/connect").within("header")[0]


@pytest.mark.parametrize(("backend", "name"), [("sqlite", "deep/er/made.sqlite3"), ("filesystem", "made")])
def test_a_memory_that_is_not_there_is_made_only_when_that_is_wanted(
    portal: Portal, tmp_path: Path, backend: str, name: str
) -> None:
    wanted = {"backend": backend, "path": str(tmp_path / name)}
    said = portal.not_done("/connect", wanted)
    assert "tick the box to make a new memory there" in said
    assert not (tmp_path / name).exists()
    assert portal.not_done("/connect", {**wanted, "create": "false"})
    assert portal.not_done("/connect", {**wanted, "create": "true", "read_only": "true"})
    assert not (tmp_path / name).exists()
    assert "graph.sqlite3" in portal.page("/connect").text
    portal.done("/connect", {**wanted, "create": "true"})
    assert (tmp_path / name).exists()
    portal.page("/")


@pytest.mark.parametrize("how", ["--read-only", "--read-only --no-connect"])
def test_a_read_only_portal_makes_and_changes_nothing(
    start: Start, file: Path, folder: Path, tmp_path: Path, how: str
) -> None:
    portal = start(*on(file), *how.split())
    for backend, name in (("sqlite", "made.sqlite3"), ("filesystem", "made")):
        portal.not_done("/connect", {"backend": backend, "path": str(tmp_path / name), "create": "true"})
        assert not (tmp_path / name).exists()
    before = stores.state(folder)
    portal.done("/connect", {"backend": "filesystem", "path": str(folder)})
    portal.page("/")
    assert stores.state(folder) == before


def foreign(place: Path) -> dict[str, tuple[str, Path]]:
    """What is no memory."""
    (place / "text.sqlite3").write_bytes(b"somebody wrote this\n" * 100)
    with sqlite3.connect(place / "other.sqlite3") as other:
        other.execute("create table notes(text)")
    other.close()
    stores.typed(place / "typed.db")
    (place / "somebody").mkdir()
    (place / "somebody" / "letter.txt").write_text("Dear")
    return {
        "a text": ("sqlite", place / "text.sqlite3"),
        "a database of another program": ("sqlite", place / "other.sqlite3"),
        "a typed memory": ("sqlite", place / "typed.db"),
        "a folder as a file": ("sqlite", place / "somebody"),
        "a file as a folder": ("filesystem", place / "text.sqlite3"),
        "somebody's folder": ("filesystem", place / "somebody"),
        "below a file": ("sqlite", place / "text.sqlite3" / "x"),
    }


@pytest.mark.parametrize(
    "name",
    [
        *("a text", "a database of another program", "a typed memory", "a folder as a file", "a file as a folder"),
        *("somebody's folder", "below a file"),
    ],
)
def test_what_is_no_memory_is_left_as_it_is(unmoved: Portal, tmp_path: Path, name: str) -> None:
    (tmp_path / "places").mkdir()
    backend, path = foreign(tmp_path / "places")[name]
    before = stores.state(tmp_path / "places")
    said = unmoved.not_done("/connect", {"backend": backend, "path": str(path)})
    assert "\n" not in said
    assert stores.state(tmp_path / "places") == before
    assert "graph.sqlite3" in unmoved.page("/").text


@pytest.mark.parametrize(
    "fields",
    [
        *({}, {"backend": ""}, {"path": "/tmp"}, {"backend": "", "path": "/"}, {"backend": "Sqlite", "path": "/"}),
        *({"backend": "<b>", "path": "/tmp"}, {"backend": "sqlite"}, {"backend": "sqlite", "path": " "}),
        *({"backend": "sqlite", "path": "a\0b"}, {"backend": "sqlite", "path": "~nobody-of-that-name/x"}),
        *({"backend": "filesystem", "path": "x" * 300}, {"backend": "sqlite", "path": "x" * 5000, "create": "true"}),
        *({"backend": "sqlite", "path": "/proc/nothing", "create": "true"}, {"backend": "sqlite", "path": "."}),
        *({"backend": "filesystem", "path": "/dev/null", "create": "true"}, {"backend": "sqlite", "path": "/"}),
        {"backend": "sqlite", "path": '"><script>alert(1)</script>'},
    ],
)
def test_a_connection_that_cannot_be_is_refused_and_the_form_keeps_what_was_typed(
    unmoved: Portal, fields: dict[str, str]
) -> None:
    answer = unmoved.submit("/connect", fields)
    assert answer.status == 400
    page = Page("/connect", answer)
    assert page.problem
    shown = dict(next(form for form in page.forms if form.action == "/connect").fields)
    assert shown["path"] == fields.get("path", "").strip()
    assert "graph.sqlite3" in unmoved.page("/").text


def test_a_backend_on_another_machine_needs_its_settings(unmoved: Portal) -> None:
    for name, backend in BACKENDS.items():
        if not backend.in_files:
            assert backend.options[0].variable in unmoved.not_done("/connect", {"backend": name})
            assert unmoved.not_done("/connect", {"backend": name, "path": "/tmp/x", "create": "true"})


def test_only_a_form_connects(portal: Portal, folder: Path) -> None:
    body = b'{"backend": "filesystem", "path": "x"}'
    for kind in ("application/json", "text/plain", "multipart/form-data; boundary=x", ""):
        answer = portal.ask("POST", "/connect", body, {"Content-Type": kind})
        assert answer.status == 415, kind
    headers = {"Content-Type": "Application/X-WWW-Form-Urlencoded ; charset=utf-8"}
    assert portal.ask("POST", "/connect", f"backend=filesystem&path={folder}".encode(), headers).status == 303


def test_who_reads_a_memory_goes_on_while_another_is_connected(portal: Portal, file: Path, tmp_path: Path) -> None:
    places = {"filesystem": reference_folder(tmp_path / "second"), "sqlite": file}
    failed: list[object] = []
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            try:
                portal.page("/memory/knowledge-base")
            except Exception as error:  # noqa: BLE001 - whatever it is, the test has to tell
                failed.append(error)
                return

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(10):
        for backend, place in places.items():
            portal.done("/connect", {"backend": backend, "path": str(place)})
    ended.set()
    for reader in readers:
        reader.join()
    assert failed == []
    with stores.folder(places["filesystem"]) as provider:
        assert provider.count(MemoryType.KNOWLEDGE_BASE) > 0
