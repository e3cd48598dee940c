"""What pages are made of: the call they answer, templates, and refusals in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from agent_memory._version import __version__
from agent_memory.service.memory import AgentMemory
from memorizz.portal.accounts import Account, Sessions
from memorizz.portal.connection import Connection
from memorizz.portal.reading import STORES, when
from memorizz.portal.settings import PortalSettings

FORM_BYTES: Final = 1 << 20
HERE: Final = Path(__file__).parent


class Refused(Exception):
    """A request that is answered with a status of the 4xx and one sentence."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class Portal(NamedTuple):
    """Everything that pages work on. ``memory`` is the typed memory, where one is configured."""

    settings: PortalSettings
    sessions: Sessions
    connection: Connection
    memory: AgentMemory | None
    templates: Environment

    @classmethod
    def open(cls, settings: PortalSettings, connection: Connection, memory: AgentMemory | None) -> Portal:
        """The portal over a connection."""
        templates = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        templates.globals |= {"stores": STORES, "version": __version__, "when": when}
        templates.filters["short"] = _short
        templates.filters["urlencode"] = _quoted
        sessions = Sessions(settings.accounts, settings.secret, settings.session_seconds)
        return cls(settings, sessions, connection, memory, templates)

    def render(self, request: Request, template: str, status: int = 200, **context: Any) -> HTMLResponse:
        """A page, with what the frame around it needs."""
        account: Account | None = request.scope.get("account")
        around = {
            "account": account,
            "path": request.url.path,
            "target": self.connection.target,
            "read_only": self.settings.read_only,
            "has_memory": self.memory is not None,
            "signed_in": bool(self.settings.accounts) and account is not None,
        }
        page = self.templates.get_template(template).render(**around, **context)
        # A folder, or JSON in a text, may hold lone surrogates, which no page can.
        return HTMLResponse(page.encode(errors="replace"), status)

    def refuse(self, request: Request, status: int, message: str) -> Response:
        """The answer to a request that cannot be served: JSON for programs, a page for people."""
        if request.url.path.startswith("/api/"):
            return JSONResponse({"detail": message}, status)
        phrase = HTTPStatus(status).phrase
        return self.render(request, "refused.html", status, phrase=phrase, message=message)


def _short(place: str | Path) -> str:
    """A path as people write it, with ``~`` for their home."""
    home = f"{Path.home()}/"
    return f"~/{str(place).removeprefix(home)}" if str(place).startswith(home) else str(place)


class Call(NamedTuple):
    """One request to a page, its body read."""

    request: Request
    portal: Portal
    body: bytes

    @property
    def account(self) -> Account:
        """Who asks; the guard has seen to it."""
        account: Account = self.request.scope["account"]
        return account

    def query(self, name: str) -> str | None:
        """A parameter of the address, without spaces around; ``None`` when it is missing or empty."""
        return (self.request.query_params.get(name) or "").strip() or None

    def number(self, name: str, *, least: int = 1, most: int = 1_000_000) -> int:
        """A whole number of the address, ``least`` where it is missing.

        Raises:
            Refused: It is none, or out of bounds.
        """
        value = self.query(name)
        if value is None:
            return least
        if not value.isascii() or not value.isdigit() or len(value) > 12 or not least <= int(value) <= most:
            raise Refused(f"{name} must be a whole number from {least} to {most} (got {value!r:.80})")
        return int(value)

    def flag(self, name: str, usual: bool) -> bool:
        """A flag of the address: the last of its values, ``true`` or ``false``.

        Raises:
            Refused: It is neither.
        """
        values = self.request.query_params.getlist(name)
        if not values:
            return usual
        if values[-1] not in ("true", "false"):
            raise Refused(f"{name} must be true or false (got {values[-1]!r:.80})")
        return values[-1] == "true"

    def form(self) -> Mapping[str, str]:
        """The fields of a posted form, without spaces around; browsers end lines with two characters, this has one.

        Raises:
            Refused: It is none.
        """
        kind = self.request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            raise Refused("the request must be a form (application/x-www-form-urlencoded)", 415)
        try:
            pairs = parse_qsl(self.body.decode(), keep_blank_values=True, errors="strict", max_num_fields=200)
        except ValueError:
            raise Refused("the form is not valid UTF-8, or has too many fields") from None
        return {name: value.strip().replace("\r\n", "\n") for name, value in pairs}

    def render(self, template: str, status: int = 200, **context: Any) -> HTMLResponse:
        """A page."""
        return self.portal.render(self.request, template, status, **context)


Page = Callable[[Call], Response]


def endpoint(portal: Portal, page: Page, limit: int) -> Callable[[Request], Any]:
    """``page`` as a Starlette endpoint that runs beside others. ``limit`` bounds the body, in bytes."""

    async def answer(request: Request) -> Response:
        body = await _body(request, limit)
        return await run_in_threadpool(page, Call(request, portal, body))

    return answer


def _quoted(text: str) -> str:
    """``text`` as one part of an address: a browser takes ``..`` between slashes for the part before it."""
    return quote(text, safe="", errors="replace")


async def _body(request: Request, limit: int) -> bytes:
    declared = request.headers.get("content-length", "0")
    parts: list[bytes] = []
    size = int(declared) if declared.isdecimal() else 0
    if size <= limit:
        size = 0
        async for part in request.stream():
            size += len(part)
            if size > limit:
                break
            parts.append(part)
    if size > limit:
        raise Refused(f"the request body is larger than {limit} bytes, which is the limit", 413)
    return b"".join(parts)
