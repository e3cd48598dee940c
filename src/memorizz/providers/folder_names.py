"""Which ids can be file names, and the names of the files they are in. Pure functions."""

from __future__ import annotations

import os
import unicodedata
from typing import Final

SUFFIX: Final = ".json"
INDEX: Final = "index.json"
JOURNAL: Final = ".index-journal.jsonl"

_MAX_CHARACTERS: Final = 255
_MAX_BYTES: Final = 255 - len(SUFFIX)
_DEVICES: Final = frozenset(
    [
        "con",
        "prn",
        "aux",
        "nul",
        "conin$",
        "conout$",
        *(f"{port}{n}" for port in ("com", "lpt") for n in "123456789¹²³"),
    ]
)


def broken_rule(id: str, *, windows: bool = os.name == "nt") -> str | None:
    """The rule that keeps ``id`` from being a file name, as the end of a sentence, or ``None``."""
    if not id:
        return "must not be empty"
    if len(id) > _MAX_CHARACTERS:
        return f"must be at most {_MAX_CHARACTERS} characters (got {len(id)})"
    if "/" in id or "\\" in id or "\0" in id:
        return "must not hold '/', '\\' or NUL: it names a file"
    if id[0] == ".":
        return "must not begin with '.': it names a file"
    if not id.isascii():
        try:
            size = len(id.encode())
        except UnicodeEncodeError:
            return "must be Unicode text without unpaired surrogates"
    else:
        size = len(id)
    if size > _MAX_BYTES:
        return f"must be at most {_MAX_BYTES} bytes of UTF-8 (got {size}): it names a file"
    if len(id) == 5 and id.lower() == "index":
        return f"must not be 'index': {INDEX} lists the records"
    return _windows_rule(id) if windows else None


def file_name(id: str) -> str:
    """The name of the file of a record."""
    return id + SUFFIX


def record_name(name: str) -> str | None:
    """The id of the record in a file of that name, or ``None`` for a file that holds no record."""
    return None if name[:1] == "." or name == INDEX or not name.endswith(SUFFIX) else name[: -len(SUFFIX)]


def folded(id: str) -> str:
    """What ids have in common that some file systems take for one name."""
    return id.lower() if id.isascii() else unicodedata.normalize("NFC", unicodedata.normalize("NFC", id).casefold())


def _windows_rule(id: str) -> str | None:
    forbidden = sorted({character for character in id if character in '<>:"|?*' or character < " "})
    if forbidden:
        return f"must not hold {forbidden[0]!r}: Windows allows it in no file name"
    if id.partition(".")[0].rstrip().lower() in _DEVICES:
        return "must not be the name of a Windows device"
    return None
