"""The pages and their addresses, as one ASGI application."""

from __future__ import annotations

import logging
from typing import Any, Final, NamedTuple

from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from agent_memory.errors import AgentMemoryError
from agent_memory.web.unread import UnreadBodies
from memorizz.errors import ConfigurationError, ProviderFault
from memorizz.portal import entrance, evolution, explorer, home, memories, playground, transfer
from memorizz.portal.guard import HEADERS, Guard
from memorizz.portal.web import FORM_BYTES, HERE, Page, Portal, Refused, endpoint

log = logging.getLogger(__name__)


class _Text(Convertor[str]):
    """Any text in an address: ids of agents may hold slashes and line breaks."""

    regex = r"(?s:.+)"

    def convert(self, value: str) -> str:
        """As it is."""
        return value

    def to_string(self, value: str) -> str:
        """As it is."""
        return value


register_url_convertor("text", _Text())


class Address(NamedTuple):
    """One address: its path, what answers a GET, what answers a POST, and how large the body of that may be."""

    path: str
    get: Page | None = None
    post: Page | None = None
    limit: int = FORM_BYTES


ADDRESSES: Final = (
    Address("/", home.show),
    Address("/login", entrance.show_login, entrance.log_in),
    Address("/logout", post=entrance.log_out),
    Address("/connect", entrance.show_connection, entrance.connect),
    Address("/memory", explorer.show_types),
    Address("/memory/{slug}", explorer.show_store),
    Address("/memory/{slug}/record", explorer.show_record),
    Address("/memory-transfer", transfer.show),
    Address("/api/memory-transfer/export", transfer.export),
    Address("/api/memory-transfer/import", post=transfer.restore, limit=transfer.LARGEST_BODY),
    Address("/traces/memory-evolution", evolution.show),
    Address("/agents", playground.show_agents),
    Address("/agents/{agent:text}/playground", playground.show),
    Address("/memories", memories.show),
    Address("/memories/new", post=memories.store),
    Address("/memories/{id}", memories.show_one, memories.update),
    Address("/memories/{id}/link", post=memories.link),
    Address("/memories/{id}/unlink", post=memories.unlink),
    Address("/memories/{id}/forget", post=memories.forget),
)
"""Every address of the portal; static files are beside them."""


def application(portal: Portal) -> Starlette:
    """The portal as an ASGI application."""

    async def on_error(request: Request, error: Any) -> Response:
        if isinstance(error, ProviderFault):
            log.error("%s failed: %s", request.url.path, error)
            return portal.refuse(request, 500, "the storage failed (details are in the server log)")
        is_lost = isinstance(error, ConfigurationError) and portal.connection.target is None
        # Who may not choose a memory is told that there is none.
        if is_lost and _is_page(request) and not request.scope["account"].restricted:
            return RedirectResponse("/connect", 302)
        return portal.refuse(request, error.http_status, str(error))

    async def on_refused(request: Request, error: Any) -> Response:
        return portal.refuse(request, error.status, str(error))

    async def on_http(request: Request, error: Any) -> Response:
        said = {404: "there is no such page", 405: f"{request.method} does not go with this address"}
        answer = portal.refuse(request, error.status_code, said.get(error.status_code, error.detail))
        answer.headers.update(error.headers or {})
        return answer

    async def on_disconnect(request: Request, _error: Any) -> Response:
        # Nobody is there to read it, but a browser that leaves is nothing for the log.
        return portal.refuse(request, 400, "the request ended before its body did")

    async def on_unexpected(request: Request, _error: Any) -> Response:
        answer = portal.refuse(request, 500, "something unexpected went wrong (details are in the server log)")
        # It does not pass the guard.
        answer.headers.update({**HEADERS, "Cache-Control": "no-store"})
        return answer

    made = Starlette(
        routes=[
            *(_route(portal, address) for address in ADDRESSES),
            Mount("/static", StaticFiles(directory=HERE / "static")),
        ],
        middleware=[
            Middleware(UnreadBodies),
            Middleware(Guard, settings=portal.settings, sessions=portal.sessions, refuse=portal.refuse),
        ],
        exception_handlers={
            AgentMemoryError: on_error,
            Refused: on_refused,
            HTTPException: on_http,
            ClientDisconnect: on_disconnect,
            Exception: on_unexpected,
        },
    )
    # The address to go to would name this machine, and no TLS: wrong behind a proxy.
    made.router.redirect_slashes = False
    return made


def _route(portal: Portal, address: Address) -> Route:
    pages = {"GET": address.get, "POST": address.post}
    endpoints = {method: endpoint(portal, page, address.limit) for method, page in pages.items() if page is not None}

    async def answer(request: Request) -> Response:
        answered: Response = await endpoints["GET" if request.method == "HEAD" else request.method](request)
        return answered

    return Route(address.path, answer, methods=list(endpoints))


def _is_page(request: Request) -> bool:
    return request.method in ("GET", "HEAD") and not request.url.path.startswith("/api/")
