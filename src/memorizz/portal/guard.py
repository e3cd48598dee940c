"""What every request passes before it reaches a page: who sends it, from where, and whether it may."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_memory.web.origin import refusal
from memorizz.portal.accounts import LOCAL_ADMIN, Account, Sessions
from memorizz.portal.settings import PortalSettings

Refuse = Callable[[Request, int, str], Response]

_PUBLIC: Final = ("/login", "/static/")
_OPEN_TO_ALL: Final = ("/traces", "/logout")
_SAFE: Final = ("GET", "HEAD")
# Whether one of these writes, the page behind it decides.
_NO_WRITES: Final = ("/login", "/logout", "/connect", "/api/memory-transfer/import")
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Guard:
    """Lets a request through with its account in ``scope["account"]``, or answers it."""

    def __init__(self, app: ASGIApp, *, settings: PortalSettings, sessions: Sessions, refuse: Refuse) -> None:
        self._app = app
        self._settings = settings
        self._sessions = sessions
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The request to the pages, or a refusal; either with the headers that keep browsers safe."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if not scope["path"].startswith("/static/"):
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        answer = self._answer(scope, receive)
        await (self._app if answer is None else answer)(scope, receive, sending)

    def _answer(self, scope: Scope, receive: Receive) -> Response | None:
        request = Request(scope, receive)
        path, method = scope["path"], scope["method"]
        # A name that an attacker gave this machine carries no cookie and no token.
        any_host = bool(self._settings.accounts)
        refused = refusal(request.headers, trusted=self._settings.trusted, any_host=any_host)
        if refused is not None:
            return self._refuse(request, 403, refused)
        account = self._account(request)
        scope["account"] = account
        if path.startswith(_PUBLIC):
            return None
        if account is None:
            return self._unknown(request)
        if account.restricted and not _is_within(path, _OPEN_TO_ALL):
            return self._refuse(
                request, 403, f"the account {account.name} sees traces only: memory values need an administrator"
            )
        if self._settings.read_only and method not in _SAFE and path not in _NO_WRITES:
            return self._refuse(request, 403, "this portal is read-only")
        return None

    def _account(self, request: HTTPConnection) -> Account | None:
        if not self._settings.accounts:
            return LOCAL_ADMIN
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            found = self._settings.accounts.match(token.strip())
            return None if found is None else found[1]
        cookie = request.cookies.get(Sessions.COOKIE)
        return None if cookie is None else self._sessions.read(cookie, time.time())

    def _unknown(self, request: Request) -> Response:
        if request.url.path.startswith("/api/") or "authorization" in request.headers:
            answer = self._refuse(request, 401, "a valid token is needed")
            answer.headers["WWW-Authenticate"] = "Bearer"
            return answer
        # As it was sent: what is decoded once may read as another address.
        wanted = request.scope["raw_path"].decode() + (f"?{request.url.query}" if request.url.query else "")
        target = f"/login?next={quote(wanted)}" if request.method in _SAFE else "/login"
        return RedirectResponse(target, 303)


def _is_within(path: str, prefixes: tuple[str, ...]) -> bool:
    return any(path == prefix or path.startswith(f"{prefix}/") for prefix in prefixes)
