"""Private files and directories: readable by their owner only, on systems that know owners."""

from __future__ import annotations

import os
from pathlib import Path


def create_private(path: Path) -> int:
    """A descriptor of a new file of mode 0600, open for writing.

    Raises:
        FileExistsError: Something of that name is already there.
        OSError: It cannot be created.
    """
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)


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
