"""Keeping web pages out of a daemon that only this machine's programs should use.

A page from anywhere can make its visitor's browser send requests to this machine, and, by giving its own host name
this machine's address, even read the answers (DNS rebinding). The browser says so in ``Host`` and ``Origin``.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from agent_memory.rest.address import is_loopback
from agent_memory.rest.answers import error

_HOST: Final = re.compile(r"(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<name>[^\[\]:@/\s]+))(?::[0-9]{1,5})?")


class LoopbackGuard:
    """Answers 403 to a request whose ``Host`` does not name this machine, or whose ``Origin`` is another site."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The request to the application, or the refusal."""
        refusal = _refusal(Headers(scope=scope)) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await error(403, refusal)(scope, receive, send)


def _refusal(headers: Headers) -> str | None:
    hosts = headers.getlist("host")
    if len(hosts) > 1 or (hosts and not _names_loopback(hosts[0])):
        return f"the Host header must name this machine: localhost or a loopback address (got {', '.join(hosts)!r:.80})"
    for origin in headers.getlist("origin"):
        scheme, _, site = origin.lower().partition("://")
        if scheme not in ("http", "https") or site not in [host.lower() for host in hosts]:
            return f"requests from other web sites are refused (Origin {origin!r:.80})"
    return None


def _names_loopback(host: str) -> bool:
    match = _HOST.fullmatch(host)
    if match is None:
        return False
    name = (match["name"] or "").lower().removesuffix(".")
    if name == "localhost":
        return True
    try:
        return is_loopback(ipaddress.ip_address(match["v6"] or name))
    except ValueError:
        return False
