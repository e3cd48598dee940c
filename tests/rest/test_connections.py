"""Clients that hang up, go on for ever, send what grows under the reader's hands, or offer another protocol."""

from __future__ import annotations

import socket
from typing import Final

import pytest

from tests.support.polling import eventually
from tests.support.rest import RestServer, exchange
from tests.support.stdio import TIMEOUT

LIMIT: Final = 2 * 1024 * 1024
JSON: Final = {"Content-Type": "application/json"}
HEAD: Final = b"Host: localhost\r\nContent-Type: application/json\r\n"
BODY: Final = b'{"content":"x","type":"TODO"}'
# What the HTTP client of Java sends with its first request, unless it is told not to.
OFFER: Final = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABk\r\n"


def connected(rest: RestServer) -> socket.socket:
    return socket.create_connection((rest.host, rest.port), TIMEOUT)


def everything(connection: socket.socket) -> bytes:
    """What comes until the other side ends the connection."""
    received = b""
    while part := connection.recv(65_536):
        received += part
    return received


def until(connection: socket.socket, part: bytes) -> bytes:
    """What comes up to and including ``part``."""
    received = b""
    while part not in received:
        more = connection.recv(65_536)
        assert more, received
        received += more
    return received


@pytest.mark.parametrize(
    ("request_line", "kind", "status"),
    [
        (b"POST /api/search", b"application/json", b"413"),
        (b"POST /api/search", b"text/plain", b"415"),
        (b"PATCH /api/memories/abc", b"application/json", b"400"),
        (b"POST /nowhere", b"application/json", b"404"),
        (b"POST /health", b"application/json", b"405"),
    ],
)
def test_who_is_refused_before_sending_gets_a_connection_that_ends(
    rest: RestServer, request_line: bytes, kind: bytes, status: bytes
) -> None:
    # A next request on it would be taken for the body that was never sent.
    with connected(rest) as connection:
        connection.sendall(
            request_line + b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: " + kind + b"\r\n"
            b"Content-Length: 20971520\r\nExpect: 100-continue\r\n\r\n"
        )
        answer = everything(connection)
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert b"\r\nconnection: close\r\n" in answer


def test_the_guard_ends_the_connection_of_who_asked_before_sending_too(rest: RestServer) -> None:
    with connected(rest) as connection:
        connection.sendall(
            b"POST /api/search HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
        )
        assert everything(connection).startswith(b"HTTP/1.1 403")


def test_who_asked_and_may_send_keeps_the_connection(rest: RestServer) -> None:
    with connected(rest) as connection:
        connection.sendall(
            b"POST /api/memories HTTP/1.1\r\n"
            + HEAD
            + b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % len(BODY)
        )
        assert until(connection, b"\r\n\r\n").startswith(b"HTTP/1.1 100")
        connection.sendall(BODY)
        assert b"connection: close" not in until(connection, b'{"id":1}')
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert until(connection, b"}").startswith(b"HTTP/1.1 200")


