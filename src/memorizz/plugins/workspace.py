"""Which namespace the memory of a project is in."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

from memorizz.errors import ConfigurationError

_GIT_SECONDS: Final = 3
_SLUG_LENGTH: Final = 40
_HASH_LENGTH: Final = 6


class Workspace(NamedTuple):
    """A project: the folder at its top, and the namespace of its memory."""

    root: Path
    memory_id: str

    @classmethod
    def of(cls, directory: str | Path) -> Workspace:
        """The project that a folder is in: that of its git work tree or, outside of any, the folder itself.

        The namespace follows from the name and the absolute path of that root, so a checkout that is moved has another.

        Raises:
            ConfigurationError: There is no such folder, or git does not answer.
        """
        root = _root(directory)
        digest = hashlib.sha256(os.fsencode(root)).hexdigest()
        return cls(root, f"project-{_slug(root.name)}-{digest[:_HASH_LENGTH]}")


def _root(directory: str | Path) -> Path:
    try:
        folder = Path(directory).expanduser().resolve()
    except (RuntimeError, ValueError) as error:
        raise ConfigurationError(f"{str(directory)!r} is no path of a project: {error}") from None
    if not folder.is_dir():
        raise ConfigurationError(f"there is no folder {folder}, so it is no project")
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), "rev-parse", "--show-toplevel"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        # Taking the folder instead would quietly be another namespace.
        raise ConfigurationError(
            f"git did not say within {_GIT_SECONDS} seconds which project {folder} is in; try again"
        ) from None
    except OSError:
        # Without git there are no work trees.
        return folder
    top = os.fsdecode(done.stdout.removesuffix(b"\n"))
    return Path(top) if done.returncode == 0 and top else folder


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_SLUG_LENGTH] or "project"
