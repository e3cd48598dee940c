"""Keeping other web sites out of a server that only this machine, or its own pages, should use.

A page from anywhere can make its visitor's browser send requests to this machine, and, by giving its own host name
this machine's address, even read the answers (DNS rebinding). The browser says so in ``Host`` and ``Origin``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Container, Sequence
from typing import Final

from starlette.datastructures import Headers

from agent_memory.web.address import is_loopback

_SITE: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?/?"
)
_HOST: Final = re.compile(r"(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<name>[^\[\]:@/\s]+))(?::[0-9]{1,5})?")


def refusal(headers: Headers, *, trusted: Container[str] = (), any_host: bool = False) -> str | None:
    """Why a request is refused, or ``None``.

    ``Host`` has to name this machine or be one of ``trusted`` (in lower case, with the port where it is not the
    scheme's), unless ``any_host``. ``Origin``, where it is given, has to be the same host, or a trusted one. Schemes
    are not compared: a proxy in front may speak TLS.
    """
    hosts = [host.lower() for host in headers.getlist("host")]
    if len(hosts) > 1 or (hosts and not any_host and not names_loopback(hosts[0]) and hosts[0] not in trusted):
        return f"the Host header must name this machine: localhost or a loopback address (got {', '.join(hosts)!r:.80})"
    for origin in headers.getlist("origin"):
        scheme, _, site = origin.lower().partition("://")
        if scheme not in ("http", "https") or (site not in hosts and site not in trusted):
            return f"requests from other web sites are refused (Origin {origin!r:.80})"
    return None


def public_site(url: str, schemes: Sequence[str]) -> tuple[str, str]:
    """The scheme and host, as a ``Host`` header names it, of a site's URL.

    Raises:
        ValueError: It is no URL of a whole site with one of ``schemes``; the message goes on after its name.
    """
    rule = f"must be the URL of a whole site, such as {schemes[0]}://memory.example.com"
    match = _SITE.fullmatch(url.lower())
    if match is None or match["scheme"] not in schemes or int(match["port"] or 1) > 65_535:
        raise ValueError(rule)
    usual = {"https": "443", "http": "80"}[match["scheme"]]
    port = match["port"]
    return match["scheme"], match["host"] if port in (None, usual) else f"{match['host']}:{port}"


def names_loopback(host: str) -> bool:
    """Whether a ``Host`` header names this machine: ``localhost`` or a loopback address, with any port."""
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
