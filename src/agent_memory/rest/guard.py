"""Keeping web pages out of a daemon that only this machine's programs should use."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from agent_memory.rest.answers import error
from agent_memory.web.origin import refusal


class LoopbackGuard:
    """Answers 403 to a request whose ``Host`` does not name this machine, or whose ``Origin`` is another site."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The request to the application, or the refusal."""
        refused = refusal(Headers(scope=scope)) if scope["type"] == "http" else None
        if refused is None:
            await self._app(scope, receive, send)
        else:
            await error(403, refused)(scope, receive, send)
