"""Who calls, and what the server lets callers do."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from memorizz.errors import ConfigurationError
from memorizz.serving import Tokens, is_token, json_object
from memorizz.taxonomy import USER_STORES, MemoryType

READ: Final = "memorizz:read"
WRITE: Final = "memorizz:write"
EXECUTE: Final = "memorizz:execute"
SCOPES: Final = (READ, WRITE, EXECUTE)

TENANT_STORES: Final = USER_STORES - {MemoryType.SKILLBOX}
"""The stores that travel over a network: those whose records belong to users, but for skills."""

MAX_REQUEST_BYTES: Final = 4 * 1024 * 1024
_PRINCIPAL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@-]{0,127}")


class Principal(NamedTuple):
    """A caller. Its ``name`` is the user whose records it sees; ``None`` sees those of nobody."""

    name: str | None
    scopes: frozenset[str] = frozenset(SCOPES)


class Policy(NamedTuple):
    """What a server does for its callers.

    ``agents`` are the agents whose records may be seen, ``None`` stands for all. ``max_bytes`` bounds an archive in a
    request or an answer.
    """

    allow_writes: bool = True
    agents: frozenset[str] | None = None
    stores: frozenset[MemoryType] = frozenset(MemoryType)
    max_bytes: int = MAX_REQUEST_BYTES


def api_keys(text: str, name: str) -> Tokens[Principal]:
    """The keys that a JSON object from principal to token, or to ``{token, scopes}``, describes.

    ``name`` is the setting it comes from; no message shows a token.

    Raises:
        ConfigurationError: It describes none.
    """
    keys: dict[str, Principal] = {}
    for principal, value in json_object(text, name, "from principal to token").items():
        token, scopes = _key(name, principal, value)
        if token in keys:
            raise ConfigurationError(f"{name}: the token of {principal!r} is that of another principal too")
        keys[token] = Principal(principal, scopes)
    return Tokens(keys)


def check_principal(name: str, origin: str) -> str:
    """``name``, if a principal may be called so.

    Raises:
        ConfigurationError: It may not.
    """
    if not _PRINCIPAL.fullmatch(name):
        raise ConfigurationError(
            f"{origin}: a principal is a letter or digit and up to 127 letters, digits or _ . : @ - (got {name!r:.80})"
        )
    return name


def _key(name: str, principal: str, value: Any) -> tuple[str, frozenset[str]]:
    check_principal(principal, name)
    entry = {"token": value} if isinstance(value, str) else value
    if not isinstance(entry, dict) or set(entry) - {"token", "scopes"}:
        raise ConfigurationError(f"{name}: {principal!r} needs a token, or an object with token and scopes")
    token, scopes = entry.get("token"), entry.get("scopes", list(SCOPES))
    if not isinstance(token, str) or not is_token(token):
        raise ConfigurationError(f"{name}: the token of {principal!r} must have at least 16 characters and no space")
    if not isinstance(scopes, list) or not all(isinstance(scope, str) for scope in scopes):
        raise ConfigurationError(f"{name}: the scopes of {principal!r} must be a list of texts")
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or READ not in scopes:
        wrong = f"no scope is called {unknown[0]!r}" if unknown else f"{READ} is missing"
        raise ConfigurationError(f"{name}: scopes of {principal!r}: {wrong}; they are {', '.join(SCOPES)}")
    return token, frozenset(scopes)
