"""The status and body of every route, found and not found."""

from __future__ import annotations

from tests.support.rest import RestServer


def test_each_route_answers_with_its_status_and_body(rest: RestServer) -> None:
    stored = rest.post("/api/memories", {"content": "We ship on Fridays.", "type": "DECISION", "tags": ["a"]})
    assert (stored.status, stored.json) == (201, {"id": 1})
    assert rest.post("/api/memories", {"content": "Never again.", "type": "ERROR"}).json == {"id": 2}

    edge = {"from_id": 1, "to_id": 2, "kind": "caused_by"}
    for _ in range(2):
        linked = rest.post("/api/links", edge)
        assert (linked.status, linked.json) == (200, {**edge, "linked": True})

    listed = rest.get("/api/memories?type=DECISION&tag=a&limit=5&expand_links=true")
    (row,) = listed.json
    assert listed.status == 200
    assert [(near["id"], near["kind"], near["direction"]) for near in row["related"]] == [(2, "caused_by", "out")]

    found = rest.post("/api/search", {"query": "ship", "limit": 5})
    assert (found.status, list(found.json), found.json["search_mode"]) == (200, ["search_mode", "results"], "keyword")
    assert "related" not in found.json["results"][0]

    patched = rest.request("PATCH", "/api/memories/1", {"content": "We ship on Mondays.", "tags": None})
    assert (patched.status, patched.json["content"], patched.json["tags"]) == (200, "We ship on Mondays.", [])
    assert patched.json["embedding_status"] == 0

    unlinked = rest.request("DELETE", "/api/links/1/2/caused_by")
    assert (unlinked.status, unlinked.json) == (200, {**edge, "unlinked": True})

    forgotten = rest.request("DELETE", "/api/memories/1")
    assert (forgotten.status, forgotten.json) == (200, {"id": 1, "deleted": True})


def test_what_is_not_found_is_a_404_with_the_documented_body(rest: RestServer) -> None:
    rest.post("/api/memories", {"content": "x", "type": "TODO"})
    edge = {"from_id": 1, "to_id": 42, "kind": "supersedes"}
    for answer, body in (
        (
            rest.request("PATCH", "/api/memories/42", {"scope": "s"}),
            {"id": 42, "updated": False, "reason": "not_found"},
        ),
        (rest.request("DELETE", "/api/memories/42"), {"id": 42, "deleted": False, "reason": "not_found"}),
        (rest.post("/api/links", edge), {**edge, "linked": False, "reason": "not_found", "missing_id": 42}),
        (
            rest.request("DELETE", "/api/links/1/42/supersedes"),
            {**edge, "unlinked": False, "reason": "not_found"},
        ),
    ):
        assert (answer.status, answer.json) == (404, body)


def test_what_breaks_a_bound_is_a_json_400_on_every_route(rest: RestServer) -> None:
    for answer, message in (
        (
            rest.post("/api/memories", {"content": "x", "type": "TODO", "ttl_secs": 0}),
            "invalid argument: ttl_secs must be between 1 and 3155760000 (got 0)",
        ),
        (
            rest.post("/api/memories", {"content": "x", "type": "NOTE"}),
            "invalid memory type 'NOTE' (expected one of DECISION, PATTERN, ERROR, TODO, ARCHITECTURE, CONSTRAINT)",
        ),
        (
            rest.post("/api/search", {"query": "x", "limit": 201}),
            "invalid argument: limit must be between 1 and 200 (got 201)",
        ),
        (rest.get("/api/memories?limit=0"), "invalid argument: limit must be between 1 and 200 (got 0)"),
        (
            rest.get("/api/memories?expand_links=true"),
            "invalid argument: limit is required when expand_links is true; pass a limit between 1 and 200",
        ),
        (
            rest.request("PATCH", "/api/memories/1", {}),
            "invalid argument: at least one of content, tags, scope, ttl_secs must be provided",
        ),
        (
            rest.post("/api/links", {"from_id": 57, "to_id": 57, "kind": "supersedes"}),
            "invalid argument: from_id and to_id must differ (got 57)",
        ),
        (
            rest.request("DELETE", "/api/links/1/2/blocks"),
            "invalid argument: kind must be one of relates_to, supersedes, caused_by (got 'blocks')",
        ),
    ):
        assert (answer.status, answer.error) == (400, message)
