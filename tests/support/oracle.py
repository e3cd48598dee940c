"""A database that takes the statements of the Oracle provider and does them, for real, on a SQLite file.

It has the tables that were asked for, named binds, savepoints, read-only transactions, table locks and Oracle's errors,
raised as python-oracledb does. It does what Oracle is documented to do where SQLite differs: DDL commits by itself and
fails while somebody else writes to its table, an empty text is no text, and nothing is longer than its column.
"""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from array import array
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import oracledb

OWNER = "MEMO"
_MARKS = {"\ue000": datetime.fromisoformat, "\ue001": Decimal, "\ue002": lambda text: array("f", json.loads(text))}
_CATALOGUE = f"""
CREATE VIEW IF NOT EXISTS all_tab_columns AS
SELECT '{OWNER}' AS owner, upper(m.name) AS table_name, upper(p.name) AS column_name,
       CASE WHEN p.type LIKE 'VARCHAR2(%' THEN min(4000, 4 * CAST(substr(p.type, 10) AS INTEGER)) END AS data_length,
       CASE WHEN p.type LIKE 'VARCHAR2(%' THEN CAST(substr(p.type, 10) AS INTEGER) END AS char_length,
       CASE WHEN p."notnull" OR p.pk THEN 'N' ELSE 'Y' END AS nullable,
       length(p.dflt_value) AS default_length
FROM sqlite_master m JOIN pragma_table_info(m.name) p WHERE m.type = 'table'
"""


class Error(Exception):
    """What the driver puts into its exceptions."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        self.full_code = f"ORA-{code:05}"
        self.message = f"{self.full_code}: {message}"

    def __str__(self) -> str:
        return self.message


def ora(code: int, message: str, kind: type[oracledb.Error] = oracledb.DatabaseError) -> oracledb.Error:
    """An error of the database, as the driver raises it."""
    return kind(Error(code, message))


class Database:
    """One schema in a file. ``statements`` are all that were sent; ``before`` is called with each, and may raise."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.statements: list[str] = []
        self.opened = 0
        self.in_use = 0
        self.before: Callable[[str], object] = lambda _: None
        self.writers: dict[int, Connection] = {}

    def connect(self) -> Connection:
        """A connection, as a pool would give it."""
        self.opened += 1
        self.in_use += 1
        return Connection(self)

    def sql(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """What another program does."""
        connection = _open(self.path)
        with connection:
            rows = connection.execute(statement, values).fetchall()
        connection.close()
        return rows


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=60, check_same_thread=False)
    connection.create_function("JSON_VALUE", 2, _json_value, deterministic=True)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA case_sensitive_like = ON")
    connection.execute(_CATALOGUE)
    return connection


def _json_value(text: str | None, path: str) -> str | None:
    """A scalar at ``$.name``, ``$.name.name`` or ``$.name[0]`` as text; anything else is null, as is what is long."""
    found: Any = None if text is None else json.loads(text)
    for name, index in re.findall(r"\.(\w+)|\[(\d+)\]", path):
        try:
            found = found[name] if name else found[int(index)]
        except (KeyError, IndexError, TypeError):
            return None
    if found is None or isinstance(found, dict | list):
        return None
    text = found if isinstance(found, str) else json.dumps(found)
    return text if len(text.encode()) <= 4000 else None


