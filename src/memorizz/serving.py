"""What the servers of the memory graph share: reading their settings, and telling callers by their tokens."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import Any, Final, Generic, TypeVar

from agent_memory.web.address import Address
from agent_memory.web.origin import public_site
from memorizz.errors import ConfigurationError

SHORTEST_TOKEN: Final = 16

_YES: Final = ("1", "true", "yes", "on")
_NO: Final = ("0", "false", "no", "off")

Caller = TypeVar("Caller")


class Variables:
    """The variables that begin with a prefix. An empty one is as good as none."""

    def __init__(self, prefix: str, variables: Mapping[str, str]) -> None:
        self._prefix = prefix
        self._variables = variables

    def text(self, name: str) -> str:
        """The value, empty when there is none."""
        return self._variables.get(f"{self._prefix}{name}", "")

    def flag(self, name: str) -> bool | None:
        """Whether it says yes, or ``None`` when it says nothing.

        Raises:
            ConfigurationError: It says neither.
        """
        text = self.text(name).lower()
        if text and text not in (*_YES, *_NO):
            raise ConfigurationError(f"{self._prefix}{name} must be true or false (got {text!r:.80})")
        return text in _YES if text else None


class Tokens(Generic[Caller]):
    """Callers by their tokens."""

    def __init__(self, callers: Mapping[str, Caller]) -> None:
        self._callers = {token.encode(): caller for token, caller in callers.items()}

    def __bool__(self) -> bool:
        return bool(self._callers)

    def match(self, token: str) -> tuple[bytes, Caller] | None:
        """The known token that is ``token``, and its caller. How long this takes does not depend on the token."""
        given = token.encode("utf-8", "surrogatepass")
        found = None
        for known, caller in self._callers.items():
            if hmac.compare_digest(known, given):
                found = known, caller
        return found

    def items(self) -> Iterator[tuple[bytes, Caller]]:
        """Each token with its caller."""
        return iter(self._callers.items())


def is_token(value: Any) -> bool:
    """Whether something can be a token: a text of at least 16 characters without spaces."""
    return isinstance(value, str) and len(value) >= SHORTEST_TOKEN and value.split() == [value]


def json_object(text: str, name: str, what: str) -> dict[str, Any]:
    """The JSON object in the setting ``name``, an empty one when it is not set; ``what`` says what it maps.

    Raises:
        ConfigurationError: It is none.
    """
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        raise ConfigurationError(f"{name} is not valid JSON") from None
    if not isinstance(found, dict):
        raise ConfigurationError(f"{name} must be a JSON object {what}")
    return found


def address(host: str, port: int) -> Address:
    """The address of ``--host`` and ``--port``.

    Raises:
        ConfigurationError: There is none.
    """
    try:
        ip = ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        raise ConfigurationError(f"--host must be an IP address or localhost (got {host!r:.80})") from None
    if not 0 <= port <= 65_535:
        raise ConfigurationError(f"--port must be from 0 to 65535 (got {port})")
    return Address(ip, port)


def site(url: str | None, schemes: Sequence[str]) -> tuple[str, str] | None:
    """Scheme and host of ``--public-url``, or ``None`` where it is not given.

    Raises:
        ConfigurationError: It is no URL of a whole site with one of ``schemes``.
    """
    try:
        return None if url is None else public_site(url, schemes)
    except ValueError as error:
        raise ConfigurationError(f"--public-url {error} (got {url!r:.80})") from None
