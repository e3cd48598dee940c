"""The settings of the portal: flags win over the environment."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Final, NamedTuple

from agent_memory.web.address import Address
from memorizz import serving
from memorizz.errors import ConfigurationError
from memorizz.portal.accounts import Accounts
from memorizz.serving import SHORTEST_TOKEN, Variables

DEFAULT_PORT: Final = 8765
_SESSION_SECONDS: Final = (300, 28_800, 86_400)


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
        given = Variables("MEMORIZZ_UI_", variables)
        address = serving.address(host, port)
        accounts = Accounts.parse(given.text("AUTH_TOKEN"), given.text("AUTH_ACCOUNTS"))
        if not accounts and not (address.is_loopback and public_url is None):
            raise ConfigurationError(
                "a portal that others can reach needs tokens: set MEMORIZZ_UI_AUTH_TOKEN or MEMORIZZ_UI_AUTH_ACCOUNTS"
            )
        public = serving.site(public_url, ("https", "http"))
        return cls(
            address,
            accounts,
            _secret(given.text("SESSION_SECRET")),
            _seconds(given.text("SESSION_SECONDS")),
            bool(given.flag("COOKIE_SECURE")) or (public is not None and public[0] == "https"),
            read_only or bool(given.flag("READ_ONLY")),
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
