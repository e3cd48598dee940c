"""Reading requests: bodies, path segments and query parameters, each refused as the contract says for its route."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request

from agent_memory.errors import MalformedParameters, shorten
from agent_memory.operations import arguments
from agent_memory.operations.arguments import Arguments

MAX_BODY_BYTES: Final = 2 * 1024 * 1024
# A client that does not wait for leave sends on; it reads the refusal only when it could send its all.
_MOST_DRAINED: Final = 16 * 1024 * 1024
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,4000}")


class Rejection(Exception):
    """A body that never became parameters: its media type, size or syntax is at fault."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


async def body(request: Request, schema: Mapping[str, Any], *, patch: bool = False) -> Arguments:
    """The parameters in a JSON body.

    Raises:
        Rejection: It is no JSON (400), not declared as JSON (415) or too large (413).
        MalformedParameters: It is JSON of another shape.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json" and not re.fullmatch(r"application/[^/\s]+\+json", media_type):
        raise Rejection(415, "the request must have the header `Content-Type: application/json`")
    content = await _content(request)
    try:
        return arguments.read(schema, _parsed(content), patch=patch, strict=True)
    except RecursionError:
        # Showing a value in a message needs a little more of the stack than reading it did.
        raise Rejection(400, "the request body is not valid JSON: nested too deeply") from None


def integer(request: Request, name: str) -> int:
    """A path segment that is a 64-bit integer.

    Raises:
        MalformedParameters: It is not.
    """
    text = request.path_params[name]
    if _INTEGER.fullmatch(text) and -(2**63) <= int(text) < 2**63:
        return int(text)
    raise MalformedParameters(f"{name}: expected a 64-bit integer, got {shorten(json.dumps(text))}")


def query(request: Request, schema: Mapping[str, Any]) -> Arguments:
    """The parameters in the query string.

    Raises:
        MalformedParameters: One is there twice or is not of its type.
    """
    properties = schema["properties"]
    given: dict[str, Any] = {}
    unknown = []
    for name, text in request.query_params.multi_items():
        if name not in properties:
            unknown.append(name)
            continue
        if name in given:
            raise MalformedParameters(f"duplicate field `{name}`")
        given[name] = _typed(name, text, properties[name]["type"])
    return Arguments(given, tuple(unknown))


def _typed(name: str, text: str, kind: str) -> Any:
    if kind == "integer":
        if not _INTEGER.fullmatch(text):
            raise MalformedParameters(f"{name}: expected an integer, got {shorten(json.dumps(text))}")
        return int(text)
    if kind == "boolean":
        if text not in ("true", "false"):
            raise MalformedParameters(f"{name}: expected true or false, got {shorten(json.dumps(text))}")
        return text == "true"
    return text


async def _content(request: Request) -> bytes:
    declared = request.headers.get("content-length", "")
    too_large = declared.isdecimal() and int(declared) > MAX_BODY_BYTES
    if too_large and "expect" in request.headers:
        raise _too_large()
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        too_large = too_large or size > MAX_BODY_BYTES
        if too_large:
            chunks.clear()
            if size > _MOST_DRAINED:
                break
        else:
            chunks.append(chunk)
    if too_large:
        raise _too_large()
    return b"".join(chunks)


def _too_large() -> Rejection:
    return Rejection(413, f"the request body must be at most {MAX_BODY_BYTES} bytes")


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
    except ValueError as error:
        raise Rejection(400, f"the request body is not valid JSON: {error}") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen = set()
        for name, _ in pairs:
            if name in seen:
                raise MalformedParameters(f"duplicate field `{shorten(name)}`")
            seen.add(name)
    return members
