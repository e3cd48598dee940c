"""The seven tools on the official Python SDK's high-level server, over the same memory: what ``startup.py`` compares.

    python bench/official_sdk_server.py --db PATH

The SDK derives the schemas from the signatures. Answers are those of the same operations; what the contract
asks beyond them (its errors, null as "clear" in an update) is left out, so this does a little less.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from mcp.server.mcpserver import MCPServer

import agent_memory

server = MCPServer("agent-memory")
parser = argparse.ArgumentParser(description="Serve a memory through the official SDK.")
parser.add_argument("--db", required=True)
memory = agent_memory.open(parser.parse_args().db)


@server.tool(structured_output=False)
def memory_store(
    content: str,
    type: str,
    tags: list[str] | None = None,
    source: str | None = None,
    scope: str | None = None,
    ttl_secs: int | None = None,
) -> str:
    """Persist a typed memory; returns its id."""
    return str(memory.store(content, type, tags=tags or (), source=source, scope=scope, ttl_secs=ttl_secs))


@server.tool(structured_output=False)
def memory_search(
    query: str,
    type: str | None = None,
    tag: str | None = None,
    scope: str | None = None,
    limit: int | None = None,
    expand_links: bool = False,
) -> str:
    """Find memories by keyword and meaning, best first."""
    return _json(
        memory.search(query, type=type, tag=tag, scope=scope, limit=limit, expand_links=expand_links).to_dict()
    )


@server.tool(structured_output=False)
def memory_list(
    type: str | None = None,
    tag: str | None = None,
    scope: str | None = None,
    limit: int | None = None,
    expand_links: bool = False,
) -> str:
    """List memories newest first."""
    found = memory.list(type=type, tag=tag, scope=scope, limit=limit, expand_links=expand_links)
    return _json([each.to_dict() for each in found])


@server.tool(structured_output=False)
def memory_update(
    id: int,
    content: str | None = None,
    tags: list[str] | None = None,
    scope: str | None = None,
    ttl_secs: int | None = None,
) -> str:
    """Patch a memory in place by id."""
    given: dict[str, Any] = {"content": content, "tags": tags, "scope": scope, "ttl_secs": ttl_secs}
    return _json(memory.update(id, **{name: value for name, value in given.items() if value is not None}).to_dict())


@server.tool(structured_output=False)
def memory_link(from_id: int, to_id: int, kind: str) -> str:
    """Link two memories with a typed relation."""
    return _json(memory.link(from_id, to_id, kind).to_dict())


@server.tool(structured_output=False)
def memory_unlink(from_id: int, to_id: int, kind: str) -> str:
    """Remove a relation between two memories."""
    return _json(memory.unlink(from_id, to_id, kind).to_dict())


@server.tool(structured_output=False)
def memory_forget(id: int) -> str:
    """Delete a memory by id, with its relations."""
    return _json(memory.forget(id).to_dict())


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    server.run("stdio")
