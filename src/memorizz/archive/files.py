"""Archives as files: reading them within limits, writing them private and whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from agent_memory.files import make_private_directory, replacing
from memorizz.archive.canonical import canonical
from memorizz.archive.envelope import MAX_BYTES, MAX_RECORDS, Archive, check_archive, validate_archive
from memorizz.errors import MemoryArchiveError


def read_archive(path: str | Path, *, max_bytes: int = MAX_BYTES, max_records: int = MAX_RECORDS) -> Archive:
    """The valid archive in a file. ``max_bytes`` bounds the file and its canonical form.

    Raises:
        MemoryArchiveError: It is not valid, or over a limit.
        OSError: It cannot be read.
    """
    with open(Path(path).expanduser(), "rb") as file:
        return load_archive(file, max_bytes=max_bytes, max_records=max_records)


def load_archive(file: BinaryIO, *, max_bytes: int = MAX_BYTES, max_records: int = MAX_RECORDS) -> Archive:
    """The valid archive that an open file holds from here to its end.

    Raises:
        MemoryArchiveError: It is not valid, or over a limit.
        OSError: It cannot be read.
    """
    data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise MemoryArchiveError(f"the archive has more than {max_bytes} bytes, which is the limit")
    return check_archive(parse(data), max_bytes=max_bytes, max_records=max_records, checked=False)


def parse(data: bytes) -> Any:
    """The JSON value that ``data`` holds as UTF-8, with or without a byte order mark.

    Raises:
        MemoryArchiveError: It is no JSON, no UTF-8, or an object has a member twice.
    """
    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=_unique)
    except MemoryArchiveError:
        raise
    except UnicodeDecodeError as error:
        raise MemoryArchiveError(f"not valid UTF-8: byte 0x{data[error.start]:02x} at {error.start}") from None
    except json.JSONDecodeError as error:
        raise MemoryArchiveError(f"not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise MemoryArchiveError("not valid JSON: nested too deeply") from None
    except ValueError:
        # The one thing that is left: digits beyond what Python converts.
        raise MemoryArchiveError("not valid JSON: an integer has too many digits") from None


def archive_json(archive: Mapping[str, Any], *, max_bytes: int = MAX_BYTES) -> str:
    """The text of an archive's file: indented, or compact when it would pass ``max_bytes`` otherwise.

    Raises:
        MemoryArchiveError: A text holds a lone surrogate.
    """
    compact = json.dumps(archive, ensure_ascii=False, separators=(",", ":"))
    try:
        text = msgspec.json.format(compact.encode(), indent=2)
    except UnicodeEncodeError as error:
        raise MemoryArchiveError(f"a text holds the lone surrogate U+{ord(compact[error.start]):04X}") from None
    return (text if len(text) <= max_bytes else canonical(archive)).decode()


def write_archive(
    archive: Mapping[str, Any],
    path: str | Path,
    *,
    overwrite: bool = False,
    max_bytes: int = MAX_BYTES,
    max_records: int = MAX_RECORDS,
) -> str:
    """Validate an archive, write it to a private file and return its path. Missing directories are created.

    Raises:
        MemoryArchiveError: It is not valid, or over a limit.
        FileExistsError: ``path`` exists and is not to be overwritten.
        OSError: It cannot be written; ``path`` is as it was.
    """
    valid = validate_archive(archive, max_bytes=max_bytes, max_records=max_records)
    return write_text(archive_json(valid, max_bytes=max_bytes), path, overwrite=overwrite)


def write_text(text: str, path: str | Path, *, overwrite: bool) -> str:
    """Write a private file, whole or not at all, and return its path. Missing directories are created.

    Raises:
        FileExistsError: ``path`` exists and is not to be overwritten.
        OSError: It cannot be written; ``path`` is as it was.
    """
    target = Path(path).expanduser()
    make_private_directory(target.parent)
    with replacing(target, "archive", overwrite=overwrite) as file:
        file.write(text.encode())
    return str(target)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise MemoryArchiveError(f"not valid JSON: an object has the member {twice!r:.80} twice")
    return members
