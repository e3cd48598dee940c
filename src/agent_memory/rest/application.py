"""The application: the routes, what becomes of errors, and the guard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from agent_memory.errors import AgentMemoryError
from agent_memory.rest import answers, openapi, page
from agent_memory.rest.guard import LoopbackGuard
from agent_memory.rest.requests import Rejection
from agent_memory.rest.routes import Endpoint, Operation, operations
from agent_memory.service.memory import AgentMemory
from agent_memory.web.unread import UnreadBodies

# A request may wait ten seconds for the embedder; others must not wait for it.
_THREADS: Final = 128


def application(memory: AgentMemory, *, guarded: bool) -> Starlette:
    """The REST API over ``memory``; ``guarded`` against web pages, as befits a loopback address."""
    table = operations(memory)
    document = openapi.document(table)
    described = answers.result(document)
    shown = page.page(document)

    async def show_document(request: Request) -> Response:  # noqa: ARG001
        return described

    async def show_page(request: Request) -> Response:  # noqa: ARG001
        return shown

    app = Starlette(
        routes=[
            *_routes(table),
            Route("/openapi.json", show_document),
            Route("/docs", show_page),
        ],
        middleware=[Middleware(UnreadBodies), *([Middleware(LoopbackGuard)] if guarded else [])],
        exception_handlers=_HANDLERS,
        lifespan=_lifespan,
    )
    app.router.redirect_slashes = False
    return app


def _routes(table: Sequence[Operation]) -> Iterator[Route]:
    """One route for each path: only so does the 405 name all methods of it."""
    methods: dict[str, dict[str, Endpoint]] = {}
    for operation in table:
        methods.setdefault(operation.path, {})[operation.method] = operation.endpoint
    for path, endpoints in methods.items():
        yield Route(path, _by_method(endpoints), methods=list(endpoints))


def _by_method(endpoints: Mapping[str, Endpoint]) -> Endpoint:
    async def answer(request: Request) -> Response:
        return await endpoints["GET" if request.method == "HEAD" else request.method](request)

    return answer


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:  # noqa: ARG001
    anyio.to_thread.current_default_thread_limiter().total_tokens = _THREADS
    yield


async def _on_error(request: Request, error: Any) -> Response:  # noqa: ARG001
    return answers.error(error.http_status, str(error))


async def _on_rejection(request: Request, rejection: Any) -> Response:  # noqa: ARG001
    # Where refusals are JSON, a body that cannot be read is a bad request whatever is wrong with it, unless it is
    # too large.
    return answers.error(413 if rejection.status == 413 else 400, rejection.message)


async def _on_http(request: Request, error: Any) -> Response:
    if error.status_code == 405:
        message = f"{request.method} is not a method of {request.url.path}"
    else:
        message = f"there is nothing at {request.url.path}" if error.status_code == 404 else str(error.detail)
    return answers.error(error.status_code, message, error.headers)


async def _on_disconnect(request: Request, error: Any) -> Response:  # noqa: ARG001
    # Nobody is there to read it, but a client that hangs up is nothing for the log.
    return answers.error(400, "the request ended before its body did")


async def _on_unexpected(request: Request, error: Exception) -> Response:  # noqa: ARG001
    # The server logs what it was.
    return answers.error(500, "internal error (details are in the server log)")


_HANDLERS: Final[dict[Any, Any]] = {
    AgentMemoryError: _on_error,
    Rejection: _on_rejection,
    HTTPException: _on_http,
    ClientDisconnect: _on_disconnect,
    Exception: _on_unexpected,
}
