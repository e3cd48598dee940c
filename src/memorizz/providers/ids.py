"""What the id of a record has to be, where the storage below asks for nothing more."""

from __future__ import annotations

from typing import Final

MAX_ID: Final = 512
"""How many characters an id may have; archives take as many."""


def broken_rule(id: str) -> str | None:
    """Which rule an id breaks, as the end of a sentence that begins with "the id"."""
    if not id or len(id) > MAX_ID:
        return f"must have 1 to {MAX_ID} characters (got {len(id)})"
    return None if is_text(id) else "must be Unicode text without unpaired surrogates"


def is_text(text: str) -> bool:
    """Whether a text has a form in UTF-8: one with an unpaired surrogate has none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