def test_a_body_that_never_ends_is_cut_off(rest: RestServer) -> None:
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    with connected(rest) as connection:
        connection.sendall(b"POST /api/search HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        with pytest.raises(ConnectionError):
            connection.sendall(chunk * 1_000)
    assert rest.get("/health").status == 200


def test_a_client_that_hangs_up_in_mid_body_is_no_error(rest: RestServer) -> None:
    for path in (b"/api/search", b"/api/links"):
        with connected(rest) as connection:
            connection.sendall(b"POST " + path + b" HTTP/1.1\r\n" + HEAD + b"Content-Length: 100\r\n\r\n{")
            # The answer to another client comes later than the daemon's look at the first one's request.
            assert rest.get("/health").status == 200
    assert rest.get("/health").status == 200
    assert rest.close() == 0
    assert not any("Traceback" in line or " ERROR " in line for line in rest.stderr)


@pytest.mark.parametrize("path", ["/api/search", "/api/links"])
def test_a_member_that_is_there_twice_is_found_among_very_many(rest: RestServer, path: str) -> None:
    members = b",".join(b'"%x":1' % number for number in range(190_000))
    body = b"{" + members + b',"zz":1,"zz":2}'
    assert len(body) < LIMIT
    answer = rest.request("POST", path, body, JSON, raw=True)
    assert answer.status in (400, 422)
    assert b"duplicate field `zz`" in answer.body


def test_of_very_many_unknown_members_the_first_are_named(rest: RestServer) -> None:
    members = b",".join(b'"q%x":1' % number for number in range(100_000))
    body = b'{"query":"x","' + b"l" * 900_000 + b'":1,' + members + b"}"
    assert len(body) < LIMIT
    answer = rest.request("POST", "/api/search", body, JSON, raw=True)
    assert answer.status == 200
    named = answer.headers["agent-memory-warning"]
    assert "`q0`" in named
    assert "`q10`" not in named
    assert len(named) <= 1_000


def test_no_depth_of_nesting_is_an_internal_error(rest: RestServer) -> None:
    connection = rest.connect()
    for template in (b'{"query":%s}', b'{"query":"x","unknown":%s}'):
        for depth in range(900, 1_050):
            body = template % (b"[" * depth + b"]" * depth)
            answer = exchange(connection, "POST", "/api/search", body, JSON, raw=True)
            assert answer.status in (200, 400, 422), (depth, answer)
    connection.close()
    assert rest.log_count("Traceback") == 0


@pytest.mark.parametrize("cut", [0, 1, len(BODY)])
@pytest.mark.parametrize("chunked", [False, True])
def test_an_offer_to_change_the_protocol_is_passed_over(rest: RestServer, cut: int, chunked: bool) -> None:
    length = b"Transfer-Encoding: chunked\r\n" if chunked else b"Content-Length: %d\r\n" % len(BODY)
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY) if chunked else BODY
    with connected(rest) as connection:
        connection.sendall(b"POST /api/memories HTTP/1.1\r\n" + HEAD + OFFER + length + b"\r\n" + body[:cut])
        eventually(lambda: rest.get("/health").status == 200)
        connection.sendall(body[cut:])
        assert until(connection, b'{"id":1}').startswith(b"HTTP/1.1 201")
        connection.sendall(b"GET /api/memories HTTP/1.1\r\n" + HEAD + OFFER + b"\r\n")
        assert until(connection, b"]").startswith(b"HTTP/1.1 200")
    assert rest.log_count("upgrade") == 0


@pytest.mark.parametrize("rest_of_offer", [b"Connection: keep-alive\r\n", b"UPGRADE: a\r\n", b"Upgrade: \r\n"])
def test_no_form_of_an_offer_loses_the_body(rest: RestServer, rest_of_offer: bytes) -> None:
    with connected(rest) as connection:
        length = b"Content-Length: %d\r\n\r\n" % len(BODY)
        connection.sendall(b"POST /api/memories HTTP/1.1\r\n" + HEAD + OFFER + rest_of_offer + length + BODY)
        assert until(connection, b'{"id":1}').startswith(b"HTTP/1.1 201")


def test_requests_in_a_row_that_offer_another_protocol_are_all_answered(rest: RestServer) -> None:
    one = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade, keep-alive\r\nUpgrade: websocket\r\n\r\n"
    last = one.replace(b"keep-alive", b"close")
    with connected(rest) as connection:
        connection.sendall(one * 50 + last)
        assert everything(connection).count(b"HTTP/1.1 200") == 51


def test_the_guard_looks_at_a_request_that_offers_another_protocol(rest: RestServer) -> None:
    with connected(rest) as connection:
        head = b"POST /api/memories HTTP/1.1\r\n" + HEAD.replace(b"localhost", b"evil.example") + OFFER
        connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY)
        assert until(connection, b"}").startswith(b"HTTP/1.1 403")
    assert rest.get("/api/memories").json == []


@pytest.mark.parametrize(
    "request_line", [b"CONNECT localhost:80 HTTP/1.1", b"GET /\xff HTTP/1.1", b"GET  HTTP/1.1", b"nonsense"]
)
def test_what_is_no_request_for_this_daemon_is_refused(rest: RestServer, request_line: bytes) -> None:
    with connected(rest) as connection:
        connection.sendall(request_line + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert everything(connection).startswith(b"HTTP/1.1 4")
    assert rest.log_count("Traceback") == 0
