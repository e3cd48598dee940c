"""Answers: results and refusals as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from agent_memory.domain.bounds import replace_surrogates

WARNING_HEADER = "Agent-Memory-Warning"
_LONGEST_WARNING = 1_000


def result(value: Any, status: int = 200, warning: str | None = None) -> Response:
    """A JSON answer; ``warning`` is about what was ignored in the request."""
    headers = {} if warning is None else {WARNING_HEADER: _as_header(warning)}
    return Response(msgspec.json.encode(value), status, headers, "application/json")


def error(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """The JSON body of every refusal but those of :func:`plain`."""
    # What a client sent and is shown again may be no text that UTF-8 can hold.
    body = msgspec.json.encode({"error": replace_surrogates(message)})
    return Response(body, status, headers, "application/json")


def plain(status: int, message: str) -> Response:
    """A refusal as bare text."""
    return Response(replace_surrogates(message).encode(), status, media_type="text/plain")


def _as_header(text: str) -> str:
    return text.encode("unicode_escape").decode()[:_LONGEST_WARNING]
