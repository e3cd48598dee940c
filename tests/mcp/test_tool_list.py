"""The schema rules that strict and sloppy clients need, over the real `tools/list`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.ollama import NOBODY
from tests.support.stdio import StdioServer

FORBIDDEN = {"$schema", "$ref", "$defs", "anyOf", "oneOf", "allOf", "not", "default"}


@pytest.fixture
def tools(db: Path) -> list[dict[str, Any]]:
    with StdioServer.serve(db, AGENT_MEMORY_OLLAMA_URL=NOBODY) as server:
        server.initialize()
        listed: list[dict[str, Any]] = server.request("tools/list")["result"]["tools"]
        assert server.request("tools/list")["result"]["tools"] == listed
        return listed


def every_schema(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from every_schema(inner)
    if "items" in schema:
        yield from every_schema(schema["items"])


def test_the_list_is_small_and_its_names_are_plain(tools: list[dict[str, Any]]) -> None:
    assert len(json.dumps({"tools": tools}).encode()) <= 16 * 1024
    assert len(tools) == 7
    for tool in tools:
        assert re.fullmatch(r"[a-z][a-z0-9_]{2,40}", tool["name"])
        assert 0 < len(tool["description"]) <= 1500


def test_every_schema_keeps_to_what_all_clients_understand(tools: list[dict[str, Any]]) -> None:
    for tool in tools:
        root = tool["inputSchema"]
        assert root["type"] == "object"
        assert isinstance(root["properties"], dict)
        assert isinstance(root["required"], list)
        assert set(root["required"]) <= set(root["properties"])
        for schema in every_schema(root):
            assert not FORBIDDEN & set(schema), (tool["name"], schema)
            assert isinstance(schema["type"], str)
            assert schema["type"] != "null"
            assert schema["type"] != "array" or "items" in schema
            assert all(isinstance(value, str) for value in schema.get("enum", ()))
        for name, schema in root["properties"].items():
            assert schema["description"], (tool["name"], name)


def test_every_tool_has_a_title_and_all_four_annotations(tools: list[dict[str, Any]]) -> None:
    hints = {"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    for tool in tools:
        assert tool["title"] == tool["annotations"]["title"]
        assert set(tool["annotations"]) == hints
    read_only = [tool["name"] for tool in tools if tool["annotations"]["readOnlyHint"]]
    destructive = [tool["name"] for tool in tools if tool["annotations"]["destructiveHint"]]
    assert read_only == ["memory_search", "memory_list"]
    assert destructive == ["memory_forget"]


def test_the_parameters_are_those_of_the_contract(tools: list[dict[str, Any]]) -> None:
    shapes = {
        tool["name"]: (tool["inputSchema"]["required"], list(tool["inputSchema"]["properties"])) for tool in tools
    }
    assert shapes == {
        "memory_store": (["content", "type"], ["content", "type", "tags", "source", "scope", "ttl_secs"]),
        "memory_search": (["query"], ["query", "type", "tag", "scope", "limit", "expand_links"]),
        "memory_list": ([], ["type", "tag", "scope", "limit", "expand_links"]),
        "memory_update": (["id"], ["id", "content", "tags", "scope", "ttl_secs"]),
        "memory_link": (["from_id", "to_id", "kind"], ["from_id", "to_id", "kind"]),
        "memory_unlink": (["from_id", "to_id", "kind"], ["from_id", "to_id", "kind"]),
        "memory_forget": (["id"], ["id"]),
    }
