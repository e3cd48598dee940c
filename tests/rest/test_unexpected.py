"""An error that nobody foresaw: the client learns that there is one, the log which."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import agent_memory
from agent_memory.embed.ollama import OllamaEmbedder
from agent_memory.rest.application import application
from tests.support.ollama import NOBODY


class Surprising(OllamaEmbedder):
    """Fails in a way that no embedder should."""

    def health(self) -> Any:
        raise ZeroDivisionError("the secret detail")


def test_an_unexpected_error_is_a_500_without_detail_and_goes_on_to_the_log(db: Path) -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "GET", "path": "/health", "raw_path": b"/health", "query_string": b"",
        "headers": [(b"host", b"localhost")], "http_version": "1.1", "scheme": "http", "root_path": "",
    }  # fmt: skip
    # What leaves the application is what uvicorn logs with its traceback.
    with (
        agent_memory.open(db, embedder=Surprising(NOBODY)) as memory,
        pytest.raises(ZeroDivisionError, match="the secret detail"),
    ):
        asyncio.run(application(memory, guarded=True)(scope, receive, send))
    start, body = sent
    assert start["status"] == 500
    assert dict(start["headers"])[b"content-type"] == b"application/json"
    assert json.loads(body["body"]) == {"error": "internal error (details are in the server log)"}
