"""The copy of an older database that is made before its schema changes.

The copy is ``<file>.backup-pre-NNNN-YYYYMMDD`` beside the file: the schema version migrated to and the UTC
date. One is kept per target version.
"""

from __future__ import annotations

import logging
import os
import re
import time
from pathlib import Path

import apsw

from agent_memory.errors import OpenError
from agent_memory.files import create_private, sync_directory
from agent_memory.store.connection import connect

log = logging.getLogger(__name__)


def before_migration(path: Path, target: int) -> Path:
    """Copy ``path`` with SQLite's online backup and return the copy's path.

    The caller holds the write lock, so no other process copies at the same time. The new copy is complete and
    in place before an older one of the same target goes.

    Raises:
        OpenError: The copy could not be written; an earlier one is still there.
    """
    copy = path.with_name(f"{path.name}.backup-pre-{target:04d}-{time.strftime('%Y%m%d', time.gmtime())}")
    temporary = copy.with_name(f"{copy.name}.tmp-{os.getpid()}")
    try:
        _remove_leftovers(path, target)
        _copy(path, temporary)
        os.replace(temporary, copy)
        sync_directory(path.parent)
        for older in existing(path, target):
            if older != copy:
                older.unlink()
    except (OSError, apsw.Error) as error:
        temporary.unlink(missing_ok=True)
        raise OpenError(
            f"backing up {path} to {copy} before migrating it to schema version {target}: {_reason(error)}; "
            "the database was not migrated — free some space or make the directory writable, then start again"
        ) from error
    log.info("Database backed up to %s", copy)
    return copy


def _reason(error: OSError | apsw.Error) -> str:
    # Some steps of SQLite's backup report a full disk by the class of the error only.
    return f"{type(error).__name__}: {error}"


def existing(path: Path, target: int | None = None) -> list[Path]:
    """The finished copies beside ``path``, of one target version or of all, by name."""
    return _siblings(path, target, "")


def _remove_leftovers(path: Path, target: int) -> None:
    for entry in _siblings(path, target, r"\.tmp-\d+(-journal|-wal|-shm)?"):
        entry.unlink()


def _siblings(path: Path, target: int | None, ending: str) -> list[Path]:
    number = r"\d{4}" if target is None else f"{target:04d}"
    pattern = re.compile(re.escape(path.name) + rf"\.backup-pre-{number}-\d{{8}}{ending}")
    return sorted(entry for entry in path.parent.iterdir() if pattern.fullmatch(entry.name))


def _copy(path: Path, temporary: Path) -> None:
    os.close(create_private(temporary))
    source = connect(path)
    target = apsw.Connection(str(temporary), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        with target.backup("main", source, "main") as running:
            while not running.done:
                running.step(256)
    finally:
        target.close()
        source.close()
    with open(temporary, "rb+") as written:
        os.fsync(written.fileno())
