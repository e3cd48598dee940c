"""Records as rows: the keys of rows, JSON values in native columns, and back without a loss."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any, Final, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

from memorizz.providers.oracle_schema import EXTRAS, ID, Column, Kind, Table
from memorizz.providers.values import Unreadable, decode
from memorizz.records import Record

META: Final = "memorizz_row"
"""The member of the extras that says what the provider itself has to know of a row: its ``id`` where the key does not
say it, its ``position``, the fields that are ``absent`` although their column is filled, and ``field``, the record's
own field of this name."""

DISPLACED: Final = "memorizz-row:"
"""What stands in front of the key, in the natural column of a row whose natural id another row has."""

_IDENTITY: Final = frozenset({"_id", "id"})
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - as columns have it: UTC, without saying so
_DIGITS: Final = 10**38
_CENT: Final = Decimal("0.01")
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def target_id(table: Table, id: str) -> str:
    """The id that a record of that id has in this table after a restore: a UUID where rows are known by theirs."""
    return str(UUID(bytes=row_key(table, id))) if table.keeps_uuids else id


def row_key(table: Table, id: str) -> bytes:
    """The key of the row of a record."""
    if not table.keeps_uuids:
        return uuid5(NAMESPACE_URL, f"memorizz-row:{table.name}:{id}").bytes
    return uuid_of(id) or uuid5(NAMESPACE_URL, f"memorizz:{table.name}:{id}").bytes


def uuid_of(id: str) -> bytes | None:
    """The UUID that a text is, or ``None``."""
    try:
        return UUID(id).bytes
    except ValueError:
        return None


def row_keys(table: Table, id: str) -> list[bytes]:
    """The keys that the row of a record may have: other programs choose theirs freely."""
    key, other = row_key(table, id), uuid_of(id)
    return [key] if other is None or other == key else [key, other]


def id_of(table: Table, key: bytes, natural: str | None, meta: Mapping[str, Any]) -> str:
    """The id of the record in a row."""
    said = meta.get("id")
    if isinstance(said, str) and key in row_keys(table, said):
        return said
    if not table.keeps_uuids and natural is not None and row_key(table, natural) == key:
        return natural
    return str(UUID(bytes=key))


class Limit(NamedTuple):
    """How long the texts of a column may be, in characters and in bytes of UTF-8."""

    characters: int
    octets: int

    def takes(self, text: str) -> bool:
        """Whether the column can hold ``text``."""
        return len(text) <= self.characters and (
            len(text) * 4 <= self.octets or len(text.encode(errors="surrogatepass")) <= self.octets
        )


class Shape(NamedTuple):
    """A table as it is in the database: the columns that this program knows, by field, and how long texts may be.

    ``required`` are the columns that must be given, ``filled`` those that the database fills when they are not;
    ``unknown`` must be given too, and nobody here knows what they hold.
    """

    table: Table
    columns: Mapping[str, Column]
    limits: Mapping[str, Limit]
    required: frozenset[str]
    filled: frozenset[str]
    unknown: tuple[str, ...] = ()
    is_there: bool = True
    has_extras: bool = True


def native(shape: Shape, column: Column, value: Any) -> Any:
    """What a column holds of a JSON value; ``None`` where it can hold nothing of it."""
    if value is None or value == "":
        return None
    made = _NATIVE[column.kind](value)
    if column.kind is not Kind.TEXT:
        return made
    fits = shape.limits[column.name].takes(made) and (not column.choices or made in column.choices)
    return made if fits else None


def plain(column: Column, held: Any) -> Any:
    """The JSON value that a column says."""
    return None if held is None else _PLAIN[column.kind](held)


def split(shape: Shape, record: Record, fill: str | None) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """A record as native columns and extras; and the fields that it lacks although their column is filled.

    ``fill`` is what the natural column holds in place of the record's own natural id.
    """
    table = shape.table
    natives: dict[str, Any] = dict.fromkeys((column.name for column in shape.columns.values()), None)
    extras: dict[str, Any] = {}
    for field, value in record.items():
        column = shape.columns.get(field)
        if column is None:
            if field not in _IDENTITY:
                extras[field] = value
            continue
        held = natives[column.name] = native(shape, column, value)
        is_filled = fill is not None and column.name == table.natural
        if value is None or is_filled or _is_key_of_agent(table, field) or not _is_same(column, value, held):
            extras[field] = value
    if fill is not None and table.natural is not None:
        natives[table.natural] = fill
    absent = []
    for field, column in shape.columns.items():
        if natives[column.name] is None:
            natives[column.name] = instead_of(shape, column, natives, record)
        if field not in record and natives[column.name] is not None:
            absent.append(field)
    return natives, extras, absent


def with_meta(extras: dict[str, Any], meta: dict[str, Any]) -> str:
    """The text of a row's extras."""
    if META in extras:
        meta = {**meta, "field": extras[META]}
    return _ENCODER.encode({**extras, META: meta})


