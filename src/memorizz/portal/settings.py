"""The settings of the portal: flags win over the environment."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final, NamedTuple

from agent_memory.web.address import Address
from agent_memory.web.origin import public_site
from memorizz.errors import ConfigurationError
from memorizz.portal.accounts import SHORTEST_TOKEN, Accounts

DEFAULT_PORT: Final = 8765
_SESSION_SECONDS: Final = (300, 28_800, 86_400)
_YES: Final = ("1", "true", "yes", "on")
_NO: Final = ("0", "false", "no", "off")


class PortalSettings(NamedTuple):
    """How the portal is reached and by whom. ``trusted`` are the hosts of a proxy in front, in lower case."""

    address: Address
    accounts: Accounts
    secret: bytes
    session_seconds: int
    cookie_secure: bool
    read_only: bool
    trusted: frozenset[str]

    @classmethod
    def resolve(
        cls,
        variables: Mapping[str, str],
        *,
        host: str = "127.0.0.1",
        port: int = DEFAULT_PORT,
        public_url: str | None = None,
        read_only: bool = False,
    ) -> PortalSettings:
        """The settings from flags and ``variables``.

        Raises:
            ConfigurationError: One has a value that it cannot have, or other machines could come in without a token.
        """

        def text(name: str) -> str:
            return variables.get(f"MEMORIZZ_UI_{name}", "")

        def flag(name: str) -> bool:
            value = text(name).lower()
            if value and value not in (*_YES, *_NO):
                raise ConfigurationError(f"MEMORIZZ_UI_{name} must be true or false (got {value!r:.80})")
            return value in _YES

        try:
            address = Address(ip_address("127.0.0.1" if host == "localhost" else host), port)
        except ValueError:
            raise ConfigurationError(f"--host must be an IP address or localhost (got {host!r:.80})") from None
        accounts = Accounts.parse(text("AUTH_TOKEN"), text("AUTH_ACCOUNTS"))
        if not accounts and not (address.is_loopback and public_url is None):
            raise ConfigurationError(
                "a portal that others can reach needs tokens: set MEMORIZZ_UI_AUTH_TOKEN or MEMORIZZ_UI_AUTH_ACCOUNTS"
            )
        try:
            public = None if public_url is None else public_site(public_url, ("https", "http"))
        except ValueError as error:
            raise ConfigurationError(f"--public-url {error} (got {public_url!r:.80})") from None
        return cls(
            address,
            accounts,
            _secret(text("SESSION_SECRET")),
            _seconds(text("SESSION_SECONDS")),
            flag("COOKIE_SECURE") or (public is not None and public[0] == "https"),
            read_only or flag("READ_ONLY"),
            frozenset() if public is None else frozenset({public[1]}),
        )


def _secret(text: str) -> bytes:
    if text and len(text) < SHORTEST_TOKEN:
        raise ConfigurationError(f"MEMORIZZ_UI_SESSION_SECRET must have at least {SHORTEST_TOKEN} characters")
    return text.encode() or secrets.token_bytes(32)


def _seconds(text: str) -> int:
    least, usual, most = _SESSION_SECONDS
    if not text:
        return usual
    if not (text.isdecimal() and len(text) < 9 and least <= int(text) <= most):
        raise ConfigurationError(
            f"MEMORIZZ_UI_SESSION_SECONDS must be a whole number from {least} to {most} (got {text!r:.80})"
        )
    return int(text)
