"""Records as documents: what BSON has a type for stands there as that type, and the rest in a form that is read back.

The only file that knows the types of BSON.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

import bson
from bson.binary import Binary, BinaryVectorDtype, UuidRepresentation
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.errors import BSONError
from bson.int64 import Int64
from bson.objectid import ObjectId

from memorizz.providers.values import Unreadable
from memorizz.records import Record
from memorizz.taxonomy import MemoryType

ASIDE: Final = "_memorizz"
"""The field of a document in which this program notes what is no field of the record."""

ORDER: Final = f"{ASIDE}.order"
"""Where it notes when the record was added. Documents of other programs have none."""

MAX_BYTES: Final = 16 * 1024 * 1024
"""The biggest document of the database."""

OPTIONS: Final[CodecOptions[dict[str, Any]]] = CodecOptions(
    tz_aware=True,
    tzinfo=UTC,
    datetime_conversion=DatetimeConversion.DATETIME_AUTO,
    uuid_representation=UuidRepresentation.UNSPECIFIED,
)

_LENIENT: Final = OPTIONS.with_options(unicode_decode_error_handler="replace")
_OURS: Final = frozenset({"_id", "id", ASIDE})
_ESCAPE: Final = "memorizz:"
_WRAPPED: Final = f"{_ESCAPE}json"
_TEXTS: Final = "texts"
_HEX: Final = frozenset("0123456789abcdef")
_DATES: Final = {MemoryType.SEMANTIC_CACHE: frozenset({"expires_at"})}
"""The fields that are dates in the database: an index there removes what has expired, and looks at dates only."""
_AS_JSON: Final = json.JSONEncoder(ensure_ascii=False).encode


class Stored(NamedTuple):
    """A document as it was found: its ``_id`` as it is there, its place, its fields, and why they cannot be read."""

    raw: bytes
    key: Any
    order: float | None
    fields: dict[str, Any]
    fault: str | None = None


def stored(raw: bytes) -> Stored:
    """What is to be known of a document."""
    fault = None
    try:
        fields = bson.decode(raw, OPTIONS)
    except (BSONError, RecursionError, ValueError, OverflowError) as error:
        fault = f"cannot be decoded ({error})"
        try:
            fields = bson.decode(raw, _LENIENT)
        except (BSONError, RecursionError, ValueError, OverflowError):
            return Stored(raw, None, None, {}, fault)
    aside = fields.get(ASIDE)
    order = aside.get("order") if isinstance(aside, dict) else None
    if isinstance(order, bson.Decimal128):
        order = float(order.to_decimal())
    placed = isinstance(order, int | float) and order >= 0
    return Stored(raw, fields.get("_id"), order if placed else None, fields, fault)


def text_of(key: Any) -> str | None:
    """An ``_id`` as the id of a record, or ``None`` where it is of a type that is none."""
    return key if isinstance(key, str) else str(key) if isinstance(key, ObjectId) else None


def is_hex(id: str) -> bool:
    """Whether an ObjectId could have that text."""
    return len(id) == 24 and _HEX.issuperset(id)


def is_hex_text(key: Any) -> bool:
    """Whether an ``_id`` is such a text in place of the ObjectId."""
    return isinstance(key, str) and is_hex(key)


def key_for(id: str) -> Any:
    """The ``_id`` that a record of that id gets where there is none yet."""
    return ObjectId(id) if is_hex(id) else id


def keys_of(id: str) -> list[Any]:
    """Each ``_id`` under which a record of that id may be stored, the first counts."""
    return [ObjectId(id), id] if is_hex(id) else [id]


def natural_values(id: str) -> list[Any]:
    """Each value that reads as this natural id."""
    found = keys_of(id)
    for kind in (int, float):
        try:
            number = kind(id)
        except (ValueError, OverflowError):
            continue
        if str(number) == id and abs(number) < 2**63:
            found.append(number)
    return found


def measure(document: Mapping[str, Any]) -> int:
    """The bytes of a document."""
    return len(bson.encode(document, codec_options=OPTIONS))


def to_document(
    store: MemoryType, key: Any, record: Record, order: float | None, before: Stored | None = None
) -> dict[str, Any]:
    """The document of a record. What ``before`` has in a type of its own stays so where the record says the same."""
    old: Mapping[str, Any] = {}
    was: Record = {}
    if before is not None and before.fault is None:
        old, was = before.fields, to_record(before)
    document: dict[str, Any] = {"_id": key}
    texts = {}
    for name, value in record.items():
        if name in ("_id", "id"):
            continue
        place = _key(name, top=True)
        there = old.get(place)
        if type(value) is str and (isinstance(there, datetime) or name in _DATES.get(store, ())):
            date = _date(value)
            if date is not None:
                document[place] = date
                if date.isoformat() != value:
                    texts[_key(name)] = value
                continue
        if _is_special(there) and _AS_JSON(was[name]) == _AS_JSON(value):
            document[place] = there
        else:
            document[place] = _value(value)
    aside: dict[str, Any] = {} if order is None else {"order": order if isinstance(order, float) else Int64(order)}
    if texts:
        aside[_TEXTS] = texts
    if aside:
        document[ASIDE] = aside
    return document


def to_record(found: Stored) -> Record:
    """The record of a document.

    Raises:
        Unreadable: It cannot be decoded, or its ``_id`` is no id.
    """
    if found.fault is not None:
        raise Unreadable(found.fault)
    id = text_of(found.key)
    if id is None:
        raise Unreadable("has an _id that is neither text nor an ObjectId")
    fields = found.fields
    record = {_name(place): plain(value) for place, value in fields.items() if place not in _OURS}
    aside = fields.get(ASIDE)
    texts = aside.get(_TEXTS) if isinstance(aside, dict) else None
    for place, text in texts.items() if isinstance(texts, dict) else ():
        name = _name(place)
        # Another program may have set another date since.
        if isinstance(text, str) and name in record and _date(text) == fields.get(_key(name, top=True)):
            record[name] = text
    return {**record, "_id": id, "id": id}


def _date(text: str) -> datetime | None:
    """The date that a text says, to the millisecond as the database keeps it, or ``None``. Without a zone it is UTC."""
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment - timedelta(microseconds=moment.microsecond % 1000)


def _key(name: str, *, top: bool = False) -> str:
    """A key as the database takes it."""
    odd = "\0" in name or name.startswith(_ESCAPE) or (top and (name[:1] == "$" or name == ASIDE))
    return _ESCAPE + json.dumps(name) if odd else name


def _name(place: str) -> str:
    """The key that :func:`_key` made ``place`` of."""
    if place.startswith(_ESCAPE):
        try:
            name = json.loads(place[len(_ESCAPE) :])
        except ValueError:
            return place
        if isinstance(name, str):
            return name
    return place


def _value(value: Any) -> Any:
    """A JSON value as the database takes it."""
    kind = type(value)
    if kind is int:
        return value if -(2**63) <= value < 2**63 else {_WRAPPED: str(value)}
    if kind is list:
        return [_value(item) for item in value]
    if kind is dict:
        made = {_key(name): _value(item) for name, item in value.items()}
        if "$ref" in made and "$id" in made:
            # Read as a reference, it would lose the order of its keys.
            return {_ESCAPE + json.dumps(name) if name == "$ref" else name: item for name, item in made.items()}
        return made
    return value


def plain(value: Any) -> Any:
    """A value of a document as a JSON value."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return value if math.isfinite(value) else _FLOATS.get(str(value))
    if kind is list:
        return [plain(item) for item in value]
    if kind is dict:
        return _object(value)
    return next((form(value) for base, form in _FORMS if isinstance(value, base)), str(value))


