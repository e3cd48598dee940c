"""The MCP server of the memory graph over a network: keys, tenants, what travels and what does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from memorizz import SQLiteConfig, SQLiteProvider
from memorizz.memory_archive import MemoryArchive, validate_archive
from memorizz.taxonomy import MemoryType
from tests.memorizz.cli.conftest import Run, environment, run  # noqa: F401
from tests.memorizz.mcp.conftest import over_http, refusal, result, tool
from tests.memorizz.served import GraphServer
from tests.memorizz.support import archive

pytestmark = pytest.mark.filterwarnings("default")

ANA, BEN, READER = "ana-token-0123456789", "ben-token-0123456789", "reader-token-012345"
KEYS = {
    "ana": ANA,
    "ben": {"token": BEN},
    "reader": {"token": READER, "scopes": ["memorizz:read"]},
}
SHARED = {"personas", "toolbox", "skillbox", "agents", "shared_memory"}


def served(memory: Path, *arguments: str, **variables: str) -> GraphServer:
    """A server on a free port."""
    return GraphServer(
        *("mcp", "serve", "--transport", "streamable-http", "--backend", "sqlite", "--path", str(memory)),
        *arguments,
        **{"MEMORIZZ_HOME": str(memory.parent / "home"), "MEMORIZZ_MCP_SERVER_API_KEYS": json.dumps(KEYS), **variables},
    )


@pytest.fixture
def open_to_writes(memory: Path) -> Iterator[str]:
    """The endpoint of a server that writes and shows every agent."""
    with served(memory, "--all-agents", "--allow-writes") as server:
        yield f"{server.url}/mcp"


def rows(made: dict[str, Any]) -> list[tuple[str, Any]]:
    """Store and data of each record of an archive."""
    return [(store, row["data"]) for store, found in made["stores"].items() for row in found]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_two_tenants_do_not_see_each_other(open_to_writes: str, mode: str) -> None:
    anas = result(over_http(open_to_writes, ANA, tool("export"), mode=mode))["archive"]
    assert rows(anas)
    assert {data["user_id"] for _, data in rows(anas)} == {"ana"}
    assert rows(result(over_http(open_to_writes, BEN, tool("export"), mode=mode))["archive"]) == []
    stolen = over_http(open_to_writes, BEN, tool("import", archive=anas, dry_run=False, conflict="replace"))
    assert "outside of the scope 'ben'" in refusal(stolen)


def test_what_a_tenant_brings_is_its_own_and_nobody_elses(open_to_writes: str) -> None:
    anas = result(over_http(open_to_writes, ANA, tool("export")))["archive"]
    copy = tool("import", archive=anas, dry_run=False, id_strategy="new")
    done = result(over_http(open_to_writes, ANA, copy))
    assert done["imported"] == anas["manifest"]["record_count"]
    assert rows(result(over_http(open_to_writes, BEN, tool("export")))["archive"]) == []
    again = result(over_http(open_to_writes, ANA, tool("export")))["archive"]
    assert again["manifest"]["record_count"] == 2 * anas["manifest"]["record_count"]


def test_only_stores_of_tenants_travel_and_the_rest_is_named(open_to_writes: str) -> None:
    made = result(over_http(open_to_writes, ANA, tool("export")))
    validate_archive(made["archive"])
    assert set(made["left_out"]["stores"]) == SHARED
    assert any("do not travel over a network" in warning for warning in made["archive"]["manifest"]["warnings"])
    for store in SHARED:
        answer = over_http(open_to_writes, ANA, tool("export", memory_types=[store]))
        assert refusal(answer).startswith("memory_type_not_tenant_scoped: ")
    given = over_http(open_to_writes, ANA, tool("import", archive=archive("agent_plain")))
    assert refusal(given).startswith("memory_type_not_tenant_scoped: ")
    chosen = result(over_http(open_to_writes, ANA, tool("export", memory_types=["knowledge_base"])))
    assert "left_out" not in chosen


def test_without_a_list_no_agents_records_travel_and_that_is_said(memory: Path) -> None:
    with served(memory) as server:
        assert server.log_count("records of agents are left out") == 1
        made = result(over_http(f"{server.url}/mcp", ANA, tool("export")))
    assert not any(data.get("agent_id") for _, data in rows(made["archive"]))
    with SQLiteProvider(SQLiteConfig(path=memory)) as provider:
        stores = [MemoryType(store) for store in set(MemoryType) - SHARED]
        everything = MemoryArchive(provider).export(user_id="ana", memory_types=stores)
    hidden = sum(made["left_out"]["records"].values())
    assert hidden > 0
    assert made["archive"]["manifest"]["record_count"] + hidden == everything["manifest"]["record_count"]


def test_writing_needs_the_scope_and_the_policy(memory: Path) -> None:
    empty = archive("empty_store")
    apply = tool("import", archive=empty, dry_run=False)
    with served(memory, "--allow-writes") as server:
        url = f"{server.url}/mcp"
        assert refusal(over_http(url, READER, apply)).startswith("insufficient_scope: ")
        assert result(over_http(url, READER, tool("import", archive=empty)))["ok"]
        assert result(over_http(url, ANA, apply))["ok"]
    with served(memory) as server:
        assert refusal(over_http(f"{server.url}/mcp", ANA, apply)).startswith("writes_disabled: ")


def test_who_has_no_key_or_a_wrong_one_gets_401(memory: Path) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for options, wrong, without in ((), 401, 401), (("--allow-anonymous",), 401, 200):
        with served(memory, *options) as server:
            accept = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
            first = {**body, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
            }}  # fmt: skip
            bad = {**accept, "Authorization": "Bearer nonsense-nonsense"}
            answer = server.request("POST", "/mcp", first, bad)
            assert answer.status == wrong
            assert answer.headers["www-authenticate"].startswith("Bearer ")
            assert server.request("POST", "/mcp", first, accept).status == without


def test_a_caller_without_a_key_is_nobody(memory: Path) -> None:
    with served(memory, "--allow-anonymous", "--all-agents", MEMORIZZ_MCP_SERVER_API_KEYS="") as server:
        made = result(over_http(f"{server.url}/mcp", None, tool("export")))["archive"]
    assert rows(made)
    assert not any(data.get("user_id") for _, data in rows(made))


def test_other_hosts_and_web_sites_are_kept_out_but_not_those_of_the_proxy(memory: Path) -> None:
    with served(memory, "--public-url", "https://memory.example.com") as server:
        key = {"Authorization": f"Bearer {ANA}", "Accept": "application/json, text/event-stream"}
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        statuses = {
            (host, origin): server.request("POST", "/mcp", ping, {**key, "Host": host, **origin_of(origin)}).status
            for host in (f"localhost:{server.port}", "memory.example.com", "evil.example")
            for origin in (None, "https://memory.example.com", "https://evil.example")
        }
    refused = {pair for pair, status in statuses.items() if status in (403, 421)}
    assert refused == {pair for pair in statuses if "evil" in f"{pair}"}


def origin_of(origin: str | None) -> dict[str, str]:
    return {} if origin is None else {"Origin": origin}


def test_a_body_over_the_limit_is_413(memory: Path) -> None:
    with served(memory, "--max-request-bytes", "1000") as server:
        body = b"x" * (6 * 1000 + 65_536 + 1)
        headers = {"Authorization": f"Bearer {ANA}", "Content-Type": "application/json"}
        assert server.request("POST", "/mcp", body, headers, raw=True).status == 413


@pytest.mark.parametrize("mode", ["--stateless-http", "--stateful-http"])
def test_an_unknown_tool_and_a_defective_archive_are_answers(memory: Path, mode: str) -> None:
    async def unknown(client: Client) -> Any:
        with pytest.raises(Exception, match="tool not found"):
            await client.call_tool("memorizz_forget_everything", {})
        return await client.call_tool("memorizz_import_memories", {"archive": {"format": "other"}})

    with served(memory, mode) as server:
        assert refusal(over_http(f"{server.url}/mcp", ANA, unknown)).startswith("archive_error: ")


REFUSED = [
    (("--transport", "streamable-http"), {"MEMORIZZ_MCP_SERVER_API_KEYS": ""}, "over HTTP callers need keys"),
    (("--transport", "streamable-http", "--host", "0.0.0.0"), {}, "need TLS"),
    (("--transport", "streamable-http", "--host", "memory"), {}, "--host must be an IP address"),
    (("--transport", "streamable-http", "--public-url", "http://m.example"), {}, "must be the URL of a whole site"),
    (("--transport", "streamable-http", "--http-path", "mcp"), {}, "--http-path must be a path"),
    (("--transport", "carrier-pigeon"), {}, "is not one of"),
    ((), {"MEMORIZZ_MCP_SERVER_TRANSPORT": "pigeon"}, "the transport must be one of"),
    ((), {"MEMORIZZ_MCP_SERVER_PORT": "many"}, "MEMORIZZ_MCP_SERVER_PORT must be a whole number"),
    ((), {"MEMORIZZ_MCP_SERVER_ALLOW_WRITES": "perhaps"}, "MEMORIZZ_MCP_SERVER_ALLOW_WRITES must be true or false"),
    ((), {"MEMORIZZ_MCP_SERVER_LOCAL_PRINCIPAL": "a b"}, "a principal is a letter or digit"),
    ((), {"MEMORIZZ_MCP_SERVER_API_KEYS": "{"}, "is not valid JSON"),
    ((), {"MEMORIZZ_MCP_SERVER_API_KEYS": "[]"}, "must be a JSON object"),
    ((), {"MEMORIZZ_MCP_SERVER_API_KEYS": '{"ana": "short"}'}, "at least 16 characters"),
    ((), {"MEMORIZZ_MCP_SERVER_API_KEYS": '{"": "0123456789abcdef"}'}, "a principal is a letter or digit"),
    ((), {"MEMORIZZ_MCP_SERVER_API_KEYS": '{"a": {"token": "0123456789abcdef", "scopes": []}}'}, "is missing"),
    ((), {"MEMORIZZ_MCP_SERVER_API_KEYS": '{"a": {"token": "0123456789abcdef", "scopes": ["x"]}}'}, "no scope"),
    ((), {"MEMORIZZ_MCP_SERVER_API_KEYS": '{"a": "0123456789abcdef", "b": "0123456789abcdef"}'}, "another principal"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "variables", "message"), REFUSED)
def test_a_setting_that_cannot_be_is_refused_in_one_sentence(
    run: Run,  # noqa: F811
    arguments: tuple[str, ...],
    variables: dict[str, str],
    message: str,
) -> None:
    given = {"MEMORIZZ_MCP_SERVER_API_KEYS": json.dumps(KEYS), **variables}
    done = run("mcp", "serve", *arguments, **given)
    assert done.returncode == 2
    assert message in done.stderr
    assert "0123456789abcdef" not in done.stderr
