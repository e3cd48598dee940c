"""Looking at a database file without changing it, and mending what can be derived again."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import apsw

from agent_memory.domain.links import LinkKind
from agent_memory.domain.memory import MemoryType
from agent_memory.errors import OpenError, SchemaTooNew
from agent_memory.store import backup, schema, vectors
from agent_memory.store.connection import (
    LOG_GONE,
    connect,
    has_vectors,
    log_size,
    set_patience,
    transaction,
    triggers_off,
)
from agent_memory.store.filesystem import remote_file_system

_LARGE_WAL_BYTES: Final = 64 * 1024 * 1024
_TYPES: Final = ", ".join(f"'{kind}'" for kind in MemoryType)
_KINDS: Final = ", ".join(f"'{kind}'" for kind in LinkKind)

_COLUMN_TYPES: Final = """typeof(content) = 'text' AND typeof(tags) = 'text' AND typeof(source) IN ('text', 'null')
    AND typeof(scope) IN ('text', 'null') AND typeof(access_count) = 'integer' AND typeof(created_at) = 'integer'
    AND typeof(last_accessed) = 'integer' AND typeof(expires_at) IN ('integer', 'null')
    AND typeof(embedding_status) = 'integer'"""
_CHECKPOINT_WAIT_SECS: Final = 2.0

Status = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found. ``advice`` says what to do, where something is to be done; ``fixable`` whether
    ``doctor --fix`` does it."""

    check: str
    status: Status
    message: str
    advice: str = ""
    fixable: bool = False


def examine(path: Path, pin: tuple[str, int]) -> list[Finding]:
    """Every finding about the database at ``path``, which exists. Only reads.

    ``pin`` is the model and dimension of the vectors that this program makes.
    """
    found = [_permissions(path), _file_system(path)]
    try:
        # All from one moment, since servers may be writing.
        with closing(connect(path, read_only=True)) as connection, transaction(connection, write=False):
            return [*found, *_examine_open(connection, path, pin)]
    except apsw.Error as error:
        return [*found, _unusable(path, error)]


def repair(path: Path) -> list[str]:
    """Rebuild the full-text index, make vectors and their status agree, and empty the log. Says what was done.

    Raises:
        OpenError: The file has not the latest schema.
        apsw.Error: The file is damaged beyond that.
    """
    done = []
    connection = connect(path)
    try:
        found = schema.check_ours(connection, path)
        if found != schema.LATEST:
            raise OpenError(f"{path} has schema version {found}; open it once to migrate it, then repair it")
        with transaction(connection, write=True):
            schema.rebuild_fulltext(connection)
            done.append("rebuilt the full-text index")
            if has_vectors(connection) and not _has_table(connection, "vec_memories"):
                schema.recreate_vectors(connection)
                done.append("made a new vector table; run `agent-memory embed` to fill it")
            elif has_vectors(connection):
                done += _repair_vectors(connection)
        set_patience(connection, _CHECKPOINT_WAIT_SECS)
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get
        done.append(
            "could not write the whole log back: another process is reading"
            if busy
            else "wrote the log back into the file"
        )
    finally:
        connection.close()
    return done


def _repair_vectors(connection: apsw.Connection) -> Iterator[str]:
    orphans = vectors.delete_orphans(connection)
    if orphans:
        yield f"removed {orphans} vectors without a memory"
    stale = [row[0] for row in connection.execute(f"SELECT id FROM memories m WHERE {_STALE_VECTOR}")]
    for memory_id in stale:
        vectors.delete(connection, memory_id)
    if stale:
        yield f"removed {len(stale)} vectors of text that has changed since"
    with triggers_off(connection):
        connection.execute(f"UPDATE memories AS m SET embedding_status = 0 WHERE {_MISSING_VECTOR}")
    if connection.changes():
        yield f"marked {connection.changes()} memories without a vector as pending"


_HAS_VECTOR: Final = "EXISTS (SELECT 1 FROM vec_memories_rowids v WHERE v.rowid = m.id)"
_MISSING_VECTOR: Final = f"m.embedding_status = 1 AND NOT {_HAS_VECTOR}"
_STALE_VECTOR: Final = f"m.embedding_status = 0 AND {_HAS_VECTOR}"


