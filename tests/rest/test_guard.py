"""Web pages cannot use a daemon that listens on this machine only."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import database
from tests.support.rest import Answer, RestServer

PATHS = ["/api/memories", "/health", "/docs", "/openapi.json", "/nowhere"]


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:1", "LOCALHOST:80", "localhost.:80", "127.0.0.1", "127.1.2.3:7437", "[::1]", "[::1]:7437"],
)
def test_a_host_that_names_this_machine_is_served(rest: RestServer, host: str) -> None:
    assert rest.get("/health", Host=host).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:7437", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "0.0.0.0",
        "[::2]", "[::ffff:127.0.0.1]", "", "localhost:", "user@localhost", "127.0.0.1:7437:1",
        "localhost, evil.example", "2130706433", "0x7f.1",
    ],
)  # fmt: skip
def test_any_other_host_is_refused_on_every_path(rest: RestServer, host: str) -> None:
    for path in PATHS:
        answer = rest.get(path, Host=host)
        assert answer.status == 403
        assert "Host" in answer.error


def test_a_request_without_a_host_comes_from_no_browser(rest: RestServer) -> None:
    connection = rest.connect()
    connection.putrequest("GET", "/health", skip_host=True)
    connection.endheaders()
    assert connection.getresponse().status == 200
    connection.close()


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example", "http://localhost:3000", "null", "http://127.0.0.1:1", "file://", "http://localhost",
        "chrome-extension://abc", "", "http://evil.example http://{host}",
    ],
)  # fmt: skip
def test_another_site_can_neither_read_nor_write(rest: RestServer, db: Path, origin: str) -> None:
    before = database.everything(db)

    def refused(answer: Answer) -> bool:
        return answer.status == 403 and "Origin" in answer.error

    headers = {"Origin": origin.replace("{host}", f"{rest.host}:{rest.port}")}
    assert refused(rest.request("POST", "/api/memories", {"content": "planted", "type": "TODO"}, headers))
    # What a form can send without asking first.
    simple = {**headers, "Content-Type": "text/plain"}
    assert refused(rest.request("POST", "/api/memories", b'{"content":"planted","type":"TODO"}', simple, raw=True))
    assert refused(rest.request("DELETE", "/api/memories/1", headers=headers))
    assert all(refused(rest.get(path, **headers)) for path in PATHS)
    assert database.everything(db) == before


def test_the_same_site_is_served(rest: RestServer) -> None:
    same = f"http://{rest.host}:{rest.port}"
    assert rest.request("POST", "/api/search", {"query": "x"}, {"Origin": same}).status == 200
    tunnelled = {"Host": "localhost:9000", "Origin": "http://localhost:9000"}
    assert rest.get("/docs", **tunnelled).status == 200


def test_behind_a_remote_address_the_guard_is_off(db: Path) -> None:
    with RestServer(db, "--allow-remote", addr="0.0.0.0:0", fork=True) as server:
        server.host = "127.0.0.1"
        connection = server.connect()
        connection.request("GET", "/health", headers={"Host": "memory.example", "Origin": "https://app.example"})
        assert connection.getresponse().status == 200
        connection.close()