def _object(value: Mapping[str, Any]) -> Any:
    if len(value) == 1 and type(value.get(_WRAPPED)) is str:
        try:
            return json.loads(value[_WRAPPED])
        except ValueError:
            pass
    return {_name(place): plain(item) for place, item in value.items()}


def _is_special(value: Any) -> bool:
    """Whether a value has, or holds one that has, a type that JSON has not."""
    kind = type(value)
    if kind is list or kind is dict:
        return any(map(_is_special, value.values() if kind is dict else value))
    return not (value is None or kind in (str, int, bool, float)) or (kind is float and not math.isfinite(value))


def _binary(value: bytes) -> Any:
    if isinstance(value, Binary):
        try:
            if value.subtype == 4:
                return str(UUID(bytes=bytes(value)))
            if value.subtype == 9:
                vector = value.as_vector()
                if vector.dtype is not BinaryVectorDtype.PACKED_BIT:
                    return [plain(number) for number in vector.data]
        except ValueError:
            pass
    return b64encode(value).decode()


def _flags(flags: int) -> str:
    return "".join(letter for bit, letter in _FLAGS if flags & bit)


_FLOATS: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_FLAGS: Final = ((2, "i"), (4, "l"), (8, "m"), (16, "s"), (32, "u"), (64, "x"))
_FORMS: Final[Iterable[tuple[type, Callable[[Any], Any]]]] = (
    (Int64, int),
    (datetime, datetime.isoformat),
    (ObjectId, str),
    (bson.Decimal128, str),
    (bytes, _binary),
    (bson.DatetimeMS, int),
    (bson.Regex, lambda value: f"/{value.pattern}/{_flags(value.flags)}"),
    (bson.Timestamp, lambda value: {"t": value.time, "i": value.inc}),
    (bson.Code, lambda value: str(value) if value.scope is None else {"code": str(value), "scope": plain(value.scope)}),
    (bson.DBRef, lambda value: plain(dict(value.as_doc()))),
    (bson.MinKey, lambda _: "MinKey"),
    (bson.MaxKey, lambda _: "MaxKey"),
)
