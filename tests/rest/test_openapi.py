"""The OpenAPI document says what the daemon does, and the page says what the document does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import hypothesis
import jsonschema
import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)
from schemathesis.specs.openapi.definitions import OPENAPI_31
from starlette.routing import Route

import agent_memory
from agent_memory.operations import schemas
from agent_memory.rest.application import application
from tests.support.ollama import NOBODY
from tests.support.rest import RestServer

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
]
OPERATIONS = [
    "POST /api/memories", "GET /api/memories", "POST /api/search", "PATCH /api/memories/{id}",
    "DELETE /api/memories/{id}", "POST /api/links", "DELETE /api/links/{from_id}/{to_id}/{kind}", "GET /health",
]  # fmt: skip


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestServer]:
    """One daemon for all examples, with a few memories in it."""
    db: Path = tmp_path_factory.mktemp("openapi") / "memory.db"
    with RestServer(db, fork=True) as server:
        for number in range(3):
            server.post("/api/memories", {"content": f"memory {number}", "type": "TODO", "tags": ["a"]})
        server.post("/api/links", {"from_id": 1, "to_id": 2, "kind": "supersedes"})
        yield server


@pytest.mark.parametrize("operation", OPERATIONS)
def test_generated_requests_get_documented_answers(daemon: RestServer, operation: str) -> None:
    document = schemathesis.openapi.from_url(f"{daemon.url}/openapi.json")
    method, path = operation.split()

    @hypothesis.settings(max_examples=60, suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(
        case=document[path][method].as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE)
        | document[path][method].as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)
    )
    def answers(case: Any) -> None:
        case.call_and_validate(base_url=daemon.url, checks=CHECKS)

    answers()


def test_the_document_is_valid_and_names_every_route(rest: RestServer) -> None:
    document = rest.get("/openapi.json").json
    assert document["openapi"] == "3.1.0"
    described = [f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods]
    assert sorted(described) == sorted(OPERATIONS)
    for operation in described:
        method, path = operation.split()
        real = re.sub(r"\{kind\}", "supersedes", re.sub(r"\{\w*id\}", "1", path))
        assert rest.request(method, real).status not in (404, 405) or method == "DELETE"
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(OPENAPI_31).validate(document)
    for methods in document["paths"].values():
        for described_one in methods.values():
            assert all(parameter["description"] for parameter in described_one.get("parameters", []))


def test_the_application_has_the_routes_of_the_document_and_its_two_pages(db: Path) -> None:
    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        routes = [route for route in application(memory, guarded=True).routes if isinstance(route, Route)]
    real = [f"{method} {route.path}" for route in routes for method in (route.methods or ()) if method != "HEAD"]
    assert sorted(real) == sorted([*OPERATIONS, "GET /openapi.json", "GET /docs"])


def test_the_header_that_warns_is_described_where_it_can_come(rest: RestServer) -> None:
    paths = rest.get("/openapi.json").json["paths"]
    warned = {
        operation["operationId"]
        for methods in paths.values()
        for operation in methods.values()
        if any("Agent-Memory-Warning" in answer.get("headers", {}) for answer in operation["responses"].values())
    }
    assert warned == {"storeMemory", "listMemories", "searchMemories", "linkMemories"}


def test_the_parameters_are_those_of_the_tools(rest: RestServer) -> None:
    document = rest.get("/openapi.json").json

    def body(path: str, method: str) -> dict[str, Any]:
        found: dict[str, Any] = document["paths"][path][method]["requestBody"]["content"]["application/json"]["schema"]
        return found

    assert list(body("/api/memories", "post")["properties"]) == list(schemas.STORE["properties"])
    assert list(body("/api/search", "post")["properties"]) == list(schemas.SEARCH["properties"])
    assert list(body("/api/links", "post")["properties"]) == list(schemas.EDGE["properties"])
    patch = body("/api/memories/{id}", "patch")
    assert ["id", *patch["properties"]] == list(schemas.UPDATE["properties"])
    assert patch["properties"]["content"]["type"] == "string"
    assert patch["properties"]["ttl_secs"]["type"] == ["integer", "null"]
    query = [parameter["name"] for parameter in document["paths"]["/api/memories"]["get"]["parameters"]]
    assert query == list(schemas.LIST["properties"])


def test_the_page_shows_the_document_and_asks_nobody_for_anything(rest: RestServer) -> None:
    answer = rest.get("/docs")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"] == "default-src 'none'; style-src 'unsafe-inline'"
    page = unescape(answer.body.decode())
    for operation in OPERATIONS:
        assert operation in page
    assert "<script" not in page
    assert re.findall(r'(?:src|href)="([^"#]+)"', page) == ["/openapi.json"]
    for name in (*schemas.STORE["properties"], *schemas.SEARCH["properties"]):
        assert f"<code>{name}</code>" in page