def _examine_open(connection: apsw.Connection, path: Path, pin: tuple[str, int]) -> Iterator[Finding]:
    problems = [row[0] for row in connection.execute("PRAGMA integrity_check(5)")]
    if any(f"error code={apsw.SQLITE_IOERR_SHORT_READ}" in problem for problem in problems):
        yield _log_gone("; ".join(problems))
        return
    index_only = all("fts5" in problem.lower() or "memories_fts" in problem for problem in problems)
    if problems != ["ok"] and not index_only:
        yield _damaged(path, "; ".join(problems))
        return
    damaged_index = "; ".join(problems) if index_only else ""
    yield Finding("integrity", "ok", "SQLite's integrity check passed" + (" but for an index" if index_only else ""))
    try:
        version = schema.check_ours(connection, path)
    except SchemaTooNew as error:
        message = f"the file has schema version {error.found}, this program supports up to {error.supported}"
        yield Finding("schema", "problem", message, "upgrade agent-memory")
        return
    except OpenError:
        message = "a SQLite database, but not an agent-memory one"
        yield Finding("schema", "problem", message, "point --db at a different file")
        return
    if version < schema.LATEST:
        yield Finding(
            "schema",
            "warning",
            f"the file has schema version {version}, the latest is {schema.LATEST}",
            "it is backed up and migrated when a server or command next opens it",
        )
        return
    yield Finding("schema", "ok", f"schema version {version}")
    yield from _rows(connection)
    yield _index_problem(damaged_index) if damaged_index else _fulltext(connection)
    yield from _vectors(connection)
    yield _pin(connection, pin)
    yield _log(path)


def _has_table(connection: apsw.Connection, name: str) -> bool:
    return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).get)


def _rows(connection: apsw.Connection) -> Iterator[Finding]:
    count = connection.execute("SELECT count(*) FROM memories").get
    bad = [
        row[0]
        for row in connection.execute(
            f"""SELECT id FROM memories WHERE mem_type NOT IN ({_TYPES}) OR NOT ({_COLUMN_TYPES})
            OR NOT json_valid(tags) OR json_type(CASE WHEN json_valid(tags) THEN tags ELSE '0' END) <> 'array'
            OR EXISTS (SELECT 1 FROM json_each(CASE WHEN json_valid(tags) THEN tags ELSE '[]' END) WHERE type <> 'text')
            LIMIT 10"""
        )
    ]
    if bad:
        yield Finding(
            "memories",
            "problem",
            f"{count}; unreadable values in ids {', '.join(map(str, bad))}",
            "some other program wrote them; correct the columns of these rows with the sqlite3 command",
        )
    else:
        yield Finding("memories", "ok", str(count))
    links, broken = connection.execute(
        f"""SELECT count(*), count(*) FILTER (WHERE kind NOT IN ({_KINDS})
            OR from_id NOT IN (SELECT id FROM memories) OR to_id NOT IN (SELECT id FROM memories))
        FROM memory_links"""
    ).get
    if broken:
        yield Finding("links", "problem", f"{broken} of {links} are broken", "restore a backup or unlink them")
    else:
        yield Finding("links", "ok", str(links))


def _fulltext(connection: apsw.Connection) -> Finding:
    missing = schema.missing_fulltext(connection)
    if missing:
        return _index_problem(f"{', '.join(missing)} missing, so searches find too little")
    rows = connection.execute("SELECT count(*) FROM memories_fts_docsize").get
    memories = connection.execute("SELECT count(*) FROM memories").get
    unindexed = connection.execute(
        "SELECT count(*) FROM memories WHERE id NOT IN (SELECT id FROM memories_fts_docsize)"
    ).get
    if rows == memories and not unindexed:
        return Finding("full-text index", "ok", f"{rows} entries, one per memory")
    return _index_problem(f"{rows} entries for {memories} memories ({unindexed} missing)")


def _index_problem(message: str) -> Finding:
    return Finding("full-text index", "problem", message, "run `agent-memory doctor --fix`", fixable=True)


