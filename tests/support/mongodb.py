"""A server with MongoDB's protocol: SecantusDB in a process of its own.

For the tests that do not stop it or let it fail, ``MEMORIZZ_TEST_MONGODB_URI`` may name a replica set in its place.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from pymongo import MongoClient

# It ends with its standard input, so with the process of the tests, however that ends.
_PROGRAM = """
import sys
from secantus.server import SecantusDBServer

path, port, name, lifetime = sys.argv[1:]
server = SecantusDBServer(
    port=int(port), storage_path=path, replica_set_name=name or None, transaction_lifetime_seconds=float(lifetime),
    durable=path != ":memory:", sync_on_commit=path != ":memory:",
)
server.start()
print(server.address[1], flush=True)
sys.stdin.read()
server.stop()
"""


class Server:
    """A server of one test, or of all. It is a replica set of one member, or stands alone."""

    def __init__(
        self, path: Path | None = None, *, standalone: bool = False, port: int = 0, lifetime_secs: float = 60
    ) -> None:
        name = "" if standalone else "secantus"
        words = [str(path or ":memory:"), str(port), name, str(lifetime_secs)]
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _PROGRAM, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    @property
    def uri(self) -> str:
        """Its address."""
        return f"mongodb://127.0.0.1:{self.port}"

    def kill(self) -> None:
        """End it at once, as a loss of power would."""
        self._process.kill()
        self._process.communicate()


@cache
def uri() -> str:
    """The address of the server that the tests of this process share."""
    given = os.environ.get("MEMORIZZ_TEST_MONGODB_URI")
    if given:
        atexit.register(_drop_all, given)
        return given
    server = Server()
    atexit.register(server.kill)
    return server.uri


@cache
def standalone_uri() -> str:
    """The address of one that stands alone, shared as well."""
    server = Server(standalone=True)
    atexit.register(server.kill)
    return server.uri


def fresh_database() -> str:
    """The name of a database that no other test has."""
    _databases.append(f"test_{uuid4().hex}")
    return _databases[-1]


@cache
def client(where: str | None = None) -> MongoClient[Any]:
    """A connection of the tests' own, for looking past the provider."""
    connected: MongoClient[Any] = MongoClient(where or uri(), tz_aware=True)
    atexit.register(connected.close)
    return connected


_databases: list[str] = []


def _drop_all(given: str) -> None:
    with MongoClient[Any](given) as connected:
        for name in _databases:
            connected.drop_database(name)
