"""Official clients on the MCP server of the memory graph, over both transports."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent

from memorizz import SQLiteConfig, SQLiteProvider
from memorizz.memory_archive import MemoryArchive
from tests.memorizz.support import archive

Body = Callable[[Client], Awaitable[Any]]


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    """A file with everything that the reference's whole folder held for nobody, and what belongs to ana."""
    path = tmp_path / "graph.sqlite3"
    with SQLiteProvider(SQLiteConfig(path=path)) as provider:
        for name in ("agent_coordinator", "user_ana", "anonymous"):
            report = MemoryArchive(provider).import_archive(archive(name), dry_run=False, conflict="skip")
            assert report["ok"], report
    return path


def over_stdio(memory: Path, body: Body, *arguments: str, mode: str = "auto", **variables: str) -> Any:
    """What ``body`` returns, given a client of a server of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMORIZZ_")}
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "memorizz", "mcp", "serve", "--backend", "sqlite", "--path", str(memory), *arguments],
        env={**kept, "MEMORIZZ_HOME": str(memory.parent / "home"), **variables},
    )

    async def connected() -> Any:
        async with Client(server, mode=mode) as client:
            return await body(client)

    return anyio.run(connected)


def over_http(url: str, token: str | None, body: Body, *, mode: str = "auto") -> Any:
    """What ``body`` returns, given a client with that token."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    async def connected() -> Any:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            return await body(client)

    return anyio.run(connected)


def result(answer: Any) -> Any:
    """The JSON of a tool's answer, which has to be no error."""
    (content,) = answer.content
    assert isinstance(content, TextContent)
    assert not answer.is_error, content.text
    return json.loads(content.text)


def refusal(answer: Any) -> str:
    """The text of a tool's error."""
    (content,) = answer.content
    assert isinstance(content, TextContent)
    assert answer.is_error, content.text
    return content.text


def tool(name: str, **arguments: Any) -> Body:
    """A body that calls one tool."""

    async def body(client: Client) -> Any:
        return await client.call_tool(f"memorizz_{name}_memories", arguments)

    return body
