"""Who calls, and what the server lets callers do."""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from memorizz.errors import ConfigurationError
from memorizz.taxonomy import MemoryType

READ: Final = "memorizz:read"
WRITE: Final = "memorizz:write"
EXECUTE: Final = "memorizz:execute"
SCOPES: Final = (READ, WRITE, EXECUTE)

TENANT_STORES: Final = frozenset(
    {
        MemoryType.CONVERSATION_MEMORY,
        MemoryType.KNOWLEDGE_BASE,
        MemoryType.SHORT_TERM_MEMORY,
        MemoryType.WORKFLOW_MEMORY,
        MemoryType.SUMMARIES,
        MemoryType.SEMANTIC_CACHE,
        MemoryType.ENTITY_MEMORY,
        MemoryType.TOOL_LOG,
    }
)
"""The stores whose records belong to one user each. Only these travel over a network."""

MAX_REQUEST_BYTES: Final = 4 * 1024 * 1024
_PRINCIPAL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@-]{0,127}")
_TOKEN: Final = re.compile(r"\S{16,}")


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


class ApiKeys:
    """Tokens and the principals they stand for."""

    def __init__(self, keys: Mapping[str, Principal]) -> None:
        self._keys = {token.encode(): principal for token, principal in keys.items()}

    def __bool__(self) -> bool:
        return bool(self._keys)

    def __iter__(self) -> Any:
        return iter(self._keys.values())

    @classmethod
    def parse(cls, text: str, name: str) -> ApiKeys:
        """The keys that a JSON object from principal to token, or to ``{token, scopes}``, describes.

        ``name`` is the setting it comes from; no message shows a token.

        Raises:
            ConfigurationError: It describes none.
        """
        if not text:
            return cls({})
        try:
            described = json.loads(text)
        except (ValueError, RecursionError):
            raise ConfigurationError(f"{name} is not valid JSON") from None
        if not isinstance(described, dict):
            raise ConfigurationError(f"{name} must be a JSON object from principal to token")
        keys: dict[str, Principal] = {}
        for principal, value in described.items():
            token, scopes = _key(name, principal, value)
            if token in keys:
                raise ConfigurationError(f"{name}: the token of {principal!r} is that of another principal too")
            keys[token] = Principal(principal, scopes)
        return cls(keys)

    def find(self, token: str) -> Principal | None:
        """The principal of ``token``. How long this takes does not depend on the token."""
        given = token.encode("utf-8", "surrogatepass")
        found = None
        for known, principal in self._keys.items():
            if hmac.compare_digest(known, given):
                found = principal
        return found


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
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise ConfigurationError(f"{name}: the token of {principal!r} must have at least 16 characters and no space")
    if not isinstance(scopes, list) or not all(isinstance(scope, str) for scope in scopes):
        raise ConfigurationError(f"{name}: the scopes of {principal!r} must be a list of texts")
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or READ not in scopes:
        wrong = f"no scope is called {unknown[0]!r}" if unknown else f"{READ} is missing"
        raise ConfigurationError(f"{name}: scopes of {principal!r}: {wrong}; they are {', '.join(SCOPES)}")
    return token, frozenset(scopes)
