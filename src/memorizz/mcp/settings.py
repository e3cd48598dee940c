"""The settings of the server: flags win over the environment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from agent_memory.web.address import Address
from memorizz import serving
from memorizz.errors import ConfigurationError
from memorizz.mcp.access import MAX_REQUEST_BYTES, TENANT_STORES, Policy, Principal, api_keys, check_principal
from memorizz.serving import Tokens, Variables
from memorizz.taxonomy import MemoryType

STDIO: Final = "stdio"
HTTP: Final = "streamable-http"
TRANSPORTS: Final = (STDIO, HTTP)
PREFIX: Final = "MEMORIZZ_MCP_SERVER_"


class ServerSettings(NamedTuple):
    """How the server is reached and what it allows. ``principal`` is who calls over standard streams."""

    transport: str
    policy: Policy
    principal: Principal
    keys: Tokens[Principal]
    address: Address
    path: str
    public_host: str | None
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
        given = Variables(PREFIX, variables)
        chosen = transport or given.text("TRANSPORT") or STDIO
        if chosen not in TRANSPORTS:
            raise ConfigurationError(f"the transport must be one of {', '.join(TRANSPORTS)} (got {chosen!r:.80})")
        http = chosen == HTTP
        named = frozenset(agents) or frozenset(filter(None, map(str.strip, given.text("AGENT_IDS").split(","))))
        writes = given.flag("ALLOW_WRITES") if allow_writes is None else allow_writes
        limit = _number(given, "MAX_REQUEST_BYTES") if max_request_bytes is None else max_request_bytes
        policy = Policy(
            allow_writes=writes if writes is not None else not http,
            agents=None if all_agents or not (named or http) else named,
            stores=TENANT_STORES if http else frozenset(MemoryType),
            max_bytes=MAX_REQUEST_BYTES if limit is None else limit,
        )
        user = given.text("LOCAL_PRINCIPAL")
        name = check_principal(user, f"{PREFIX}LOCAL_PRINCIPAL") if user else None
        anonymous = given.flag("ALLOW_ANONYMOUS") if allow_anonymous is None else allow_anonymous
        apart = given.flag("STATELESS_HTTP") if stateless is None else stateless
        number = _number(given, "PORT") if port is None else port
        public = serving.site((public_url or given.text("PUBLIC_URL") or None) if http else None, ("https",))
        settings = cls(
            transport=chosen,
            policy=policy,
            principal=Principal(name),
            keys=api_keys(given.text("API_KEYS"), f"{PREFIX}API_KEYS"),
            address=serving.address(host or given.text("HOST") or "127.0.0.1", 8766 if number is None else number),
            path=path or given.text("PATH") or "/mcp",
            public_host=None if public is None else public[1],
            allow_anonymous=bool(anonymous),
            stateless=bool(apart),
        )
        if http:
            _check_http(settings)
        return settings


def _number(given: Variables, name: str) -> int | None:
    text = given.text(name)
    if text and (not text.isdecimal() or len(text) > 12 or int(text) == 0):
        raise ConfigurationError(f"{PREFIX}{name} must be a whole number from 1 (got {text!r:.80})")
    return int(text) if text else None


def _check_http(settings: ServerSettings) -> None:
    if not settings.keys and not settings.allow_anonymous:
        raise ConfigurationError(
            "over HTTP callers need keys: set MEMORIZZ_MCP_SERVER_API_KEYS, or pass --allow-anonymous for callers "
            "without any"
        )
    if re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", settings.path) is None:
        raise ConfigurationError(f"--http-path must be a path such as /mcp (got {settings.path!r:.80})")
    if settings.public_host is None and not settings.address.is_loopback:
        raise ConfigurationError(
            f"{settings.address} is open to other machines: tokens and memories need TLS, which a proxy in front of "
            "this server has to provide; name its address with --public-url https://..."
        )
