"""What a schema has: its tables as they are, and making what is missing there."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from memorizz.errors import ProviderFault
from memorizz.providers.oracle_schema import EXTRAS, SIDE_TABLES, TABLES, Kind, Table, definitions
from memorizz.providers.oracle_sessions import Sessions
from memorizz.providers.oracle_values import Limit, Shape
from memorizz.taxonomy import MemoryType

_COLUMNS: Final = (
    "SELECT table_name, column_name, data_length, char_length, nullable, default_length FROM all_tab_columns "
    "WHERE owner = :b0"
)
_OCTETS: Final = 4000
_EXISTS: Final = frozenset({955, 1430})
"""ORA-00955, ORA-01430: the table, or the column, is there already."""
_FORBIDDEN: Final = frozenset({1031, 1536, 1950})
"""ORA-01031, ORA-01536, ORA-01950: no privilege, or no room in the tablespace."""


class _Live(NamedTuple):
    """A column as the database describes it."""

    octets: int
    characters: int
    is_nullable: bool
    has_default: bool


class Tables:
    """The tables of one schema. What is there is read once; what is missing is looked for again."""

    def __init__(self, sessions: Sessions, driver: Any, owner: str, prefix: str) -> None:
        self._sessions = sessions
        self._driver = driver
        self._owner = owner
        self._prefix = prefix
        self._live: dict[str, dict[str, _Live]] = {}
        self._shapes: dict[MemoryType, Shape] = {}
        self._mutex = threading.Lock()

    @property
    def is_empty(self) -> bool:
        """Whether none of the tables was there when last looked at."""
        return not any(shape.is_there for shape in self._shapes.values())

    def load(self) -> None:
        """Read what is there."""
        live: dict[str, dict[str, _Live]] = {}
        with self._sessions.reading() as sql:
            for table, column, octets, characters, nullable, default in sql.query(_COLUMNS, [self._owner]):
                described = _Live(octets or 0, characters or 0, nullable != "N", bool(default))
                live.setdefault(table.lower(), {})[column.lower()] = described
        self._live = live
        self._shapes = {store: _shape(table, live.get(table.name, {})) for store, table in TABLES.items()}

    def shape(self, store: MemoryType) -> Shape:
        """The table of a store, as it was when last looked at."""
        return self._shapes[store]

    def refresh(self, *stores: MemoryType) -> None:
        """Look again where something is missing: another program may have made it meanwhile."""
        if not all(self._shapes[store].has_extras for store in stores or MemoryType):
            self.load()

    def prepare(self, stores: Iterable[MemoryType]) -> None:
        """Make what writing into these stores needs: the tables, and in each the column for all other fields.

        The database commits that at once, so it is done before a transaction begins.

        Raises:
            ProviderFault: The user may not.
        """
        needed = [store for store in dict.fromkeys(stores) if not self._is_ready(store)]
        if not needed:
            return
        with self._mutex:
            self.load()
            if any(not self._shapes[store].is_there for store in needed) or SIDE_TABLES.keys() - self._live.keys():
                for name, statement in definitions(self._prefix):
                    if name not in self._live:
                        self._define(statement, f"make the table {name}", "CREATE TABLE and a quota")
            for store in needed:
                shape = self._shapes[store]
                if shape.is_there and not shape.has_extras:
                    statement = f"ALTER TABLE {self._prefix}{store} ADD ({EXTRAS} CLOB CHECK ({EXTRAS} IS JSON))"
                    self._define(statement, f"add {EXTRAS} to the table {store}", "ALTER on it")
            self.load()

    def _is_ready(self, store: MemoryType) -> bool:
        shape = self._shapes.get(store)
        return shape is not None and shape.is_there and shape.has_extras and SIDE_TABLES.keys() <= self._live.keys()

    def _define(self, statement: str, what: str, privilege: str) -> None:
        try:
            with self._sessions.apart() as sql:
                sql.run(statement)
        except self._driver.DatabaseError as error:
            if error_code(error) in _FORBIDDEN:
                raise ProviderFault(f"the user may not {what}: that needs the privilege {privilege}") from None
            if error_code(error) not in _EXISTS:
                raise


def error_code(error: Exception) -> int:
    """The number in ``ORA-00001``; 0 for what is not the database's own."""
    first = error.args[0] if error.args else None
    return int(getattr(first, "code", 0) or 0)


def _shape(table: Table, live: dict[str, _Live]) -> Shape:
    is_there = bool(live)
    columns = {column.key: column for column in table.columns if not is_there or column.name in live}
    limits = {}
    for column in columns.values():
        if column.kind is Kind.TEXT:
            found = live.get(column.name)
            limits[column.name] = (
                Limit(column.size, min(column.size * 4, _OCTETS))
                if found is None
                else Limit(found.characters or found.octets, found.octets)
            )
    if not is_there:
        required = {column.name for column in table.columns if column.required and column.default is None}
        return Shape(table, columns, limits, frozenset(required), frozenset(), is_there=False, has_extras=False)
    known = {column.name for column in table.columns}
    must = {name for name, column in live.items() if not column.is_nullable and name != "id"}
    has_default = {name for name in must if live[name].has_default}
    return Shape(
        table,
        columns,
        limits,
        required=frozenset((must - has_default) & known),
        filled=frozenset(has_default & known),
        unknown=tuple(sorted(must - has_default - known)),
        has_extras=EXTRAS in live,
    )