def _vectors(connection: apsw.Connection) -> Iterator[Finding]:
    if not _has_table(connection, "vec_memories"):
        message = "vec_memories is missing, so nothing is found by meaning"
        yield Finding("vectors", "problem", message, "run `agent-memory doctor --fix`", fixable=True)
        return
    total, current = connection.execute("SELECT count(*), total(embedding_status) FROM memories").get
    missing = connection.execute(f"SELECT count(*) FROM memories m WHERE {_MISSING_VECTOR}").get
    stale = connection.execute(f"SELECT count(*) FROM memories m WHERE {_STALE_VECTOR}").get
    orphans = connection.execute(
        "SELECT count(*) FROM vec_memories_rowids WHERE rowid NOT IN (SELECT id FROM memories)"
    ).get
    if missing or stale or orphans:
        yield Finding(
            "vectors",
            "problem",
            f"{missing} memories claim a vector they do not have, {stale} vectors are of older text, "
            f"{orphans} belong to no memory",
            "run `agent-memory doctor --fix`",
            fixable=True,
        )
    else:
        yield Finding("vectors", "ok", f"{int(current)} of {total} memories have their vector")
    pending = total - int(current)
    if pending:
        yield Finding(
            "pending embeddings",
            "warning",
            f"found by keyword only so far: {pending} of {total}",
            "running servers embed 128 an hour; `agent-memory embed` does all now",
        )


def _pin(connection: apsw.Connection, pin: tuple[str, int]) -> Finding:
    found = schema.embedding_pin(connection)
    if found == (pin[0], str(pin[1])):
        return Finding("embedding model", "ok", f"{pin[0]}, {pin[1]} dimensions")
    return Finding(
        "embedding model",
        "problem",
        f"the file's vectors are of {found[0]} with {found[1]} dimensions, this program makes {pin[0]} with {pin[1]}",
        "search is by keyword only on this file; open it with the program that wrote its vectors",
    )


def _log(path: Path) -> Finding:
    size = log_size(path)
    if size > _LARGE_WAL_BYTES:
        return Finding(
            "write-ahead log",
            "warning",
            f"{size:,} bytes wait to be written back",
            "some process keeps an old transaction open; stop it, or run `agent-memory doctor --fix`",
            fixable=True,
        )
    return Finding("write-ahead log", "ok", f"{size:,} bytes")


def _permissions(path: Path) -> Finding:
    files = [path.with_name(path.name + ending) for ending in ("", "-wal", "-shm")]
    closed = [str(found) for found in files if os.access(found, os.F_OK) and not os.access(found, os.R_OK | os.W_OK)]
    if closed:
        return Finding(
            "permissions", "problem", f"you cannot read and write {', '.join(closed)}", f"run `{_chmod(closed)}`"
        )
    if not os.access(path.parent, os.W_OK | os.X_OK):
        return Finding(
            "permissions",
            "problem",
            f"you cannot write to the directory {path.parent}",
            "make it writable for you: SQLite keeps its log beside the file",
        )
    mode = path.stat().st_mode & 0o777
    if mode & 0o077 and os.name == "posix":
        return Finding(
            "permissions", "warning", f"other users may read the file (mode {mode:04o})", f"run `{_chmod([str(path)])}`"
        )
    return Finding("permissions", "ok", f"mode {mode:04o}")


def _chmod(files: Sequence[str]) -> str:
    return f"chmod 600 {' '.join(map(shlex.quote, files))}"


def _file_system(path: Path) -> Finding:
    remote = remote_file_system(path)
    if remote is None:
        return Finding("file system", "ok", "local")
    return Finding(
        "file system",
        "warning",
        f"a {remote} file system, where a write-ahead log is not safe: the rollback journal is used instead",
        "move the file to a local disk, or set AGENT_MEMORY_JOURNAL=wal if only one machine uses it",
    )


def _unusable(path: Path, error: apsw.Error) -> Finding:
    if isinstance(error, apsw.IOError):
        return _log_gone(str(error))
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        message = "another program keeps the file locked, so nothing can be said about it"
        return Finding("access", "problem", message, "end that program, or wait for it, and run doctor again")
    if isinstance(error, (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError)):
        return Finding(
            "access",
            "problem",
            f"the file or its directory cannot be read and written: {error}",
            "make both readable and writable for you; nothing says that the memories are damaged",
        )
    return _damaged(path, str(error))


def _log_gone(what: str) -> Finding:
    return Finding(
        "integrity",
        "problem",
        f"the file and its log do not fit together: {what}",
        f"{LOG_GONE}; restore a backup only if it still fails",
    )


def _damaged(path: Path, what: str) -> Finding:
    copies = backup.existing(path)
    newest = f"; the newest is {max(copies, key=lambda copy: copy.stat().st_mtime)}" if copies else ""
    return Finding(
        "integrity",
        "problem",
        f"the file is damaged: {what}",
        "stop every agent-memory process, keep a copy of the file, and restore a backup"
        + (newest or "; no migration backup lies beside it")
        + ". `sqlite3 FILE .recover` may save rows of the damaged one",
    )
