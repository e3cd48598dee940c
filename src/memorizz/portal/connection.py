"""The memory that the portal is connected to, which may change while it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from memorizz.errors import ConfigurationError
from memorizz.providers.base import MemoryProvider


class Target(NamedTuple):
    """Which memory: its backend, the fields of its configuration, how people call its place, and whether to only read.

    ``place`` shows no secret.
    """

    backend: str
    options: dict[str, Any]
    place: str
    read_only: bool = False


class Connection:
    """Holds one opened provider, or none. A provider is closed when nobody uses it any more."""

    def __init__(self, open_provider: Callable[[Target], MemoryProvider]) -> None:
        self._open = open_provider
        self._lock = threading.Lock()
        self._current: tuple[Target, MemoryProvider] | None = None
        self._users: dict[int, int] = {}
        self._identity = ""

    @property
    def identity(self) -> str:
        """Another text after each :meth:`connect`, to notice that what was looked at is no longer connected."""
        return self._identity

    @property
    def target(self) -> Target | None:
        """The memory that is connected."""
        return None if self._current is None else self._current[0]

    def connect(self, target: Target) -> None:
        """Open a memory in place of the present one, which stays when this fails.

        Raises:
            ConfigurationError: It cannot be opened.
        """
        opened = self._open(target)
        with self._lock:
            before, self._current = self._current, (target, opened)
            self._identity = uuid4().hex
            idle = before is not None and before[1] is not opened and not self._users.get(id(before[1]))
        if before is not None and idle:
            before[1].close()

    @contextmanager
    def provider(self) -> Iterator[MemoryProvider]:
        """The provider, for as long as the block lasts.

        Raises:
            ConfigurationError: None is connected.
        """
        with self._lock:
            if self._current is None:
                raise ConfigurationError("no memory is connected; choose one on the page Connection")
            target, used = self._current
            if any(isinstance(value, Path) and not value.exists() for value in target.options.values()):
                # Reading on would show nothing, or what is no longer anybody's, and an export would look like a backup.
                raise ConfigurationError(f"the memory at {target.place} is gone; connect another one")
            self._users[id(used)] = self._users.get(id(used), 0) + 1
        try:
            yield used
        finally:
            with self._lock:
                self._users[id(used)] -= 1
                left = self._users[id(used)] == 0 and (self._current is None or self._current[1] is not used)
                if self._users[id(used)] == 0:
                    del self._users[id(used)]
            if left:
                used.close()

    def close(self) -> None:
        """Let go of the memory."""
        with self._lock:
            before, self._current = self._current, None
            idle = before is not None and not self._users.get(id(before[1]))
        if before is not None and idle:
            before[1].close()