def read_extras(text: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The extras of a row, and what the provider noted there.

    Raises:
        Unreadable: They are no JSON object.
    """
    extras = {} if text is None else decode(text)
    noted = extras.pop(META, {})
    meta = noted if isinstance(noted, dict) else {}
    if "field" in meta:
        extras[META] = meta["field"]
    return extras, meta


def joined(shape: Shape, row: Mapping[str, Any]) -> tuple[Record, dict[str, Any]]:
    """The record in a row, without its id, and what the provider noted of it.

    A column counts. What the extras say of its field is the record's own value as long as the column holds what
    becomes of it.

    Raises:
        Unreadable: The extras are no JSON object, or a column of JSON text holds none.
    """
    record, meta = read_extras(row.get(EXTRAS))
    said = meta.get("absent")
    absent = said if isinstance(said, list) else []
    for field, column in shape.columns.items():
        held = row[column.name]
        stands_in = held is not None and _stands_in(shape, column, held, row, record, meta)
        if field in record:
            own = native(shape, column, record[field])
            is_unlinked = held is None and _is_key_of_agent(shape.table, field)
            if is_held(column, own, held) or stands_in or is_unlinked:
                continue
            del record[field]
        elif stands_in and field in absent:
            continue
        if held is not None:
            try:
                record[field] = plain(column, held)
            except ValueError:
                raise Unreadable(f"holds no JSON in {column.name}") from None
    return record, meta


def instead_of(shape: Shape, column: Column, natives: Mapping[str, Any], record: Mapping[str, Any]) -> Any:
    """What a column holds for want of a value of its own, or ``None``; ``natives`` is what the others hold."""
    if not column.instead:
        return column.default
    other = shape.columns.get(column.instead)
    return native(shape, column, record.get(column.instead) if other is None else natives[other.name])


def _stands_in(
    shape: Shape, column: Column, held: Any, row: Mapping[str, Any], record: Mapping[str, Any], meta: Mapping[str, Any]
) -> bool:
    """Whether a column holds what it does for want of a value of the record's that it could hold."""
    if column.name == shape.table.natural:
        return held in (displaced(row[ID]), meta.get("id"))
    return bool(held == instead_of(shape, column, row, record))


def displaced(key: bytes) -> str:
    """What the natural column holds when it cannot hold the natural id."""
    return f"{DISPLACED}{UUID(bytes=key)}"


def is_held(column: Column, own: Any, held: Any) -> bool:
    """Whether a column that was given ``own`` holds just that."""
    if own is None or held is None:
        return own is held
    if column.kind in (Kind.NUMBER, Kind.SCORE, Kind.FLAG):
        return Decimal(str(own)) == Decimal(str(held))
    if column.kind is Kind.TIME:
        return bool(own == _naive(held))
    return bool(own == held)


def _is_key_of_agent(table: Table, field: str) -> bool:
    return table.has_agent and field == "agent_id"


def _is_same(column: Column, value: Any, held: Any) -> bool:
    """Whether a value comes back as it was from a column that holds ``held``."""
    if column.kind is Kind.JSON:
        return held is not None
    if column.kind is Kind.VECTOR:
        # Single precision is what vectors are kept in.
        return held is not None
    back = plain(column, held)
    if type(value) is not type(back):
        return False
    if isinstance(value, dict | list | float):
        return repr(value) == repr(back)
    return bool(value == back)


def text_of(value: Any) -> str:
    """A JSON value as text: what is none as JSON."""
    return value if isinstance(value, str) else _ENCODER.encode(value)


def _as_number(value: Any) -> int | float | None:
    if type(value) is int and abs(value) < _DIGITS:
        return value
    if type(value) is float and (value == 0 or 1e-120 < abs(value) < 1e120):
        return value
    return None


def _as_score(value: Any) -> float | None:
    if type(value) not in (int, float):
        return None
    try:
        rounded = Decimal(str(value)).quantize(_CENT, ROUND_HALF_UP)
    except InvalidOperation:
        return None
    return float(rounded) if abs(rounded) < 10 else None


def _as_time(value: Any) -> datetime | None:
    try:
        if type(value) in (int, float):
            return _EPOCH + timedelta(seconds=value)
        if isinstance(value, str):
            return _naive(datetime.fromisoformat(value))
    except (ValueError, OverflowError):
        pass
    return None


def _naive(moment: datetime) -> datetime:
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def _as_vector(value: Any) -> array[float] | None:
    if not isinstance(value, list) or not value or any(type(item) not in (int, float) for item in value):
        return None
    try:
        made = array("f", value)
    except OverflowError:
        return None
    return made if all(map(math.isfinite, made)) else None


def _number(held: Any) -> int | float:
    if isinstance(held, int):
        return held
    if isinstance(held, Decimal):
        return int(held) if held == held.to_integral_value() else float(held)
    return int(held) if float(held).is_integer() else float(held)


def _document(text: str) -> Any:
    """Lists and objects as such, everything else as the text that it is."""
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass
    return text


_NATIVE: Final[Mapping[Kind, Callable[[Any], Any]]] = {
    Kind.TEXT: text_of,
    Kind.CLOB: text_of,
    Kind.JSON: _ENCODER.encode,
    Kind.DOCUMENT: text_of,
    Kind.NUMBER: _as_number,
    Kind.SCORE: _as_score,
    Kind.FLAG: lambda value: int(value) if value in (0, 1) else None,
    Kind.TIME: _as_time,
    Kind.VECTOR: _as_vector,
}
_PLAIN: Final[Mapping[Kind, Callable[[Any], Any]]] = {
    Kind.TEXT: str,
    Kind.CLOB: str,
    Kind.JSON: json.loads,
    Kind.DOCUMENT: _document,
    Kind.NUMBER: _number,
    Kind.SCORE: _number,
    Kind.FLAG: bool,
    Kind.TIME: lambda held: _naive(held).replace(tzinfo=UTC).isoformat(),
    Kind.VECTOR: lambda held: [float(number) for number in held],
}


def micros(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (_naive(moment) - _EPOCH) // timedelta(microseconds=1)
