"""The OpenAPI 3.1 document, made of the table of routes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from agent_memory._version import __version__
from agent_memory.domain.links import LinkKind
from agent_memory.domain.memory import MemoryType
from agent_memory.operations import schemas
from agent_memory.rest.answers import WARNING_HEADER

if TYPE_CHECKING:
    from agent_memory.rest.routes import Operation

_INTEGER: Final = {"type": "integer"}
_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_TYPE: Final = {"type": "string", "enum": [kind.value for kind in MemoryType]}
_KIND: Final = {"type": "string", "enum": [kind.value for kind in LinkKind]}
_ID: Final = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}
_WARNING: Final = {"description": "Names parameters that were ignored as unknown.", "schema": _TEXT}
_KINDS_SEEN: Final = ["relates_to", "supersedes", "superseded_by", "caused_by", "caused"]


def document(table: Sequence[Operation]) -> dict[str, Any]:
    """The document for the operations of ``table``."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in table:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "agent-memory",
            "version": __version__,
            "summary": "Typed memory for AI agents.",
            "description": "Unauthenticated; for programs of this machine. See /docs for the same as a page.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": _COMPONENTS},
    }


def _operation(operation: Operation) -> dict[str, Any]:
    parameters = [_in_path(name) for name in re.findall(r"\{(\w+)\}", operation.path)]
    if operation.query is not None:
        parameters += [
            {"name": name, "in": "query", "required": False, "description": rule["description"],
             "schema": _without(rule, "description")}
            for name, rule in operation.query["properties"].items()
        ]  # fmt: skip
    described: dict[str, Any] = {
        "operationId": operation.id,
        "summary": operation.summary,
        "responses": {str(status): _answer(*said) for status, said in _answers(operation).items()},
    }
    if operation.ignores_unknown:
        for status in operation.answers:
            described["responses"][str(status)]["headers"] = {WARNING_HEADER: _WARNING}
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        described["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _request(operation.body)}},
        }
    return described


def _answers(operation: Operation) -> dict[int, tuple[str, str, str]]:
    """For each status: what it means, its media type and its schema."""
    said = {status: (_MEANINGS[schema], _JSON, schema) for status, schema in operation.answers.items()}
    said[403] = ("The Host or Origin header names another site.", _JSON, "Error")
    if operation.path != "/health":
        said[400] = ("A value is out of its bounds or has the wrong form; `error` names it.", _JSON, "Error")
    if operation.body is not None:
        kind = (_PLAIN, "") if operation.plain_rejections else (_JSON, "Error")
        said[413] = ("The body has more than 2 MiB.", *kind)
    if operation.plain_rejections:
        said[400] = ("JSON: a value is out of its bounds. Plain text: the body is not JSON.", _EITHER, "Error")
        said[415] = ("The header `Content-Type: application/json` is missing.", _PLAIN, "")
        said[422] = ("A member is missing or of the wrong type.", _PLAIN, "")
    said[500] = ("The memory failed; the details are in the server's log.", _JSON, "Error")
    return dict(sorted(said.items()))


_JSON: Final = "application/json"
_PLAIN: Final = "text/plain"
_EITHER: Final = "either"


def _answer(meaning: str, media_type: str, schema: str) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if media_type in (_JSON, _EITHER):
        content[_JSON] = {"schema": {"$ref": f"#/components/schemas/{schema}"}}
    if media_type in (_PLAIN, _EITHER):
        content[_PLAIN] = {"schema": _TEXT}
    return {"description": meaning, "content": content}


def _in_path(name: str) -> dict[str, Any]:
    rule = _KIND if name == "kind" else _ID
    described = {**schemas.FORGET["properties"], **schemas.EDGE["properties"]}[name]["description"]
    return {"name": name, "in": "path", "required": True, "description": described, "schema": rule}


def _request(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a body: what is optional may be null, but for a patch's content."""
    properties = {
        name: rule if name in schema["required"] or name == "content" else _or_null(rule)
        for name, rule in schema["properties"].items()
    }
    described = {"type": "object", "properties": properties, "required": schema["required"]}
    if not schema["required"]:
        described["additionalProperties"] = False
        described["minProperties"] = 1
    return described


def _or_null(rule: Mapping[str, Any]) -> dict[str, Any]:
    nullable = {**rule, "type": [rule["type"], "null"]}
    if "enum" in rule:
        nullable["enum"] = [*rule["enum"], None]
    return nullable


def _without(rule: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in rule.items() if key != name}


def _object(properties: Mapping[str, Any], optional: Sequence[str] = ()) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}


_NOT_FOUND: Final = {"reason": {"const": "not_found"}}
_EDGE: Final = {"from_id": _ID, "to_id": _ID, "kind": _KIND}
_MEMORY: Final = {
    "id": _ID,
    "content": _TEXT,
    "type": _TYPE,
    "tags": _TEXTS,
    "scope": {"type": ["string", "null"]},
    "decay_score": {"type": "number", "minimum": 0, "maximum": 1},
    "created_at": _INTEGER,
    "last_accessed": _INTEGER,
}
_RELATED: Final = _object(
    {
        "id": _ID,
        "kind": {"type": "string", "enum": _KINDS_SEEN},
        "direction": {"type": "string", "enum": ["out", "in"]},
        "type": _TYPE,
        "snippet": _TEXT,
        "tags": _TEXTS,
    }
)
_FOUND: Final = _object(
    {**_MEMORY, "related": {"type": "array", "items": {"$ref": "#/components/schemas/Related"}}}, ["related"]
)
_COMPONENTS: Final = {
    "Stored": _object({"id": _ID}),
    "Related": _RELATED,
    "Memory": _FOUND,
    "Memories": {"type": "array", "items": {"$ref": "#/components/schemas/Memory"}},
    "SearchAnswer": _object(
        {
            "search_mode": {"type": "string", "enum": ["hybrid", "keyword"]},
            "results": {"type": "array", "items": {"$ref": "#/components/schemas/Memory"}},
        }
    ),
    "UpdatedMemory": _object({**_MEMORY, "embedding_status": {"type": "integer", "enum": [0, 1]}}),
    "NotUpdated": _object({"id": _ID, "updated": {"const": False}, **_NOT_FOUND}),
    "Deleted": _object({"id": _ID, "deleted": {"const": True}}),
    "NotDeleted": _object({"id": _ID, "deleted": {"const": False}, **_NOT_FOUND}),
    "Linked": _object({**_EDGE, "linked": {"const": True}}),
    "NotLinked": _object({**_EDGE, "linked": {"const": False}, **_NOT_FOUND, "missing_id": _ID}),
    "Unlinked": _object({**_EDGE, "unlinked": {"const": True}}),
    "NotUnlinked": _object({**_EDGE, "unlinked": {"const": False}, **_NOT_FOUND}),
    "Health": _object(
        {
            "status": {"const": "ok"},
            "embedder": {"type": "string", "enum": ["ready", "model_missing", "unreachable"]},
        }
    ),
    "Error": _object({"error": _TEXT}),
}
_MEANINGS: Final = {
    "Stored": "The id of the new memory.",
    "Memories": "The memories.",
    "SearchAnswer": "The memories found, and the mode that ran.",
    "UpdatedMemory": "The whole memory after the change.",
    "NotUpdated": "No memory has that id.",
    "Deleted": "The memory is gone.",
    "NotDeleted": "No memory has that id.",
    "Linked": "The relation exists.",
    "NotLinked": "No memory has the id `missing_id`.",
    "Unlinked": "The relation is gone.",
    "NotUnlinked": "There is no such relation.",
    "Health": "The memory can be read; `embedder` says whether search by meaning works.",
}
