"""What a refused request leaves on its connection."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class UnreadBodies:
    """Ends a connection, after the answer, on which the rest of a body could be taken for the next request.

    Who asks for leave to send (``Expect: 100-continue``) and is refused may keep the body to itself, and of a body
    that does not end only a part is read. Any other body that nobody wanted is thrown away by the server.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The request to the application, the answer with ``Connection: close`` where it has to be."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        unread = "expect" in Headers(scope=scope)

        async def receiving() -> Message:
            nonlocal unread
            message = await receive()
            unread = message.get("more_body", False)
            return message

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and unread:
                message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
            await send(message)

        await self._app(scope, receiving, sending)