class Connection:
    """What the provider gets. ``close`` gives it back."""

    outputtypehandler: Any = None

    def __init__(self, database: Database) -> None:
        self.database = database
        self.real = _open(database.path)
        self.touched: set[str] = set()
        self.defined: list[str] = []
        self.read_only = False
        self.lost = False

    def cursor(self) -> Cursor:
        return Cursor(self)

    def commit(self) -> None:
        self.check()
        self.database.before("COMMIT")
        self._end("COMMIT")

    def rollback(self) -> None:
        self.check()
        self._end("ROLLBACK")

    def close(self) -> None:
        self.database.in_use -= 1
        if self.real.in_transaction:
            self._end("ROLLBACK")
        self.real.close()

    def check(self) -> None:
        if self.lost:
            raise ora(3135, "connection lost contact", oracledb.OperationalError)

    def lose(self) -> oracledb.Error:
        """The server is gone, and with it what was not committed."""
        self._end("ROLLBACK")
        self.lost = True
        return ora(3113, "end-of-file on communication channel", oracledb.OperationalError)

    def begin(self, table: str) -> None:
        """Before the first change: SQLite has one writer, Oracle one for each row."""
        if self.read_only:
            raise ora(1456, "may not perform insert, delete, update operation inside a READ ONLY transaction")
        if not self.real.in_transaction:
            self.real.execute("BEGIN IMMEDIATE")
            self.database.writers[threading.get_ident()] = self
        self.touched.add(table)

    def define(self, statement: str) -> None:
        """DDL: it is committed, whatever becomes of a transaction that this thread has elsewhere."""
        if self.real.in_transaction:
            self._end("COMMIT")
        table = re.findall(r"(?:TABLE) (?:\w+\.)?(\w+)", statement)[0]
        writer = self.database.writers.get(threading.get_ident())
        if writer is not None and table in writer.touched:
            raise ora(54, "resource busy and acquire with NOWAIT specified or timeout expired")
        (writer or self).real.execute(_ddl(statement))
        if writer is not None:
            writer.defined.append(statement)

    def back_to(self, savepoint: str) -> None:
        self.real.execute(f"ROLLBACK TO SAVEPOINT {savepoint}")
        self._define_again()

    def _end(self, how: str) -> None:
        if self.real.in_transaction:
            self.real.execute(how)
        self.read_only = False
        self.touched.clear()
        if self.database.writers.get(threading.get_ident()) is self:
            del self.database.writers[threading.get_ident()]
        if how == "ROLLBACK":
            self._define_again()
        self.defined.clear()

    def _define_again(self) -> None:
        for statement in self.defined:
            try:
                self.real.execute(_ddl(statement))
            except sqlite3.OperationalError:
                pass  # it is still there


def _ddl(statement: str) -> str:
    statement = statement.replace("REFERENCES main.", "REFERENCES ")
    statement = re.sub(r"ADD \((.*)\)$", r"ADD COLUMN \1", statement)
    statement = re.sub(r"\((\d+) CHAR\)", r"(\1)", statement)
    statement = re.sub(r"(\w+) IS JSON", r"(\1 IS NULL OR json_valid(\1))", statement)
    return re.sub(r"NUMBER\(3, 2\)", "NUMERIC", re.sub(r"\bNUMBER\b(?!\()", "NUMERIC", statement))


