"""Canonical JSON: one byte sequence for one value, the same wherever it is computed.

Object members are sorted by the code points of their keys, nothing stands between tokens, text is literal but for
what JSON must escape, integers have all their digits, and floats are written as ECMAScript writes them. The rules are
in ``docs/archive.md``.
"""

from __future__ import annotations

import json
import math
import re
import secrets
from typing import Any, Final

from memorizz.errors import MemoryArchiveError

# A float takes the place of a text that only this process can make, so that the C encoder can do the rest.
_MARK: Final = f"\x00{secrets.token_hex(16)}"
_MARKED: Final = re.compile(rf'"\\u0000{_MARK[1:]}([^"]*)"')
_encode: Final = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode


def canonical(tree: Any) -> bytes:
    """The canonical bytes of a JSON tree, as :func:`memorizz.archive.values.to_json` makes or checks it.

    Raises:
        MemoryArchiveError: A float is not finite, or a text holds a lone surrogate, which UTF-8 cannot.
    """
    marked = _with_marks(tree)
    text = _encode(marked)
    if marked is not tree:
        text = _MARKED.sub(r"\1", text)
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        around = text[max(error.start - 40, 0) : error.start].rpartition("\x00")[2]
        raise MemoryArchiveError(
            f"a text holds the lone surrogate U+{ord(text[error.start]):04X}, which is no character (after {around!r})"
        ) from None


def number(value: float) -> str:
    """A finite float as ECMAScript's Number-to-string writes it.

    Source: https://tc39.es/ecma262/#sec-numeric-types-number-tostring

    Raises:
        MemoryArchiveError: It is not finite.
    """
    if not math.isfinite(value):
        raise MemoryArchiveError(f"{value} is no JSON number")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    # Python's repr has the same shortest digits and another layout.
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(digits) - len(fraction) + int(exponent or 0)
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1:+d}"


def _with_marks(value: Any) -> Any:
    """``value`` with each float as a marked text; what holds none is ``value`` itself."""
    kind = type(value)
    if kind is float:
        return _MARK + number(value)
    if kind is not dict and kind is not list:
        return value
    copy: Any = None
    for key, item in value.items() if kind is dict else enumerate(value):
        kind_of_item = type(item)
        if kind_of_item is str or kind_of_item is int:
            continue
        marked = _with_marks(item)
        if marked is not item:
            if copy is None:
                copy = value.copy()
            copy[key] = marked
    return value if copy is None else copy
