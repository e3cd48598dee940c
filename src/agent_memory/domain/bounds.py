"""The bounds of every argument, each checked in one place and worded once.

All functions raise :class:`~agent_memory.errors.InvalidArgument` naming the field, the rule and the value.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

from agent_memory.errors import InvalidArgument, shorten

MIN_LIMIT: Final = 1
MAX_LIMIT: Final = 200
DEFAULT_SEARCH_LIMIT: Final = 50
MIN_TTL_SECS: Final = 1
MAX_TTL_SECS: Final = 3_155_760_000
MAX_CONTENT_BYTES: Final = 1024 * 1024
_MIN_INT64: Final = -(2**63)
_MAX_INT64: Final = 2**63 - 1


def check_limit(limit: int | None) -> int | None:
    """``limit`` itself, which is absent or between 1 and 200."""
    if limit is None:
        return None
    _check_integer("limit", limit)
    if not MIN_LIMIT <= limit <= MAX_LIMIT:
        raise InvalidArgument(f"limit must be between {MIN_LIMIT} and {MAX_LIMIT} (got {limit})")
    return limit


def check_ttl(ttl_secs: int | None) -> int | None:
    """``ttl_secs`` itself, which is absent or between one second and about 100 years."""
    if ttl_secs is None:
        return None
    _check_integer("ttl_secs", ttl_secs)
    if not MIN_TTL_SECS <= ttl_secs <= MAX_TTL_SECS:
        raise InvalidArgument(f"ttl_secs must be between {MIN_TTL_SECS} and {MAX_TTL_SECS} (got {ttl_secs})")
    return ttl_secs


def check_id(field: str, value: int) -> int:
    """``value`` itself, which fits the 64 bits of a row id."""
    _check_integer(field, value)
    if not _MIN_INT64 <= value <= _MAX_INT64:
        raise InvalidArgument(f"{field} must be a 64-bit integer (got {value})")
    return value


def check_content(content: str) -> str:
    """``content`` itself, which shows something when printed and is at most 1 MiB of UTF-8."""
    check_text("content", content)
    if not is_visible(content):
        raise InvalidArgument(f"content must be a non-empty string (got {_shown(content)})")
    size = len(content.encode())
    if size > MAX_CONTENT_BYTES:
        raise InvalidArgument(f"content must be at most {MAX_CONTENT_BYTES} bytes of UTF-8 (got {size})")
    return content


def check_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """``tags`` as a tuple of texts, otherwise as given."""
    if isinstance(tags, str) or not isinstance(tags, Sequence):
        raise InvalidArgument(f"tags must be a list of strings (got {_shown(tags)})")
    for tag in tags:
        check_text("tags", tag)
    return tuple(tags)


def check_optional_text(field: str, value: str | None) -> str | None:
    """``value`` itself, or ``None`` for an empty text: an empty scope, source or filter is none."""
    return None if value is None or value == "" else check_text(field, value)


def check_text(field: str, value: str) -> str:
    """``value`` itself, which is text that UTF-8 can hold."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{field} must be a string (got {_shown(value)})")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        found = f"U+{ord(value[error.start]):04X} at character {error.start}"
        raise InvalidArgument(f"{field} must be valid Unicode without lone surrogates (got {found})") from None
    return value


def check_query(query: str) -> str:
    """``query`` with each lone surrogate replaced by U+FFFD, which no text matches: a query is never rejected."""
    if not isinstance(query, str):
        raise InvalidArgument(f"query must be a string (got {_shown(query)})")
    return replace_surrogates(query)


def replace_surrogates(text: str) -> str:
    """``text`` with U+FFFD for each lone surrogate, which UTF-8 cannot hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def check_flag(field: str, value: bool) -> bool:
    """``value`` itself, which is true or false."""
    if not isinstance(value, bool):
        raise InvalidArgument(f"{field} must be true or false (got {_shown(value)})")
    return value


def _check_integer(field: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidArgument(f"{field} must be an integer (got {_shown(value)})")


def _shown(value: object) -> str:
    return shorten(repr(value))


def is_visible(content: str) -> bool:
    """Whether some character is neither white space nor invisible (Unicode categories C and Z)."""
    return any(unicodedata.category(character)[0] not in "CZ" for character in content)
