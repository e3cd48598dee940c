"""Requests to Notion: at most so many a second, repeated where that does no harm, with a token that is not shown."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any, Final, NoReturn, Protocol
from urllib.parse import urlsplit

from agent_memory._version import __version__
from agent_memory.errors import shorten
from memorizz.errors import ConfigurationError, ProviderFault

API_VERSION: Final = "2026-03-11"
BASE_URL: Final = "https://api.notion.com/v1"

_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_IDLE_CONNECTIONS: Final = 8
_IDLE_SECS: Final = 20.0
_LONGEST_WAIT_SECS: Final = 120.0
_FIRST_PAUSE_SECS: Final = 0.5
_LONGEST_PAUSE_SECS: Final = 16.0
# The request was not carried out; sending it again cannot do a thing twice.
_NOT_DONE: Final = frozenset({409, 429})
# It may have been carried out.
_UNKNOWN: Final = frozenset({500, 502, 503, 504, 529})


class Timer(Protocol):
    """The clock that waits are measured with; tests have one of their own."""

    def time(self) -> float: ...

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class SystemTimer:
    """The clock of this machine."""

    def time(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since some moment, never set back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class NotionRefused(ProviderFault):
    """Notion did not accept a request; repeating it would not help."""

    def __init__(self, message: str, status: int, code: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class NotionUnsure(ProviderFault):
    """Whether a request that must not be sent twice was carried out is not known."""


class _Failed(Exception):
    """One attempt brought no answer that can be used."""

    def __init__(self, reason: str, *, is_done: bool | None, wait: float | None = None) -> None:
        super().__init__(reason)
        self.is_done = is_done
        self.wait = wait


class NotionClient:
    """Speaks to one Notion. Safe to use from many threads.

    Raises:
        ConfigurationError: The address or the token cannot be used.
    """

    def __init__(
        self,
        token: str,
        *,
        base_url: str = BASE_URL,
        timeout: float = 30,
        requests_per_second: float = 2.5,
        max_retries: int = 4,
        timer: Timer | None = None,
    ) -> None:
        self._connect, self._prefix = _connecting(base_url, timeout)
        # Anything else http.client would quote in its own message.
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise ConfigurationError("the Notion token must be one word of ASCII characters")
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Notion-Version": API_VERSION,
            "Content-Type": "application/json",
            "User-Agent": f"memorizz/{__version__}",
        }
        self._timer = timer or SystemTimer()
        self._spacing = 1 / requests_per_second
        self._attempts = max_retries + 1
        self._mutex = threading.Lock()
        self._next_slot = 0.0
        self._idle: list[tuple[http.client.HTTPConnection, float]] = []
        self._is_down = False

    def call(self, method: str, path: str, body: Any = None, *, repeatable: bool = True) -> dict[str, Any]:
        """The answer to a request. What is not ``repeatable`` is not sent again once it may have been carried out.

        Raises:
            NotionRefused: Notion does not accept it.
            NotionUnsure: It is not repeatable, and may have been carried out.
            ProviderFault: There is no answer after several attempts.
        """
        data = None if body is None else json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        # Whoever has just waited in vain does not wait as long for each of the next hundred requests.
        attempts = 1 if self._is_down else self._attempts
        for attempt in range(attempts):
            self._wait_for_slot()
            try:
                answer = self._attempt(method, path, data)
            except _Failed as failure:
                if failure.is_done is None and not repeatable:
                    raise NotionUnsure(f"Notion {failure} to {method} {path}; it may have been done") from None
                if attempt + 1 == attempts:
                    self._is_down = True
                    times = f" after {attempts} attempts" if attempts > 1 else ""
                    raise ProviderFault(f"Notion {failure} to {method} {path}{times}") from None
                pause = min(_LONGEST_PAUSE_SECS, _FIRST_PAUSE_SECS * 2**attempt)
                self._timer.sleep(pause if failure.wait is None else failure.wait)
            else:
                self._is_down = False
                return answer
        raise AssertionError("there is at least one attempt")

    def pause(self, attempt: int) -> None:
        """Wait before trying a second or later time what :meth:`call` does not repeat."""
        self._timer.sleep(min(_LONGEST_PAUSE_SECS, _FIRST_PAUSE_SECS * 2**attempt))

    def close(self) -> None:
        """Close the connections."""
        with self._mutex:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.close()

    def _wait_for_slot(self) -> None:
        with self._mutex:
            now = self._timer.monotonic()
            wait = max(0.0, self._next_slot - now)
            self._next_slot = max(now, self._next_slot) + self._spacing
        if wait > 0:
            self._timer.sleep(wait)

    def _attempt(self, method: str, path: str, data: bytes | None) -> dict[str, Any]:
        connection = self._taken()
        try:
            if connection.sock is None:
                try:
                    connection.connect()
                except OSError as error:
                    raise _Failed(f"cannot be reached ({error})", is_done=False) from None
            try:
                connection.request(method, self._prefix + path, body=data, headers=self._headers)
                response = connection.getresponse()
                content = response.read()
            except (OSError, http.client.HTTPException) as error:
                raise _Failed(f"gave no answer ({type(error).__name__})", is_done=None) from None
        except BaseException:
            connection.close()
            raise
        self._give_back(connection)
        if response.status != 200:
            _refuse(method, path, response, content)
        return _object(content)

    def _taken(self) -> http.client.HTTPConnection:
        with self._mutex:
            while self._idle:
                connection, since = self._idle.pop()
                # A server closes what is idle, and then a request is lost on the way.
                if self._timer.monotonic() - since < _IDLE_SECS:
                    return connection
                connection.close()
        return self._connect()

    def _give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._mutex:
            if len(self._idle) < _IDLE_CONNECTIONS:
                self._idle.append((connection, self._timer.monotonic()))
                return
        connection.close()


def _connecting(base_url: str, timeout: float) -> tuple[Callable[[], http.client.HTTPConnection], str]:
    """How to make a connection, and what every path begins with."""
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if not host or parts.username or parts.query or parts.fragment:
        raise ConfigurationError(f"the address of Notion must be one like {BASE_URL} (got {shorten(base_url)!r})")
    prefix = parts.path.rstrip("/")
    if parts.scheme == "https":
        context = ssl.create_default_context()
        return lambda: http.client.HTTPSConnection(host, port, timeout=timeout, context=context), prefix
    if parts.scheme == "http" and host in _LOOPBACK:
        return lambda: http.client.HTTPConnection(host, port, timeout=timeout), prefix
    raise ConfigurationError("the address of Notion must begin with https: a token is sent there")


def _refuse(method: str, path: str, response: http.client.HTTPResponse, content: bytes) -> NoReturn:
    try:
        said = json.loads(content)
        code, message = str(said["code"]), str(said["message"])
    except (ValueError, TypeError, KeyError):
        code, message = "", response.reason
    status = response.status
    if status in _NOT_DONE or status in _UNKNOWN:
        wait = _seconds(response.getheader("Retry-After")) if status in _NOT_DONE or status == 503 else None
        if wait is not None and wait > _LONGEST_WAIT_SECS:
            raise NotionRefused(f"Notion asks to come back in {wait:g} seconds", status, code)
        is_done = False if status in _NOT_DONE else None
        raise _Failed(f"answered {status} {code or message}".rstrip(), is_done=is_done, wait=wait)
    if status == 401:
        raise NotionRefused("Notion does not accept the token", status, code)
    raise NotionRefused(f"Notion answered {status} {code} to {method} {path}: {shorten(message)}", status, code)


def _seconds(text: str | None) -> float | None:
    try:
        wait = float(text or "")
    except ValueError:
        return None
    return wait if wait >= 0 else None


def _object(content: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(content)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise _Failed("answered something that is no JSON object", is_done=None)
    return answer
