"""The seven tools of the typed memory.

Schemas are written by hand and kept to what every client understands: no references, no unions, no nulls.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from agent_memory.domain.bounds import DEFAULT_SEARCH_LIMIT, MAX_CONTENT_BYTES, MAX_LIMIT, MAX_TTL_SECS
from agent_memory.domain.links import MAX_EXPANDED_LINKS, LinkKind
from agent_memory.domain.memory import MemoryType
from agent_memory.mcp import arguments
from agent_memory.mcp.session import Tool
from agent_memory.service.memory import AgentMemory

INSTRUCTIONS: Final = (
    "Persistent, typed memory shared by every agent on this machine. Search it before you decide or ask again; "
    "store decisions, patterns, errors, todos, architecture and constraints as you learn them, one fact each, in "
    "full sentences that make sense without this conversation. When a fact changes, update its memory by id, or "
    "store the new one and link it with kind `supersedes`. Forget only what is wrong: unused memories sink in "
    "ranking by themselves. `scope` keeps projects apart; without one a memory is global."
)

_TYPES: Final = [kind.value for kind in MemoryType]
_KINDS: Final = [kind.value for kind in LinkKind]
_ID: Final = {"type": "integer", "description": "Id of the memory, as search, list or store returned it."}
_TAG_LIST: Final = {"type": "array", "items": {"type": "string"}}
_TTL: Final = {"type": "integer", "minimum": 1, "maximum": MAX_TTL_SECS}
_FILTERS: Final = {
    "type": {"type": "string", "enum": _TYPES, "description": "Only memories of this type. Omit for all types."},
    "tag": {"type": "string", "description": "Only memories with exactly this tag (whole tag, case-sensitive)."},
    "scope": {"type": "string", "description": "Only memories of exactly this scope. Omit for all scopes."},
}
_EXPAND: Final = {
    "type": "boolean",
    "description": f"Attach to each result its linked memories, at most {MAX_EXPANDED_LINKS}, as short summaries.",
}


def _schema(required: Sequence[str], properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


_STORE: Final = _schema(
    ["content", "type"],
    {
        "content": {
            "type": "string",
            "description": f"The text to remember: one self-contained fact, at most {MAX_CONTENT_BYTES} bytes.",
        },
        "type": {"type": "string", "enum": _TYPES, "description": "What kind of fact this is."},
        "tags": {**_TAG_LIST, "description": "Free-form tags to filter by."},
        "source": {"type": "string", "description": "Where it comes from: a tool, a file, a person."},
        "scope": {"type": "string", "description": "Project or area it belongs to. Omit for a global memory."},
        "ttl_secs": {**_TTL, "description": "Seconds until it expires and is deleted. Omit to keep it for good."},
    },
)
_SEARCH: Final = _schema(
    ["query"],
    {
        "query": {
            "type": "string",
            "description": 'Plain language, or FTS5 syntax: "exact phrase", prefix*, AND, OR, NOT.',
        },
        **_FILTERS,
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_LIMIT,
            "description": f"Most results to return, {DEFAULT_SEARCH_LIMIT} if omitted.",
        },
        "expand_links": _EXPAND,
    },
)
_LIST: Final = _schema(
    [],
    {
        **_FILTERS,
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_LIMIT,
            "description": "Most results to return; all if omitted. Required with expand_links.",
        },
        "expand_links": _EXPAND,
    },
)
_UPDATE: Final = _schema(
    ["id"],
    {
        "id": _ID,
        "content": {"type": "string", "description": "New text, replacing the old. Never null or empty."},
        "tags": {**_TAG_LIST, "description": "New tags, replacing the whole list; null or [] clears it."},
        "scope": {"type": "string", "description": "New scope; null makes the memory global."},
        "ttl_secs": {**_TTL, "description": "New time to live in seconds from now; null removes the expiry."},
    },
)
_EDGE: Final = _schema(
    ["from_id", "to_id", "kind"],
    {
        "from_id": {"type": "integer", "description": "Id of the memory the relation starts at."},
        "to_id": {"type": "integer", "description": "Id of the memory the relation points to."},
        "kind": {
            "type": "string",
            "enum": _KINDS,
            "description": "relates_to (symmetric), supersedes (from replaces to), caused_by (from was caused by to).",
        },
    },
)
_FORGET: Final = _schema(["id"], {"id": _ID})


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
            input_schema=_STORE,
            read_only=False,
            destructive=False,
            idempotent=False,
            call=_handler(_STORE, lambda given: str(memory.store(**given))),
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
            input_schema=_SEARCH,
            read_only=True,
            destructive=False,
            idempotent=True,
            call=_handler(_SEARCH, lambda given: _json(memory.search(**given).to_dict())),
        ),
        Tool(
            name="memory_list",
            title="List memories",
            description=(
                "List memories newest first, filtered by type, tag or scope. Returns a JSON array. Without a limit "
                "it returns every memory, so pass one. To answer a question use memory_search."
            ),
            input_schema=_LIST,
            read_only=True,
            destructive=False,
            idempotent=True,
            call=_handler(_LIST, lambda given: _json([found.to_dict() for found in memory.list(**given)])),
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
            input_schema=_UPDATE,
            read_only=False,
            destructive=False,
            idempotent=True,
            call=_handler(_UPDATE, lambda given: _json(memory.update(**given).to_dict()), patch=True),
        ),
        Tool(
            name="memory_link",
            title="Link two memories",
            description=(
                "Relate two memories: from_id relates_to, supersedes or was caused_by to_id. Linking again changes "
                'nothing. Returns {"linked": true}, or {"linked": false, "missing_id"} for an id that does not exist.'
            ),
            input_schema=_EDGE,
            read_only=False,
            destructive=False,
            idempotent=True,
            call=_handler(_EDGE, lambda given: _json(memory.link(**given).to_dict())),
        ),
        Tool(
            name="memory_unlink",
            title="Unlink two memories",
            description=(
                "Remove one relation between two memories; both memories stay. Direction and kind must match, except "
                'that relates_to is symmetric. Returns {"unlinked": true}, or {"unlinked": false} if there is none.'
            ),
            input_schema=_EDGE,
            read_only=False,
            destructive=False,
            idempotent=True,
            call=_handler(_EDGE, lambda given: _json(memory.unlink(**given).to_dict())),
        ),
        Tool(
            name="memory_forget",
            title="Forget a memory",
            description=(
                "Delete a memory for good, with all its relations. For what is wrong or must not be kept; an outdated "
                'memory is better updated or superseded. Returns {"deleted": true}, or {"deleted": false} for an '
                "unknown id."
            ),
            input_schema=_FORGET,
            read_only=False,
            destructive=True,
            idempotent=True,
            call=_handler(_FORGET, lambda given: _json(memory.forget(**given).to_dict())),
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
