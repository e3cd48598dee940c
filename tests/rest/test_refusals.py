"""Requests that never become an operation: each route refuses them as the contract says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import database
from tests.support.rest import RestServer, exchange

OLD = {"/api/memories": {"content": "x", "type": "TODO"}, "/api/search": {"query": "x"}}
NEW = {
    ("PATCH", "/api/memories/1"): {"content": "x"},
    ("POST", "/api/links"): {"from_id": 1, "to_id": 2, "kind": "relates_to"},
}
JSON = {"Content-Type": "application/json"}
BROKEN = [
    b"", b"{", b'{"a":}', b"[1,]", b"{}x", b"nul", b"\xff\xfe", b'{"a": NaN}', b"[" * 100_000,
    b'{"a": ' + b"9" * 5_000 + b"}",
]  # fmt: skip
NO_OBJECT = [b"[]", b"5", b'"text"', b"null", b"true"]


def refused_types(valid: dict[str, Any]) -> list[dict[str, Any]]:
    """Bodies in each of which one member is missing or of a type that is not documented."""
    missing = [{name: value for name, value in valid.items() if name != gone} for gone in valid]
    wrong = [{**valid, name: [5] if isinstance(value, str) else "5"} for name, value in valid.items()]
    return [*missing, *wrong]


@pytest.mark.parametrize("path", OLD)
def test_the_first_body_routes_refuse_a_body_as_bare_text(rest: RestServer, path: str) -> None:
    for content in BROKEN:
        answer = rest.request("POST", path, content, JSON, raw=True)
        assert answer.status == 400, content[:20]
        assert answer.text.startswith("the request body is not valid JSON")
    for content in NO_OBJECT:
        assert rest.request("POST", path, content, JSON, raw=True).status == 422, content
    for body in refused_types(OLD[path]):
        answer = rest.post(path, body)
        assert answer.status == 422, body
        assert answer.text.startswith("failed to deserialize parameters: ")
    assert rest.get("/api/memories").json == []


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"limit": "5"}, 'limit: expected an integer, got "5"'),
        ({"limit": 5.0}, "limit: expected an integer, got 5.0"),
        ({"limit": True}, "limit: expected an integer, got true"),
        ({"expand_links": "true"}, 'expand_links: expected true or false, got "true"'),
        ({"expand_links": 1}, "expand_links: expected true or false, got 1"),
        ({"tag": 5}, "tag: expected a string, got 5"),
        ({"type": ["TODO"]}, 'type: expected a string, got ["TODO"]'),
    ],
)
def test_a_member_of_another_type_is_named_with_its_value(
    rest: RestServer, extra: dict[str, Any], message: str
) -> None:
    answer = rest.post("/api/search", {"query": "x", **extra})
    assert (answer.status, answer.text) == (422, f"failed to deserialize parameters: {message}")


def test_a_missing_member_is_named(rest: RestServer) -> None:
    assert rest.post("/api/memories", {"content": "x"}).text == "failed to deserialize parameters: missing field `type`"
    assert rest.post("/api/search", {}).text == "failed to deserialize parameters: missing field `query`"


@pytest.mark.parametrize("headers", [{}, {"Content-Type": "text/plain"}, {"Content-Type": "application/jsonp"}])
def test_a_body_that_is_not_declared_as_json_is_refused(rest: RestServer, headers: dict[str, str]) -> None:
    for path, body in OLD.items():
        answer = rest.request("POST", path, json.dumps(body).encode(), headers, raw=True)
        assert answer.status == 415
        assert "Content-Type: application/json" in answer.text
    for (method, path), body in NEW.items():
        answer = rest.request(method, path, json.dumps(body).encode(), headers, raw=True)
        assert answer.status == 400
        assert "Content-Type: application/json" in answer.error


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "Application/JSON", "application/merge-patch+json"]
)
def test_every_way_of_declaring_json_is_understood(rest: RestServer, kind: str) -> None:
    memory_id = rest.request("POST", "/api/memories", OLD["/api/memories"], {"Content-Type": kind}).json["id"]
    answer = rest.request("PATCH", f"/api/memories/{memory_id}", {"tags": ["a"]}, {"Content-Type": kind})
    assert answer.json["tags"] == ["a"]


@pytest.mark.parametrize(("method", "path"), NEW)
def test_the_later_body_routes_refuse_a_body_as_json(rest: RestServer, db: Path, method: str, path: str) -> None:
    for number in range(2):
        rest.post("/api/memories", {"content": f"memory {number}", "type": "TODO"})
    before = database.everything(db)
    for content in [*BROKEN, *NO_OBJECT]:
        answer = rest.request(method, path, content, JSON, raw=True)
        assert answer.status == 400, content[:20]
        assert answer.error
    for body in refused_types(NEW[method, path]):
        answer = rest.request(method, path, body)
        assert answer.status == 400, body
    assert database.everything(db) == before


@pytest.mark.parametrize("unknown", ["type", "source", "ttl_sec", "id"])
def test_a_patch_with_an_unknown_field_fails_as_a_whole(rest: RestServer, db: Path, unknown: str) -> None:
    memory_id = rest.post("/api/memories", {"content": "before", "type": "TODO"}).json["id"]
    before = database.everything(db)
    answer = rest.request("PATCH", f"/api/memories/{memory_id}", {"content": "after", unknown: "TODO"})
    assert answer.status == 400
    assert answer.error.startswith(f"failed to deserialize parameters: unknown field `{unknown}`")
    assert database.everything(db) == before


def test_elsewhere_an_unknown_field_is_ignored_and_named_in_a_header(rest: RestServer) -> None:
    stored = rest.post("/api/memories", {"content": "x", "type": "TODO", "tgs": ["a"], "é\n": 1})
    assert stored.status == 201
    assert "`tgs` (did you mean `tags`?)" in stored.headers["agent-memory-warning"]
    assert "\\xe9" in stored.headers["agent-memory-warning"]
    assert "`scop`" in rest.post("/api/search", {"query": "x", "scop": "s"}).headers["agent-memory-warning"]
    assert "`tagg`" in rest.get("/api/memories?tagg=a").headers["agent-memory-warning"]
    linked = rest.post("/api/links", {"from_id": 1, "to_id": 2, "kind": "relates_to", "x": 1})
    assert "`x`" in linked.headers["agent-memory-warning"]
    assert "agent-memory-warning" not in rest.get("/api/memories").headers


@pytest.mark.parametrize("segment", ["abc", "5.0", "0x10", "%205", "1e3", "", "9223372036854775808", "9" * 5_000])
def test_a_path_segment_that_is_no_64_bit_integer_is_refused_naming_it(rest: RestServer, segment: str) -> None:
    if segment:
        for method, path, body in (
            ("PATCH", f"/api/memories/{segment}", {"scope": "s"}),
            ("DELETE", f"/api/memories/{segment}", None),
        ):
            answer = rest.request(method, path, body)
            assert answer.status == 400
            assert answer.error.startswith("failed to deserialize parameters: id: expected a 64-bit integer, got ")
        assert "from_id" in rest.request("DELETE", f"/api/links/{segment}/1/supersedes").error
        assert "to_id" in rest.request("DELETE", f"/api/links/1/{segment}/supersedes").error
    else:
        assert rest.request("DELETE", "/api/memories/").status == 404


@pytest.mark.parametrize("segment", ["+7", "-7", "0", "9223372036854775807", "-9223372036854775808"])
def test_every_64_bit_integer_is_an_id(rest: RestServer, segment: str) -> None:
    assert rest.request("DELETE", f"/api/memories/{segment}").json == {
        "id": int(segment),
        "deleted": False,
        "reason": "not_found",
    }


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("limit=abc", 'limit: expected an integer, got "abc"'),
        ("limit=", 'limit: expected an integer, got ""'),
        ("limit=5.0", 'limit: expected an integer, got "5.0"'),
        ("limit=null", 'limit: expected an integer, got "null"'),
        ("expand_links=1&limit=5", 'expand_links: expected true or false, got "1"'),
        ("expand_links=True", 'expand_links: expected true or false, got "True"'),
        ("limit=5&limit=6", "duplicate field `limit`"),
        ("tag=a&tag=b", "duplicate field `tag`"),
    ],
)
def test_a_query_parameter_of_another_form_is_refused_naming_it(rest: RestServer, query: str, named: str) -> None:
    answer = rest.get(f"/api/memories?{query}")
    assert (answer.status, answer.error) == (400, f"failed to deserialize parameters: {named}")


def test_query_parameters_are_decoded(rest: RestServer) -> None:
    rest.post("/api/memories", {"content": "x", "type": "TODO", "tags": ["a b&c=d é"], "scope": "s/1"})
    assert len(rest.get("/api/memories?tag=a+b%26c%3Dd%20%C3%A9&scope=s%2F1&type=TODO&limit=5").json) == 1
    assert len(rest.get("/api/memories?type=&tag=&scope=").json) == 1
    assert rest.get("/api/memories?tag=%FF").json == []


def test_a_member_that_is_there_twice_is_refused(rest: RestServer) -> None:
    answer = rest.request("POST", "/api/search", b'{"query":"a","query":"b"}', JSON, raw=True)
    assert (answer.status, answer.text) == (422, "failed to deserialize parameters: duplicate field `query`")


def test_a_lone_surrogate_is_answered_like_over_every_door(rest: RestServer) -> None:  # B8
    answer = rest.request("POST", "/api/memories", b'{"content":"\\ud83d","type":"TODO"}', JSON, raw=True)
    assert answer.status == 400
    assert "without lone surrogates" in answer.error
    answer = rest.request("POST", "/api/memories", b'{"content":"x","type":"\\ud83d"}', JSON, raw=True)
    assert answer.status == 400
    assert "invalid memory type" in answer.error
    assert rest.request("POST", "/api/search", b'{"query":"\\ud83d"}', JSON, raw=True).json["results"] == []
    assert rest.request("PATCH", "/api/memories/1", b'{"\\ud83d":1}', JSON, raw=True).status == 400


@pytest.mark.parametrize("path", ["/", "/api", "/api/memories/", "/API/memories", "/api/memories/1/2", "/health/"])
def test_an_unknown_path_is_a_json_404(rest: RestServer, path: str) -> None:
    answer = rest.get(path)
    assert answer.status == 404
    assert path in answer.error


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/api/memories", {"GET", "HEAD", "POST"}),
        ("GET", "/api/search", {"POST"}),
        ("POST", "/api/memories/1", {"PATCH", "DELETE"}),
        ("HEAD", "/api/memories/1", {"PATCH", "DELETE"}),
        ("GET", "/api/links", {"POST"}),
        ("GET", "/api/links/1/2/supersedes", {"DELETE"}),
        ("DELETE", "/docs", {"GET", "HEAD"}),
        ("POST", "/health", {"GET", "HEAD"}),
        ("OPTIONS", "/api/memories", {"GET", "HEAD", "POST"}),
    ],
)
def test_another_method_is_a_json_405_that_names_the_methods(
    rest: RestServer, method: str, path: str, allowed: set[str]
) -> None:
    answer = rest.request(method, path)
    assert answer.status == 405
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.headers["allow"].split(", ")) == allowed
    assert method == "HEAD" or method in answer.error


LIMIT = 2 * 1024 * 1024


@pytest.mark.parametrize("size", [LIMIT + 1, 3 * LIMIT])
def test_a_body_over_two_mebibytes_is_refused(rest: RestServer, size: int) -> None:
    content = b'{"query":"' + b"x" * (size - 12) + b'"}'
    answer = rest.request("POST", "/api/search", content, JSON, raw=True)
    assert (answer.status, answer.text) == (413, f"the request body must be at most {LIMIT} bytes")
    for method, path in NEW:
        assert rest.request(method, path, content, JSON, raw=True).status == 413
    assert rest.get("/health").status == 200


def test_a_body_of_exactly_two_mebibytes_is_read(rest: RestServer) -> None:
    content = b'{"query":"' + b"x" * (LIMIT - 12) + b'"}'
    assert len(content) == LIMIT
    assert rest.request("POST", "/api/search", content, JSON, raw=True).status == 200


def test_a_body_without_a_length_is_counted_as_it_comes(rest: RestServer) -> None:
    connection = rest.connect()
    parts = [b'{"query":"', *[b"x" * 65_536] * 40, b'"}']
    answer = exchange(connection, "POST", "/api/search", iter(parts), JSON, raw=True)
    assert answer.status == 413
    connection.close()


def test_who_asks_before_sending_is_refused_before_sending(rest: RestServer) -> None:
    connection = rest.connect()
    connection.putrequest("POST", "/api/search")
    for name, value in (*JSON.items(), ("Content-Length", str(10 * LIMIT)), ("Expect", "100-continue")):
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()
