"""The settings of the server: flags win over the environment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Final, NamedTuple

from agent_memory.web.address import Address
from agent_memory.web.origin import public_site
from memorizz.errors import ConfigurationError
from memorizz.mcp.access import MAX_REQUEST_BYTES, TENANT_STORES, ApiKeys, Policy, Principal, check_principal
from memorizz.taxonomy import MemoryType

STDIO: Final = "stdio"
HTTP: Final = "streamable-http"
TRANSPORTS: Final = (STDIO, HTTP)
_YES: Final = ("1", "true", "yes", "on")
_NO: Final = ("0", "false", "no", "off")


class ServerSettings(NamedTuple):
    """How the server is reached and what it allows. ``principal`` is who calls over standard streams."""

    transport: str
    policy: Policy
    principal: Principal
    keys: ApiKeys
    address: Address
    path: str
    public_url: str | None
    allow_anonymous: bool
    stateless: bool

    @classmethod
    def resolve(
        cls,
        variables: Mapping[str, str],
        *,
        transport: str | None = None,
        host: str | None = None,
        port: int | None = None,
        path: str | None = None,
        public_url: str | None = None,
        agents: Iterable[str] = (),
        all_agents: bool = False,
        allow_anonymous: bool | None = None,
        allow_writes: bool | None = None,
        stateless: bool | None = None,
        max_request_bytes: int | None = None,
    ) -> ServerSettings:
        """The settings from flags and ``variables``.

        Raises:
            ConfigurationError: One has a value that it cannot have, or HTTP would be open to others.
        """
        given = _Variables(variables)
        chosen = transport or given.text("TRANSPORT") or STDIO
        if chosen not in TRANSPORTS:
            raise ConfigurationError(f"the transport must be one of {', '.join(TRANSPORTS)} (got {chosen!r:.80})")
        http = chosen == HTTP
        named = frozenset(agents) or frozenset(filter(None, map(str.strip, given.text("AGENT_IDS").split(","))))
        writes = given.flag("ALLOW_WRITES") if allow_writes is None else allow_writes
        limit = given.number("MAX_REQUEST_BYTES") if max_request_bytes is None else max_request_bytes
        policy = Policy(
            allow_writes=writes if writes is not None else not http,
            agents=None if all_agents or not (named or http) else named,
            stores=TENANT_STORES if http else frozenset(MemoryType),
            max_bytes=MAX_REQUEST_BYTES if limit is None else limit,
        )
        user = given.text("LOCAL_PRINCIPAL")
        name = check_principal(user, "MEMORIZZ_MCP_SERVER_LOCAL_PRINCIPAL") if user else None
        anonymous = given.flag("ALLOW_ANONYMOUS") if allow_anonymous is None else allow_anonymous
        apart = given.flag("STATELESS_HTTP") if stateless is None else stateless
        number = given.number("PORT") if port is None else port
        settings = cls(
            transport=chosen,
            policy=policy,
            principal=Principal(name),
            keys=ApiKeys.parse(given.text("API_KEYS"), "MEMORIZZ_MCP_SERVER_API_KEYS"),
            address=_address(host or given.text("HOST") or "127.0.0.1", 8766 if number is None else number),
            path=path or given.text("PATH") or "/mcp",
            public_url=public_url or given.text("PUBLIC_URL") or None,
            allow_anonymous=bool(anonymous),
            stateless=bool(apart),
        )
        if http:
            _check_http(settings)
        return settings


class _Variables:
    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    def text(self, name: str) -> str:
        return self._variables.get(f"MEMORIZZ_MCP_SERVER_{name}", "")

    def flag(self, name: str) -> bool | None:
        text = self.text(name).lower()
        if text and text not in (*_YES, *_NO):
            raise ConfigurationError(f"MEMORIZZ_MCP_SERVER_{name} must be true or false (got {text!r:.80})")
        return text in _YES if text else None

    def number(self, name: str) -> int | None:
        text = self.text(name)
        if text and (not text.isdecimal() or len(text) > 12 or int(text) == 0):
            raise ConfigurationError(f"MEMORIZZ_MCP_SERVER_{name} must be a whole number from 1 (got {text!r:.80})")
        return int(text) if text else None


def _address(host: str, port: int) -> Address:
    try:
        ip = ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        raise ConfigurationError(f"--host must be an IP address or localhost (got {host!r:.80})") from None
    if not 0 <= port <= 65_535:
        raise ConfigurationError(f"--port must be from 0 to 65535 (got {port})")
    return Address(ip, port)


def _check_http(settings: ServerSettings) -> None:
    if not settings.keys and not settings.allow_anonymous:
        raise ConfigurationError(
            "over HTTP callers need keys: set MEMORIZZ_MCP_SERVER_API_KEYS, or pass --allow-anonymous for callers "
            "without any"
        )
    if re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", settings.path) is None:
        raise ConfigurationError(f"--http-path must be a path such as /mcp (got {settings.path!r:.80})")
    if settings.public_url is not None:
        try:
            public_site(settings.public_url, ("https",))
        except ValueError as error:
            raise ConfigurationError(f"--public-url {error} (got {settings.public_url!r:.80})") from None
    elif not settings.address.is_loopback:
        raise ConfigurationError(
            f"{settings.address} is open to other machines: tokens and memories need TLS, which a proxy in front of "
            "this server has to provide; name its address with --public-url https://..."
        )
