"""Every address with every method."""

from __future__ import annotations

import socket

import pytest

from memorizz.portal.application import ADDRESSES, Address
from tests.memorizz.portal.support import EXPORT, FORM, Page, Portal, address_of, sentence

VALUES = {"slug": "knowledge-base", "agent": "agent-keel", "id": "1"}
OTHERS = ("PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")


def path_of(address: Address) -> str:
    return address_of(address.path, **VALUES)


@pytest.mark.parametrize("address", ADDRESSES, ids=lambda address: address.path)
def test_a_method_that_an_address_does_not_have_is_405(wild: Portal, address: Address) -> None:
    path = path_of(address)
    has = {*(("GET", "HEAD") if address.get else ()), *(("POST",) if address.post else ())}
    # GET /memories/new is a memory's page whose id is no number.
    missing = {"GET", "HEAD", "POST"} - has - ({"GET", "HEAD"} if path == "/memories/new" else set())
    for method in (*OTHERS, *sorted(missing)):
        answer = wild.ask(method, path)
        assert answer.status == 405, (method, answer)
        assert set(answer.headers["allow"].split(", ")) == has
        if method != "HEAD":
            assert method in sentence(path, answer)


@pytest.mark.parametrize(
    "address", [address for address in ADDRESSES if address.get], ids=lambda address: str(address.path)
)
def test_head_is_get_without_the_body(reference: Portal, address: Address) -> None:
    path = path_of(address)
    got, head = reference.ask("GET", path), reference.ask("HEAD", path)
    assert head.body == b""
    assert head.status == got.status
    varying = {"date", "content-disposition"}
    assert {n: v for n, v in head.headers.items() if n not in varying} == {
        n: v for n, v in got.headers.items() if n not in varying
    }


def test_every_address_that_shows_something_does(wild: Portal) -> None:
    shown = {}
    for address in ADDRESSES:
        if address.get is not None and "{agent" not in address.path and "record" not in address.path:
            path = path_of(address)
            answer = wild.ask("GET", path)
            shown[path] = answer.status
            if answer.status == 200 and path != EXPORT:
                assert Page(path, answer).title().endswith(" · memorizz")
    assert shown.pop("/login") == 303
    assert set(shown.values()) == {200}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("portal.css", "text/css; charset=utf-8"),
        ("portal.js", "text/javascript; charset=utf-8"),
        ("theme.js", "text/javascript; charset=utf-8"),
        ("transfer.js", "text/javascript; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    ],
)
def test_static_files_are_served_and_can_be_kept(wild: Portal, name: str, kind: str) -> None:
    answer = wild.ask("GET", f"/static/{name}")
    assert (answer.status, answer.headers["content-type"]) == (200, kind)
    assert answer.headers.get("cache-control") != "no-store"
    again = wild.ask("GET", f"/static/{name}", None, {"If-None-Match": answer.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    head = wild.ask("HEAD", f"/static/{name}")
    assert head.headers["content-length"] == str(len(answer.body))
    posted = wild.ask("POST", f"/static/{name}", b"", FORM)
    assert (posted.status, posted.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "path",
    [
        *("/static/", "/static", "/static/nothing.js", "/static/%00", "/static/../web.py", "/static/..%2fweb.py"),
        *("/static/%2e%2e/web.py", "/static/%2e%2e/templates/base.html", "/static//etc/passwd", "/static/" + "x" * 300),
        *("/nowhere", "/memory/", "/memory/nothing", "/memory/PERSONAS", "/memory/personas/", "/agents/", "//", "/%00"),
        *("/agents//playground", "/agents/playground", "/memory/personas/record/x", "/api", "/login/", "/traces"),
        *("/%ff", "//evil.example/", "/MEMORY", "/memory;x", "/templates/base.html", "/favicon.ico", "/robots.txt"),
    ],
)
def test_what_is_not_there_is_a_page_that_says_so(wild: Portal, path: str) -> None:
    assert "location" not in wild.ask("GET", path).headers
    wild.refused(path, 404)


def test_below_api_what_is_not_there_is_json(wild: Portal) -> None:
    assert wild.refused("/api/nothing", 404) == "there is no such page"
    assert wild.refused("/api/memory-transfer/export/", 404) == "there is no such page"


def test_what_is_no_http_is_refused_without_a_page(wild: Portal) -> None:
    for line in (b"GET /memory?\xff HTTP/1.1", b"GET /\xff HTTP/1.1", b"FETCH / HTTP/1.1"):
        with socket.create_connection((wild.host, wild.port)) as connection:
            connection.sendall(line + b"\r\nHost: localhost\r\n\r\n")
            assert connection.recv(65_536).startswith(b"HTTP/1.1 400 "), line
