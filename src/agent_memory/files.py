"""Private files and directories: readable by their owner only, on systems that know owners."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

_BUFFER_BYTES: Final = 1 << 20


def create_private(path: Path) -> int:
    """A descriptor of a new file of mode 0600, open for writing.

    Raises:
        FileExistsError: Something of that name is already there.
        OSError: It cannot be created.
    """
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)


@contextmanager
def replacing(path: Path, label: str, *, overwrite: bool = True) -> Iterator[BinaryIO]:
    """A new private file that takes the place of ``path`` when the block ends, and is gone when it raises.

    Until then it is ``<path>.<label>-tmp-<pid>``, beside ``path``. What is in place is complete and on disk.

    Raises:
        FileExistsError: ``path`` is there and is not to be overwritten.
        OSError: It cannot be created, written or put in place; ``path`` is as it was.
    """
    if not overwrite and os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    temporary = path.with_name(f"{path.name}.{label}-tmp-{os.getpid()}")
    # A process of that number left it behind; this one has not begun.
    temporary.unlink(missing_ok=True)
    try:
        with open(create_private(temporary), "wb", buffering=_BUFFER_BYTES) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if overwrite:
            os.replace(temporary, path)
        else:
            _put_in_free_place(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def _put_in_free_place(temporary: Path, path: Path) -> None:
    """Rename without overwriting what another program may have put there meanwhile."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
    except OSError:
        # A file system without links: a reserved name can be replaced without harm.
        os.close(create_private(path))
        os.replace(temporary, path)
    else:
        temporary.unlink()


def make_private_directory(path: Path) -> None:
    """Create ``path`` and its missing parents with mode 0700; an existing directory is left as it is.

    Raises:
        OSError: It cannot be created, or a file is in the way.
    """
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for directory in reversed(missing):
        directory.mkdir(mode=0o700, exist_ok=True)


def sync_directory(path: Path) -> None:
    """Make renames inside ``path`` durable, where the system can sync a directory."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
