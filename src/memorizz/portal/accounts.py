"""Who may use the portal, and the signed cookie that remembers it."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any, Final, NamedTuple

from memorizz.errors import ConfigurationError
from memorizz.serving import SHORTEST_TOKEN, Tokens, is_token, json_object

ROLES: Final = ("viewer", "analyst", "operator", "admin")


class Account(NamedTuple):
    """A person or program. ``application_id`` and ``user_id`` narrow what it sees of the history of changes."""

    name: str
    role: str = "admin"
    application_id: str | None = None
    user_id: str | None = None

    @property
    def restricted(self) -> bool:
        """Whether it sees traces only, never a memory's values: all but administrators of everything."""
        return self.role != "admin" or self.application_id is not None or self.user_id is not None


LOCAL_ADMIN: Final = Account("local")
"""Whoever uses a portal without tokens: only this machine can reach it."""


class Accounts(Tokens[Account]):
    """Accounts by their tokens."""

    @classmethod
    def parse(cls, token: str, described: str) -> Accounts:
        """The local administrator with ``token``, and those of a JSON object from name to token, role and scope.

        Raises:
            ConfigurationError: They are no such thing; no message shows a token.
        """
        tokens: dict[str, Account] = {}
        if token:
            tokens[_token(token, "MEMORIZZ_UI_AUTH_TOKEN")] = LOCAL_ADMIN
        name = "MEMORIZZ_UI_AUTH_ACCOUNTS"
        for person, entry in json_object(described, name, "from name to account").items():
            own, account = _account(name, person, entry)
            if own in tokens:
                raise ConfigurationError(f"{name}: the token of {person!r:.80} is another account's too")
            tokens[own] = account
        return cls(tokens)


class Sessions:
    """Cookies that stand for an account until they expire or its token changes."""

    COOKIE: Final = "memorizz_ui_session"

    def __init__(self, accounts: Accounts, secret: bytes, seconds: int) -> None:
        self._accounts = accounts
        self._secret = secret
        self.seconds = seconds

    def issue(self, token: str, now: float) -> str | None:
        """The cookie for whoever knows ``token``, or ``None``. Times are unix seconds."""
        found = self._accounts.match(token)
        if found is None:
            return None
        payload = f"{int(now) + self.seconds}.{fingerprint(found[0])}"
        return f"{payload}.{self._seal(payload)}"

    def read(self, cookie: str, now: float) -> Account | None:
        """The account a cookie stands for, or ``None`` when it is forged, expired or of a token that changed."""
        payload, _, seal = cookie.rpartition(".")
        if not hmac.compare_digest(seal.encode("utf-8", "surrogatepass"), self._seal(payload).encode()):
            return None
        expires, _, print_ = payload.partition(".")
        if not expires.isascii() or not expires.isdigit() or int(expires) <= now:
            return None
        return next((account for token, account in self._accounts.items() if fingerprint(token) == print_), None)

    def _seal(self, payload: str) -> str:
        digest = hmac.digest(self._secret, payload.encode("utf-8", "surrogatepass"), "sha256")
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def fingerprint(token: bytes) -> str:
    """What a cookie says of a token without giving it away."""
    return hashlib.sha256(b"memorizz session\0" + token).hexdigest()[:32]


def _token(value: Any, where: str) -> str:
    if not isinstance(value, str) or not is_token(value):
        raise ConfigurationError(f"{where}: a token must have at least {SHORTEST_TOKEN} characters and no space")
    return value


def _account(setting: str, name: str, entry: Any) -> tuple[str, Account]:
    where = f"{setting}: {name!r:.80}"
    if not isinstance(entry, dict):
        raise ConfigurationError(f"{where} must be an object with token and role")
    unknown = sorted(set(entry) - {"token", "role", "application_id", "user_id"})
    if unknown:
        raise ConfigurationError(f"{where} has an unknown field {unknown[0]!r:.80}")
    role = entry.get("role")
    if role not in ROLES:
        raise ConfigurationError(f"{where}: the role must be one of {', '.join(ROLES)}")
    for field in ("application_id", "user_id"):
        if not isinstance(entry.get(field), str | None) or entry.get(field) == "":
            raise ConfigurationError(f"{where}: {field} must be a text that is not empty")
    account = Account(name, role, entry.get("application_id"), entry.get("user_id"))
    return _token(entry.get("token"), where), account
