"""The file itself: whose it is, which version it has, and making one."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import apsw

from agent_memory.files import make_private_directory, replacing
from agent_memory.store.connection import connect, retry_while_locked
from memorizz.errors import ConfigurationError

APPLICATION_ID: Final = 0x4D5A4D31
"""At offset 68 of the file: "MZM1"."""

SCHEMA_VERSION: Final = 1

_MAGIC: Final = b"SQLite format 3\0"
_HEADER_BYTES: Final = 100
_SCHEMA: Final = f"""
CREATE TABLE records (
    position   INTEGER PRIMARY KEY,
    store      TEXT NOT NULL,
    id         TEXT NOT NULL,
    natural_id TEXT,
    memory_id  TEXT,
    agent_id   TEXT,
    user_id    TEXT,
    data       TEXT NOT NULL,
    UNIQUE (store, id)
);
CREATE INDEX records_store ON records(store);
CREATE INDEX records_natural ON records(store, natural_id) WHERE natural_id IS NOT NULL;
CREATE INDEX records_memory ON records(store, memory_id) WHERE memory_id IS NOT NULL;
CREATE INDEX records_agent ON records(store, agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX records_user ON records(store, user_id) WHERE user_id IS NOT NULL;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
"""


def open_file(path: Path, *, read_only: bool, make: bool = False) -> apsw.Connection:
    """A connection to the file at ``path``; with ``make`` it is made if it is not there.

    Raises:
        ConfigurationError: It cannot be made or opened, or it is not ours to open; it is as it was.
        apsw.Error: The storage failed.
    """
    try:
        header = _header(path)
        if header is None and make:
            _make(path)
            header = _header(path)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be used: {error}") from None
    if header is None:
        raise ConfigurationError(f"there is no file {path} to {'read from' if read_only else 'write to'}")
    # Before SQLite sees the file: it may write into one that it opens.
    if header[: len(_MAGIC)] != _MAGIC or int.from_bytes(header[68:72]) != APPLICATION_ID:
        raise ConfigurationError(f"{path} is not a memory of this program; it was left as it is")
    _refuse_newer(path, int.from_bytes(header[60:64]))
    connection = connect(path, read_only=read_only)
    try:
        _refuse_newer(path, connection.execute("PRAGMA user_version").get)
        if not read_only:
            retry_while_locked(lambda: connection.execute("PRAGMA journal_mode = WAL"))
            # In this mode only FULL keeps a commit through a loss of power.
            connection.execute("PRAGMA synchronous = FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def _make(path: Path) -> None:
    made = apsw.Connection(":memory:")
    made.execute(_SCHEMA)
    content = made.serialize("main")
    made.close()
    make_private_directory(path.parent)
    try:
        # In place as a whole, so that no other process meets half a schema.
        with replacing(path, "new", overwrite=False) as file:
            file.write(content)
    except FileExistsError:
        # Another process was faster.
        pass


def _header(path: Path) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read(_HEADER_BYTES)
    except FileNotFoundError:
        return None


def _refuse_newer(path: Path, version: int) -> None:
    if version > SCHEMA_VERSION:
        raise ConfigurationError(
            f"{path} has schema version {version}, and this program knows up to {SCHEMA_VERSION}; it was left as it is"
        )
