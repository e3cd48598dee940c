"""What a table cannot hold: said before anything is written."""

from __future__ import annotations

from typing import Any

from agent_memory.errors import shorten
from memorizz.errors import InvalidRecord
from memorizz.providers.ids import broken_rule
from memorizz.providers.oracle_schema import LINK_SIZES, Column, Kind
from memorizz.providers.oracle_values import Shape, instead_of, native, text_of
from memorizz.providers.values import encode
from memorizz.records import Record, natural_id
from memorizz.taxonomy import MemoryType


def check(shape: Shape, id: str, record: Record) -> None:
    """Do nothing for a record that the table can hold.

    Raises:
        InvalidRecord: It cannot; the message names store, record, field and rule.
    """
    store = shape.table.store
    where = f"{store} {shorten(id)!r}"
    rule = broken_rule(id)
    if rule is not None:
        raise InvalidRecord(f"{where}: the id {rule}")
    encode(store, id, record)
    if shape.unknown:
        raise InvalidRecord(
            f"{where}: the table {store} demands {shape.unknown[0]}, a column that this program does not know"
        )
    natural = natural_id(store, record)
    if natural is not None and shape.table.natural is not None:
        _check_text(where, shape, shape.columns[shape.table.natural], natural)
    natives = {column.name: native(shape, column, record.get(field)) for field, column in shape.columns.items()}
    for field, column in shape.columns.items():
        _check_field(where, shape, column, record.get(field), instead_of(shape, column, natives, record))
    if store is MemoryType.MEMAGENT:
        _check_links(where, record)


def _check_field(where: str, shape: Shape, column: Column, value: Any, other: Any) -> None:
    if column.kind is Kind.TEXT and value is not None and column.name not in _ELSEWHERE:
        _check_text(where, shape, column, text_of(value))
    if column.name not in shape.required or column.name == shape.table.natural:
        return
    if (value is None or value == "") and other is None:
        raise InvalidRecord(
            f"{where}: {column.key} must be there and not be empty: the column {column.name} of the table takes no null"
        )
    if native(shape, column, value) is None and other is None:
        rule = f"one of {', '.join(column.choices)}" if column.choices else f"a value for {column.kind.value}"
        raise InvalidRecord(f"{where}: {column.key} must be {rule} (got {shorten(repr(value))})")


_ELSEWHERE = frozenset({"role_type"})
"""Columns for a short form of something that people write at any length: the extras hold what does not fit."""


def _check_text(where: str, shape: Shape, column: Column, text: str) -> None:
    limit = shape.limits[column.name]
    if not limit.takes(text):
        raise InvalidRecord(
            f"{where}: {column.key} must have at most {limit.characters} characters and {limit.octets} bytes "
            f"(got {len(text)} and {len(text.encode(errors='surrogatepass'))})"
        )


def _check_links(where: str, record: Record) -> None:
    for field, size in LINK_SIZES.items():
        value = record.get(field)
        for item in value if isinstance(value, list) else ():
            if isinstance(item, str) and len(item) > size:
                raise InvalidRecord(
                    f"{where}: what {field} lists must have at most {size} characters (got {len(item)})"
                )
