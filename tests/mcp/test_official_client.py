"""The official SDK's client drives the whole server, in every protocol revision it speaks."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import mcp.client.session
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from tests.support.ollama import NOBODY

pytestmark = pytest.mark.filterwarnings("default")

EVERY_VERSION = [*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS, "auto"]


@pytest.fixture
def with_client(db: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs an async test body with a connected client of one protocol version and returns what it returns."""

    def run(version: str, body: Callable[[Client], Awaitable[Any]]) -> Any:
        mode = version
        if version in HANDSHAKE_PROTOCOL_VERSIONS:
            # The client offers only its newest handshake; a client of an earlier time offers an earlier one.
            monkeypatch.setattr(mcp.client.session, "LATEST_HANDSHAKE_VERSION", version)
            mode = "legacy"
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "agent_memory", "serve"],
            env={**os.environ, "AGENT_MEMORY_DB": str(db), "AGENT_MEMORY_OLLAMA_URL": NOBODY},
        )

        async def connected() -> Any:
            async with Client(server, mode=mode) as client:
                return await body(client)

        return anyio.run(connected)

    return run


def text(result: Any) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


@pytest.mark.parametrize("version", EVERY_VERSION)
def test_the_client_negotiates_the_version_and_learns_who_serves(version: str, with_client: Any) -> None:
    async def body(client: Client) -> Any:
        await client.list_tools()
        return client.protocol_version, client.server_info, client.instructions

    negotiated, info, instructions = with_client(version, body)

    assert negotiated == ("2026-07-28" if version == "auto" else version)
    if version in HANDSHAKE_PROTOCOL_VERSIONS or version == "auto":
        assert info.name == "agent-memory"
        assert instructions.startswith("Persistent, typed memory")


@pytest.mark.parametrize("version", EVERY_VERSION)
def test_a_memory_goes_through_its_whole_life(version: str, with_client: Any) -> None:
    async def body(client: Client) -> None:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert tools == [
            "memory_store", "memory_search", "memory_list", "memory_update", "memory_link", "memory_unlink",
            "memory_forget",
        ]  # fmt: skip

        first = await client.call_tool("memory_store", {"content": "We chose SQLite.", "type": "DECISION"})
        second = await client.call_tool("memory_store", {"content": "Locks were lost.", "type": "ERROR"})
        assert (text(first), text(second)) == ("1", "2")
        found = json.loads(text(await client.call_tool("memory_search", {"query": "what did we choose?"})))
        assert found["search_mode"] == "keyword"
        assert [result["id"] for result in found["results"]] == [1]
        linked = await client.call_tool("memory_link", {"from_id": 2, "to_id": 1, "kind": "caused_by"})
        assert json.loads(text(linked)) == {"from_id": 2, "to_id": 1, "kind": "caused_by", "linked": True}
        updated = await client.call_tool("memory_update", {"id": 1, "tags": ["storage"]})
        assert json.loads(text(updated))["tags"] == ["storage"]
        listed = json.loads(text(await client.call_tool("memory_list", {"limit": 5, "expand_links": True})))
        assert [memory["related"][0]["kind"] for memory in listed] == ["caused_by", "caused"]
        await client.call_tool("memory_unlink", {"from_id": 2, "to_id": 1, "kind": "caused_by"})
        forgotten = await client.call_tool("memory_forget", {"id": 1})
        assert json.loads(text(forgotten)) == {"id": 1, "deleted": True}

    with_client(version, body)


@pytest.mark.parametrize("version", EVERY_VERSION)
def test_bad_values_are_protocol_errors_and_bad_shapes_are_tool_errors(version: str, with_client: Any) -> None:
    async def body(client: Client) -> None:
        with pytest.raises(MCPError) as refused:
            await client.call_tool("memory_search", {"query": "x", "limit": 0})
        assert refused.value.error.code == -32602
        assert refused.value.error.message == "invalid argument: limit must be between 1 and 200 (got 0)"
        with pytest.raises(MCPError, match="tool not found"):
            await client.call_tool("memory_recall", {})
        malformed = await client.call_tool("memory_update", {"id": 1, "type": "TODO"})
        assert malformed.is_error
        assert text(malformed).startswith("failed to deserialize parameters: unknown field `type`")

    with_client(version, body)


def test_many_calls_of_one_client_run_side_by_side_and_all_are_kept(with_client: Any) -> None:
    async def body(client: Client) -> list[str]:
        answers: list[str] = []

        async def store(number: int) -> None:
            result = await client.call_tool("memory_store", {"content": f"fact {number}", "type": "TODO"})
            answers.append(text(result))

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(store, number)
        listed = json.loads(text(await client.call_tool("memory_list", {})))
        assert len(listed) == 20
        return answers

    assert sorted(with_client("2025-11-25", body), key=int) == [str(number) for number in range(1, 21)]
