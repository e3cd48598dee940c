"""Files of a folder: written whole or not at all, private, and on disk when they are in place."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from agent_memory.files import sync_directory

_SYNC_TOGETHER: Final = 64
"""From so many files on, one sync of the file system costs less than one for each file."""

_STALE_SECS: Final = 3600.0
_FLAGS: Final = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


class Version(NamedTuple):
    """What tells one content of a file from another without reading it."""

    mtime_ns: int
    size: int


class Staged(NamedTuple):
    """A complete file, on disk, that has not its name yet."""

    path: str
    version: Version


def stage(directory: Path, contents: Sequence[bytes], *, sync: bool = True) -> list[Staged]:
    """Write files under temporary names, on disk with ``sync``; :func:`discard` what is not put in place.

    Raises:
        OSError: They cannot be written; none is left.
    """
    token = os.urandom(4).hex()
    together = _file_system_sync() if sync and len(contents) >= _SYNC_TOGETHER else None
    staged: list[Staged] = []
    try:
        for number, content in enumerate(contents):
            path = f"{directory}/.{number}.{token}.tmp"
            descriptor = os.open(path, _FLAGS, 0o600)
            staged.append(Staged(path, Version(0, 0)))
            try:
                write_all(descriptor, content)
                if sync and together is None:
                    os.fsync(descriptor)
                staged[-1] = Staged(path, _version(os.fstat(descriptor)))
            finally:
                os.close(descriptor)
        if together is not None:
            together(directory)
    except BaseException:
        discard(staged)
        raise
    return staged


def discard(staged: Iterable[Staged]) -> None:
    """Remove those that have not been put in place."""
    for path, _ in staged:
        Path(path).unlink(missing_ok=True)


def sync_in_place(directory: Path, names: Sequence[str]) -> None:
    """Write files of a directory to disk, and their names; those that are gone do not matter.

    Raises:
        OSError: The disk failed.
    """
    together = _file_system_sync() if len(names) >= _SYNC_TOGETHER else None
    if together is not None:
        together(directory)
        return
    for name in names:
        try:
            descriptor = os.open(f"{directory}/{name}", os.O_RDONLY if os.name != "nt" else os.O_RDWR)
        except FileNotFoundError:
            continue
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    sync_directory(directory)


def put_in_place(path: Path, content: bytes) -> None:
    """Replace ``path`` as a whole; on disk when it returns."""
    staged = stage(path.parent, [content])
    try:
        os.replace(staged[0].path, path)
    except BaseException:
        discard(staged)
        raise
    sync_directory(path.parent)


def discard_stale(directory: Path) -> None:
    """Remove temporary files that a program left behind when it was killed an hour ago or earlier."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(".") and entry.name.endswith(".tmp"):
                try:
                    if entry.stat().st_mtime < time.time() - _STALE_SECS:
                        Path(entry.path).unlink()
                except FileNotFoundError:
                    pass


def version_of(path: str | Path) -> Version | None:
    """The version of a file, or ``None`` when there is none."""
    try:
        return _version(os.stat(path))  # noqa: PTH116 -- a Path for each of many files doubles the time
    except FileNotFoundError:
        return None


def read(path: str | Path) -> bytes | None:
    """The content of a file, or ``None`` when there is none."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except FileNotFoundError:
        return None


def write_all(descriptor: int, content: bytes) -> None:
    """Write all of ``content``, however many calls that takes."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


@cache
def system_run() -> str:
    """What names the time since the computer was started, or nothing where the system does not tell.

    What programs wrote in that time is seen by all of them, also if it is not on disk yet and they were killed.
    """
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _version(stat: os.stat_result) -> Version:
    return Version(stat.st_mtime_ns, stat.st_size)


def _file_system_sync() -> Callable[[Path], None] | None:
    """A function that writes all of the file system a directory is on to disk, where there is such a call."""
    if sys.platform != "linux":
        return None
    import ctypes  # big batches only

    syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if syncfs is None:
        return None

    def sync(directory: Path) -> None:
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            if syncfs(descriptor) != 0:
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code), str(directory))
        finally:
            os.close(descriptor)

    return sync
