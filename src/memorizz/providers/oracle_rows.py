"""Reading the rows of the stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from memorizz.providers.oracle_agents import Agents
from memorizz.providers.oracle_schema import EXTRAS, ID, Kind
from memorizz.providers.oracle_sessions import Sql
from memorizz.providers.oracle_values import DISPLACED, Shape, id_of, joined, micros, row_key, row_keys
from memorizz.providers.values import Unreadable
from memorizz.records import Record, natural_id
from memorizz.taxonomy import MemoryType

_TIMES: Final = ("timestamp", "created_at")


class Found(NamedTuple):
    """A row that was read: ``record`` is without its id, ``order`` says where it stands in its store."""

    key: bytes
    id: str
    record: Record
    order: int


class Rows:
    """The rows of every store, over connections that are handed in. ``prefix`` names the schema."""

    def __init__(self, prefix: str, shape: Callable[[MemoryType], Shape]) -> None:
        self._prefix = prefix
        self._shape = shape
        self.agents = Agents(prefix)

    def get(self, sql: Sql, store: MemoryType, id: str) -> Record | None:
        """The record of that id, without it.

        Raises:
            Unreadable: The row holds none.
        """
        shape = self._shape(store)
        keys = row_keys(shape.table, id)
        rows = {bytes(row[ID]): row for row in self._load(sql, shape, keys)}
        for key in keys:
            found = self._found(shape, rows[key]) if key in rows else None
            # Where ids are UUIDs, another text stands for the one that follows from it.
            if found is not None and (shape.table.keeps_uuids or found.id == id):
                if store is MemoryType.MEMAGENT:
                    self.agents.complete(sql, {key: found.record})
                return found.record
        return None

    def load(self, sql: Sql, store: MemoryType, keys: Sequence[bytes]) -> list[tuple[bytes, Found | Unreadable]]:
        """The rows of these keys that are still there, in their order."""
        shape = self._shape(store)
        rows = {bytes(row[ID]): row for row in self._load(sql, shape, keys)}
        found: dict[bytes, Found | Unreadable] = {}
        for key in keys:
            if key in rows:
                try:
                    found[key] = self._found(shape, rows[key])
                except Unreadable as error:
                    found[key] = error
        if store is MemoryType.MEMAGENT:
            self.agents.complete(sql, {key: row.record for key, row in found.items() if isinstance(row, Found)})
        return list(found.items())

    def find(self, sql: Sql, store: MemoryType, ids: Sequence[str]) -> dict[str, str]:
        """See ``Provider.find``."""
        shape = self._shape(store)
        table = shape.table
        keys = dict.fromkeys(key for id in ids for key in row_keys(table, id))
        rows = {row.key: row for row in self.brief(sql, shape, f"{ID} IN ({{}})", keys)}
        if table.natural is not None:
            naturals = list(self.brief(sql, shape, f"{table.natural} IN ({{}})", ids))
            naturals += self.brief(sql, shape, f"{table.natural} LIKE {{}}", [f"{DISPLACED}%"])
            rows |= {row.key: row for row in naturals}
        wanted = set(ids)
        found: dict[str, str] = {}
        for row in sorted(rows.values(), key=in_order):
            natural = natural_id(store, row.record)
            if natural in wanted:
                found.setdefault(natural, row.id)
        physical = {row.id for row in rows.values()}
        left = wanted - found.keys()
        return found | {id: id for id in left if id in physical or (table.keeps_uuids and row_key(table, id) in rows)}

    def keys(self, sql: Sql, store: MemoryType) -> list[bytes]:
        """The keys of all rows, in the order they were added."""
        shape = self._shape(store)
        if not shape.is_there:
            return []
        position = f"JSON_VALUE({EXTRAS}, '$.memorizz_row.position')" if shape.has_extras else "NULL"
        rows = sql.query(f"SELECT {ID}, {position}, {_time_of(shape) or 'NULL'} FROM {self.name(shape)}")
        return [key for _, key in sorted((_order(place, moment), bytes(key)) for key, place, moment in rows)]

    def count(self, sql: Sql, store: MemoryType) -> int:
        """How many rows can be read."""
        shape = self._shape(store)
        if not shape.is_there:
            return 0
        readable = f" WHERE {EXTRAS} IS NULL OR {EXTRAS} LIKE '{{%'" if shape.has_extras else ""
        return int(sql.query(f"SELECT COUNT(*) FROM {self.name(shape)}{readable}")[0][0])

    def unreadable(self, sql: Sql, store: MemoryType) -> list[bytes]:
        """The keys of rows whose extras are no object."""
        shape = self._shape(store)
        if not shape.is_there or not shape.has_extras:
            return []
        rows = sql.query(f"SELECT {ID} FROM {self.name(shape)} WHERE {EXTRAS} NOT LIKE '{{%'")
        return [bytes(row[0]) for row in rows]

    def name(self, shape: Shape) -> str:
        """What the table is called in statements."""
        return f"{self._prefix}{shape.table.name}"

    def _load(self, sql: Sql, shape: Shape, keys: Iterable[bytes]) -> list[dict[str, Any]]:
        if not shape.is_there:
            return []
        names = [ID, *(column.name for column in shape.columns.values()), *([EXTRAS] if shape.has_extras else [])]
        statement = f"SELECT {', '.join(names)} FROM {self.name(shape)} WHERE {ID} IN ({{}})"
        return [dict(zip(names, row, strict=True)) for row in sql.among(statement, keys)]

    def brief(self, sql: Sql, shape: Shape, condition: str, values: Iterable[Any]) -> Iterator[Found]:
        """Rows without most of their columns: their ids, natural ids and places."""
        if not shape.is_there:
            return
        table = shape.table
        narrow = shape._replace(columns={name: shape.columns[name] for name in [table.natural] if name is not None})
        names = [ID, table.natural or "NULL", _time_of(shape) or "NULL", EXTRAS if shape.has_extras else "NULL"]
        statement = f"SELECT {', '.join(names)} FROM {self.name(shape)} WHERE {condition}"
        for key, natural, moment, extras in sql.among(statement, values):
            row = {ID: bytes(key), table.natural: natural, _time_of(shape): moment, EXTRAS: extras}
            try:
                yield self._found(narrow, row)
            except Unreadable:
                yield Found(bytes(key), id_of(table, bytes(key), natural, {}), {}, _order(None, moment))

    def _found(self, shape: Shape, row: Mapping[Any, Any]) -> Found:
        record, meta = joined(shape, row)
        key = bytes(row[ID])
        moment = row.get(_time_of(shape))
        natural = None if shape.table.natural is None else row[shape.table.natural]
        return Found(key, id_of(shape.table, key, natural, meta), record, _order(meta.get("position"), moment))


def _time_of(shape: Shape) -> str | None:
    """The column that says where a row stands that another program wrote."""
    found = (shape.columns.get(name) for name in _TIMES)
    return next((column.name for column in found if column is not None and column.kind is Kind.TIME), None)


def _order(position: Any, moment: datetime | None) -> int:
    try:
        return int(position)
    except (TypeError, ValueError):
        return 0 if moment is None else micros(moment)


def in_order(row: Found) -> tuple[int, bytes]:
    """What rows are sorted by."""
    return row.order, row.key
