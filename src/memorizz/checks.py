"""Refusing values of the wrong kind with a message that names store, record, field, rule and value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args, get_origin

import msgspec

from agent_memory.errors import shorten
from memorizz.errors import InvalidRecord
from memorizz.taxonomy import MemoryType

Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
"""Text that is not empty."""

Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""A number from 0 to 1."""

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
"""A whole number, 0 or more."""

_WORDS: Final = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "text",
    "object": "an object",
    "array": "a list",
}
_TYPES: Final = re.compile(r"Expected `([^`]+)`(?:, got .*)?")
_LENGTH: Final = re.compile(r"Expected `(?:str|array)` of length >= 1")
_PATTERN: Final = re.compile(r"Expected `str` matching regex (.+)")
_BOUND: Final = re.compile(r"Expected `(int|float)` ([<>]=) ([0-9.]+)")


def check(store: MemoryType, id: object, fields: Mapping[str, Any], types: Mapping[str, Any]) -> None:
    """Do nothing when each field of which ``types`` knows the type is of it. Other fields may be anything.

    Raises:
        InvalidRecord: One is not.
    """
    for name, value in fields.items():
        if name in types:
            try:
                msgspec.convert(value, types[name])
            except msgspec.ValidationError as error:
                if get_origin(types[name]) is Literal:
                    rule = f"one of {', '.join(map(repr, get_args(types[name])))}"
                    raise invalid(store, id, name, rule, value) from None
                raise refusal(store, id, fields, _placed(str(error), name)) from None


def refusal(store: MemoryType, id: object, data: Mapping[str, Any], message: str) -> InvalidRecord:
    """The error for a message of the validating library, which ends in the place: ``- at `$.tools[0]```."""
    rule, _, place = message.partition(" - at `$.")
    place = place.rstrip("`")
    name, *indices = re.findall(r"[^.\[\]]+", place)
    value = data.get(name)
    for index in indices:
        # A key of an object is not in the place, which then holds an ellipsis: the whole object is shown.
        if isinstance(value, list) and index.isdecimal():
            value = value[int(index)]
    return invalid(store, id, place, _said(rule), value)


def invalid(store: MemoryType, id: object, name: str, rule: str, value: object) -> InvalidRecord:
    """The error for a field that breaks a rule: ``rule`` goes on after "must be"."""
    who = shorten(repr(id)) if id else "a new record"
    return InvalidRecord(f"{store}: {who}: {name} must be {rule} (got {shorten(repr(value))})")


def _placed(message: str, name: str) -> str:
    rule, at, place = message.partition(" - at `$")
    return f"{rule} - at `$.{name}{place.rstrip('`') if at else ''}`"


def _said(rule: str) -> str:
    if _LENGTH.match(rule):
        return "text that is not empty"
    if bound := _BOUND.match(rule):
        return f"{_WORDS[bound[1]]} {bound[2]} {bound[3]}"
    if pattern := _PATTERN.match(rule):
        return f"text of the form {pattern[1]}"
    if types := _TYPES.match(rule):
        return " or ".join(_WORDS.get(type, type) for type in types[1].split(" | "))
    return rule