class Cursor:
    """Executes statements with named binds."""

    arraysize = 100
    rowcount = 0

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._rows: list[tuple[Any, ...]] = []
        self._types: dict[str, Any] = {}

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def setinputsizes(self, **types: Any) -> None:
        self._types = types

    def execute(self, statement: str, binds: Mapping[str, Any]) -> None:
        self._run(statement, [binds])

    def executemany(self, statement: str, rows: list[Mapping[str, Any]]) -> None:
        self._run(statement, rows)

    def fetchall(self) -> list[tuple[Any, ...]]:
        rows, self._rows = self._rows, []
        return rows

    def _run(self, statement: str, rows: list[Mapping[str, Any]]) -> None:
        connection = self.connection
        connection.check()
        connection.database.statements.append(statement)
        try:
            connection.database.before(statement)
        except oracledb.OperationalError:
            raise connection.lose() from None
        named = set(re.findall(r":(\w+)", re.sub(r"'[^']*'", "", statement)))
        for row in rows:
            assert row.keys() == named, f"{statement} is given {sorted(row)}"
        assert self._types.keys() <= named
        self._check_order(statement)
        self.rowcount = 0
        try:
            self._do(statement, rows)
        except sqlite3.IntegrityError as error:
            raise _integrity(error) from None
        except sqlite3.OperationalError as error:
            raise _operational(error, statement) from None

    def _do(self, statement: str, rows: list[Mapping[str, Any]]) -> None:
        connection, real = self.connection, self.connection.real
        verb = statement.split()[0]
        if verb in ("CREATE", "ALTER"):
            connection.define(statement)
        elif statement == "SET TRANSACTION READ ONLY":
            real.execute("BEGIN")
            real.execute("SELECT 1 FROM sqlite_master").fetchall()
            connection.read_only = True
        elif verb == "LOCK":
            # It locks the table against DDL of others as well.
            connection.begin(_table(statement))
        elif verb == "SAVEPOINT":
            if not real.in_transaction:
                connection.begin("")
            real.execute(statement)
        elif verb == "ROLLBACK":
            connection.back_to(statement.split()[-1])
        elif verb == "SELECT":
            assert len(rows) == 1
            assert len(rows[0]) <= 1_000
            found = real.execute(statement, _bound(rows[0]))
            self._rows = [tuple(map(_value, row)) for row in found]
        else:
            connection.begin(_table(statement))
            for row in rows:
                self.rowcount += real.execute(statement, _bound(row)).rowcount

    def _check_order(self, statement: str) -> None:
        """ORA-24816: what may be longer comes after what is short, but for keys."""
        names = re.findall(r":(\w+)", statement)
        long = [self._types.get(name) is oracledb.DB_TYPE_LONG for name in names]
        if long != sorted(long) and not (long[:-1] == sorted(long[:-1]) and not long[-1]):
            raise ora(24816, "Expanded non LONG bind data supplied after actual LONG or LOB column")


def _table(statement: str) -> str:
    found = re.match(r"(?:INSERT INTO|UPDATE|DELETE FROM|LOCK TABLE) (?:\w+\.)?(\w+)", statement)
    assert found, statement
    return found.group(1)


def _bound(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _stored(value) for name, value in row.items()}


def _stored(value: Any) -> Any:
    if value == "":
        return None
    if isinstance(value, datetime):
        assert value.tzinfo is None
        return f"\ue000{value.isoformat()}"
    if isinstance(value, array):
        return f"\ue002{json.dumps(list(value))}"
    if isinstance(value, float) or (isinstance(value, int) and abs(value) >= 2**63):
        return f"\ue001{value!r}"
    assert value is None or type(value) in (int, str, bytes), value
    return value


def _value(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in _MARKS:
        made = _MARKS[value[0]](value[1:])
        # As the driver gives them: whole numbers as int, others as float.
        if isinstance(made, Decimal):
            return int(made) if made == made.to_integral_value() else float(made)
        return made
    return value


def _integrity(error: sqlite3.IntegrityError) -> oracledb.Error:
    said = str(error)
    if "UNIQUE" in said:
        return ora(1, "unique constraint (MEMO.SYS_C001) violated", oracledb.IntegrityError)
    if "NOT NULL" in said:
        return ora(1400, f"cannot insert NULL into ({said.rpartition(' ')[2]})", oracledb.IntegrityError)
    if "FOREIGN KEY" in said:
        return ora(2291, "integrity constraint violated - parent or child key", oracledb.IntegrityError)
    return ora(2290, f"check constraint violated: {said}", oracledb.IntegrityError)


def _operational(error: sqlite3.OperationalError, statement: str) -> oracledb.Error:
    said = str(error)
    if "already exists" in said:
        return ora(955, "name is already used by an existing object")
    if "duplicate column" in said:
        return ora(1430, "column being added already exists in table")
    if "no such table" in said:
        return ora(942, "table or view does not exist")
    if "locked" in said:
        return ora(30006, "resource busy; acquire with WAIT timeout expired")
    return ora(900, f"invalid SQL statement: {said}: {statement}")


def schema(database: Database, statements: Iterable[str]) -> None:
    """Let another program have made these tables."""
    connection = _open(database.path)
    for statement in statements:
        connection.execute(_ddl(statement))
    connection.close()
