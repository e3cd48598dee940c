"""The parameters of every operation, described once for the doors that take them as JSON.

Written by hand and kept to what every client understands: no references, no unions, no nulls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from agent_memory.domain.bounds import DEFAULT_SEARCH_LIMIT, MAX_CONTENT_BYTES, MAX_LIMIT, MAX_TTL_SECS
from agent_memory.domain.links import MAX_EXPANDED_LINKS, LinkKind
from agent_memory.domain.memory import MemoryType

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


STORE: Final = _schema(
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
SEARCH: Final = _schema(
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
LIST: Final = _schema(
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
UPDATE: Final = _schema(
    ["id"],
    {
        "id": _ID,
        "content": {"type": "string", "description": "New text, replacing the old. Never null or empty."},
        "tags": {**_TAG_LIST, "description": "New tags, replacing the whole list; null or [] clears it."},
        "scope": {"type": "string", "description": "New scope; null makes the memory global."},
        "ttl_secs": {**_TTL, "description": "New time to live in seconds from now; null removes the expiry."},
    },
)
EDGE: Final = _schema(
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
FORGET: Final = _schema(["id"], {"id": _ID})
