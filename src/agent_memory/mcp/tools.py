"""The seven tools of the typed memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from agent_memory.mcp.session import Tool
from agent_memory.operations import arguments, schemas
from agent_memory.service.memory import AgentMemory

INSTRUCTIONS: Final = (
    "Persistent, typed memory shared by every agent on this machine. Search it before you decide or ask again; "
    "store decisions, patterns, errors, todos, architecture and constraints as you learn them, one fact each, in "
    "full sentences that make sense without this conversation. When a fact changes, update its memory by id, or "
    "store the new one and link it with kind `supersedes`. Forget only what is wrong: unused memories sink in "
    "ranking by themselves. `scope` keeps projects apart; without one a memory is global."
)


def tools(memory: AgentMemory) -> list[Tool]:
    """The tool table over ``memory``, in the order it is listed."""
    return [
        Tool(
            name="memory_store",
            title="Store a memory",
            description=(
                "Keep a typed memory for later sessions and other agents; returns its numeric id. Only content and "
                "type are required. Search first: to change what is stored already, use memory_update."
            ),
            input_schema=schemas.STORE,
            read_only=False,
            destructive=False,
            idempotent=False,
            call=_handler(schemas.STORE, lambda given: str(memory.store(**given))),
        ),
        Tool(
            name="memory_search",
            title="Search memories",
            description=(
                "Find memories by keyword and meaning; any text is a valid query. Returns "
                '{"search_mode", "results"}, best first, each with id, content, type, tags, scope and decay_score. '
                'search_mode is "hybrid" when the local embedder answered (keyword and semantic rankings fused by '
                'rank) and "keyword" otherwise; both weigh in how recently a memory was used. Nothing found is an '
                "empty list. Only returned results count as used."
            ),
            input_schema=schemas.SEARCH,
            read_only=True,
            destructive=False,
            idempotent=True,
            call=_handler(schemas.SEARCH, lambda given: _json(memory.search(**given).to_dict())),
        ),
        Tool(
            name="memory_list",
            title="List memories",
            description=(
                "List memories newest first, filtered by type, tag or scope. Returns a JSON array. Without a limit "
                "it returns every memory, so pass one. To answer a question use memory_search."
            ),
            input_schema=schemas.LIST,
            read_only=True,
            destructive=False,
            idempotent=True,
            call=_handler(schemas.LIST, lambda given: _json([found.to_dict() for found in memory.list(**given)])),
        ),
        Tool(
            name="memory_update",
            title="Update a memory",
            description=(
                "Change a memory in place: fields you send are replaced, fields you omit stay, null clears tags, "
                "scope or ttl_secs. At least one field besides id; any other field is an error. Type and source "
                "cannot change. Returns the whole memory with embedding_status (1 searchable by meaning, 0 not yet), "
                'or {"updated": false, "reason": "not_found"}.'
            ),
            input_schema=schemas.UPDATE,
            read_only=False,
            destructive=False,
            idempotent=True,
            call=_handler(schemas.UPDATE, lambda given: _json(memory.update(**given).to_dict()), patch=True),
        ),
        Tool(
            name="memory_link",
            title="Link two memories",
            description=(
                "Relate two memories: from_id relates_to, supersedes or was caused_by to_id. Linking again changes "
                'nothing. Returns {"linked": true}, or {"linked": false, "missing_id"} for an id that does not exist.'
            ),
            input_schema=schemas.EDGE,
            read_only=False,
            destructive=False,
            idempotent=True,
            call=_handler(schemas.EDGE, lambda given: _json(memory.link(**given).to_dict())),
        ),
        Tool(
            name="memory_unlink",
            title="Unlink two memories",
            description=(
                "Remove one relation between two memories; both memories stay. Direction and kind must match, except "
                'that relates_to is symmetric. Returns {"unlinked": true}, or {"unlinked": false} if there is none.'
            ),
            input_schema=schemas.EDGE,
            read_only=False,
            destructive=False,
            idempotent=True,
            call=_handler(schemas.EDGE, lambda given: _json(memory.unlink(**given).to_dict())),
        ),
        Tool(
            name="memory_forget",
            title="Forget a memory",
            description=(
                "Delete a memory for good, with all its relations. For what is wrong or must not be kept; an outdated "
                'memory is better updated or superseded. Returns {"deleted": true}, or {"deleted": false} for an '
                "unknown id."
            ),
            input_schema=schemas.FORGET,
            read_only=False,
            destructive=True,
            idempotent=True,
            call=_handler(schemas.FORGET, lambda given: _json(memory.forget(**given).to_dict())),
        ),
    ]


def _handler(
    schema: dict[str, Any], run: Callable[[dict[str, Any]], str], *, patch: bool = False
) -> Callable[[Any], list[str]]:
    def call(raw: Any) -> list[str]:
        given = arguments.read(schema, raw, patch=patch)
        texts = [run(given.values)]
        if given.unknown:
            texts.append(arguments.warning(schema, given.unknown))
        return texts

    return call


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
