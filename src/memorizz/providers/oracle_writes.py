"""Writing the rows of the stores, and what is kept beside them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from uuid import UUID

from agent_memory.errors import shorten
from memorizz.errors import RecordExists
from memorizz.providers.oracle_rows import Found, Rows
from memorizz.providers.oracle_schema import EXTRAS, ID, LARGE, OF_AGENTS, Column, Kind
from memorizz.providers.oracle_sessions import Sql
from memorizz.providers.oracle_values import Shape, displaced, row_key, row_keys, split, with_meta
from memorizz.records import Record, natural_id
from memorizz.taxonomy import MemoryType

_LINKED = {MemoryType.SUMMARIES: "summary_id", MemoryType.CONVERSATION_MEMORY: "message_id"}


class _Made(NamedTuple):
    """A record as a statement writes it. ``columns`` leave out what the database fills itself."""

    is_new: bool
    columns: tuple[str, ...]
    values: tuple[Any, ...]


class Writes(Rows):
    """Writing rows. What is given was checked, and the tables were prepared."""

    def __init__(
        self, prefix: str, shape: Callable[[MemoryType], Shape], driver: Any, clock: Callable[[], int]
    ) -> None:
        super().__init__(prefix, shape)
        self._driver = driver
        self._clock = clock
        self._last = 0
        self._mutex = threading.Lock()

    def put(self, sql: Sql, store: MemoryType, records: Sequence[tuple[str, Record]], *, replace: bool) -> None:
        """Write records in few statements.

        Raises:
            RecordExists: An id is taken, or given twice, and ``replace`` is not set.
        """
        shape = self._shape(store)
        wanted = _distinct(shape, records, replace=replace)
        before = self._matches(sql, shape, [id for id, _ in wanted.values()])
        if before and not replace:
            taken = next(id for id, _ in wanted.values() if id in before)
            raise RecordExists(f"{store} {shorten(taken)!r}: a record of this id is there already")
        holders = self._holders(sql, shape, wanted.values())
        known = self._known_agents(sql, shape, wanted.values())
        made = []
        written: dict[bytes, Record] = {}
        for key, (id, record) in wanted.items():
            old = before.get(id)
            place = key if old is None else old.key
            order = self._next() if old is None else old.order
            natives, text = self._split(shape, id, record, place, order, holders)
            if known is not None and natives.get("agent_id") not in known:
                natives["agent_id"] = None
            made.append(self._made(shape, place, natives, text, is_new=old is None))
            written[place] = record
        if store is MemoryType.MEMAGENT:
            self.agents.release(sql, _renamed(before, written))
        for (is_new, columns), group in groupby(sorted(made, key=_statement), key=_statement):
            self._write(sql, shape, columns, [row.values for row in group], is_new=is_new)
        if store is MemoryType.MEMAGENT:
            self.agents.write(sql, written, self.type_of)
            self._welcome(sql, written)
        elif store is MemoryType.SUMMARIES:
            self._link_messages(sql, written)

    def delete(self, sql: Sql, store: MemoryType, ids: Iterable[str]) -> int:
        """Remove records, and what refers to their rows by key; how many there were."""
        shape = self._shape(store)
        if not shape.is_there:
            return 0
        rows = self._matches(sql, shape, ids).values()
        keys = list({row.key: None for row in rows})
        if store is MemoryType.MEMAGENT:
            self.agents.clear(sql, keys)
            self.agents.unlink(sql, keys)
            self.agents.release(sql, _names(rows))
        if store in _LINKED:
            self._unlink_messages(sql, _LINKED[store], keys)
        return sql.many(f"DELETE FROM {self.name(shape)} WHERE {ID} = :b0", [(key,) for key in keys])

    def type_of(self, column: Column) -> Any:
        """What the driver calls the values of a column, where it could guess wrong."""
        if column.kind in LARGE:
            # Long texts go along with the statement, without a way to the server for each.
            return self._driver.DB_TYPE_LONG
        if column.kind is Kind.VECTOR:
            return self._driver.DB_TYPE_VECTOR
        if column.kind is Kind.TIME:
            return self._driver.DB_TYPE_TIMESTAMP
        return None if column.kind is Kind.TEXT else self._driver.DB_TYPE_NUMBER

    def _matches(self, sql: Sql, shape: Shape, ids: Iterable[str]) -> dict[str, Found]:
        """The rows of these records, by id."""
        wanted = list(dict.fromkeys(ids))
        keys = dict.fromkeys(key for id in wanted for key in row_keys(shape.table, id))
        rows = {row.key: row for row in self.brief(sql, shape, f"{ID} IN ({{}})", keys)}
        found: dict[str, Found] = {}
        for id in wanted:
            for key in row_keys(shape.table, id):
                if key in rows and (shape.table.keeps_uuids or rows[key].id == id):
                    found.setdefault(id, rows[key])
        return found

    def _holders(self, sql: Sql, shape: Shape, records: Iterable[tuple[str, Record]]) -> dict[str, bytes]:
        """Which row has which of the values that the natural column would be given."""
        table = shape.table
        if not table.is_unique:
            return {}
        texts = {natural_id(table.store, record) or id for id, record in records}
        statement = f"SELECT {table.natural}, {ID} FROM {self.name(shape)} WHERE {table.natural} IN ({{}})"
        return {text: bytes(key) for text, key in sql.among(statement, sorted(texts))}

    def _known_agents(
        self, sql: Sql, shape: Shape, records: Iterable[tuple[str, Record]]
    ) -> Mapping[str, bytes] | None:
        """The agents that records of a table with a foreign key may refer to."""
        if not shape.table.has_agent:
            return None
        named = (record.get("agent_id") for _, record in records)
        return self.agents.known(sql, (id for id in named if isinstance(id, str)))

    def _split(
        self, shape: Shape, id: str, record: Record, key: bytes, order: int, holders: dict[str, bytes]
    ) -> tuple[dict[str, Any], str]:
        """The native columns and the extras of a record; ``holders`` learns of its natural id."""
        table = shape.table
        fill = None
        if table.natural is not None:
            own = record.get(table.natural)
            natural = natural_id(table.store, record)
            text = natural or id
            fits = shape.limits[table.natural].takes(text) and (natural is None or not isinstance(own, list | dict))
            if not fits or holders.setdefault(text, key) != key:
                text = displaced(key)
            fill = None if text == natural else text
        natives, extras, absent = split(shape, record, fill)
        meta: dict[str, Any] = {"position": order}
        if fill is not None or id != (
            natives.get(table.natural or "") if not table.keeps_uuids else str(UUID(bytes=key))
        ):
            meta["id"] = id
        if absent:
            meta["absent"] = absent
        return natives, with_meta(extras, meta)

    def _made(self, shape: Shape, key: bytes, natives: dict[str, Any], text: str, *, is_new: bool) -> _Made:
        kept = [
            column
            for column in shape.columns.values()
            if natives[column.name] is not None or column.name not in shape.filled
        ]
        # What may be long comes last: the database takes nothing long before something longer.
        names = [column.name for column in sorted(kept, key=lambda column: column.kind in LARGE)]
        return _Made(is_new, tuple(names), (*(natives[name] for name in names), text, key))

    def _write(
        self, sql: Sql, shape: Shape, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, is_new: bool
    ) -> None:
        names = [*columns, EXTRAS]
        if is_new:
            marks = ", ".join(f":b{number}" for number in range(len(names) + 1))
            statement = f"INSERT INTO {self.name(shape)} ({', '.join(names)}, {ID}) VALUES ({marks})"
        else:
            marks = ", ".join(f"{name} = :b{number}" for number, name in enumerate(names))
            statement = f"UPDATE {self.name(shape)} SET {marks} WHERE {ID} = :b{len(names)}"
        by_name = {column.name: column for column in shape.columns.values()}
        types = [*(self.type_of(by_name[name]) for name in columns), self._driver.DB_TYPE_LONG]
        sql.many(statement, rows, types)

    def _welcome(self, sql: Sql, written: Mapping[bytes, Record]) -> None:
        shapes = [self._shape(store) for store in OF_AGENTS]
        rows = self.brief(sql, self._shape(MemoryType.MEMAGENT), f"{ID} IN ({{}})", written)
        self.agents.welcome(sql, set(_names(rows)), written, shapes)

    def _link_messages(self, sql: Sql, written: Mapping[bytes, Record]) -> None:
        """Link summaries to the messages they cover, as far as these are there."""
        table = self._shape(MemoryType.CONVERSATION_MEMORY).table
        self._unlink_messages(sql, "summary_id", written)
        links = []
        for key, record in written.items():
            sources = record.get("source_message_ids")
            texts = [text for text in sources if isinstance(text, str)] if isinstance(sources, list) else []
            messages = dict.fromkeys(row_key(table, text) for text in texts)
            links += [(key, place, message) for place, message in enumerate(messages)]
        sql.many(
            f"INSERT INTO {self._prefix}summary_message_links (summary_id, message_id, position) "
            f"SELECT :b0, m.id, :b1 FROM {self._prefix}conversation_memory m WHERE m.id = :b2",
            links,
        )

    def _unlink_messages(self, sql: Sql, column: str, keys: Iterable[bytes]) -> None:
        sql.many(f"DELETE FROM {self._prefix}summary_message_links WHERE {column} = :b0", [(key,) for key in keys])

    def _next(self) -> int:
        """The next place in the order of all records, which follows the time."""
        with self._mutex:
            self._last = max(self._last + 1, self._clock() // 1000)
            return self._last


def _distinct(shape: Shape, records: Sequence[tuple[str, Record]], *, replace: bool) -> dict[bytes, tuple[str, Record]]:
    """The records by the keys of their rows; of those given twice the last, in the place of the first."""
    found: dict[bytes, tuple[str, Record]] = {}
    for id, record in records:
        key = row_key(shape.table, id)
        if key in found and not replace:
            raise RecordExists(f"{shape.table.store} {shorten(id)!r}: the id is given twice")
        found[key] = (id, record)
    return found


def _statement(row: _Made) -> tuple[bool, tuple[str, ...]]:
    return row.is_new, row.columns


def _names(agents: Iterable[Found]) -> list[str]:
    """What agents are called by those that refer to them."""
    return [natural_id(MemoryType.MEMAGENT, row.record) or row.id for row in agents]


def _renamed(before: Mapping[str, Found], written: Mapping[bytes, Record]) -> list[str]:
    """The names that agents had and do not have any more."""
    changed = []
    for row in before.values():
        old = natural_id(MemoryType.MEMAGENT, row.record) or row.id
        if old != (natural_id(MemoryType.MEMAGENT, written[row.key]) or row.id):
            changed.append(old)
    return changed
