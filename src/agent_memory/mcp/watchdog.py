"""Noticing that the client died while a launcher still holds the pipe open.

A client that starts the server itself closes standard input when it dies. Behind a launcher (``uvx``, ``npx``,
a shell) the pipe may stay open, so the launcher's own parent is watched. Linux only: elsewhere there is no
cheap way to ask for another process's parent.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

INTERVAL_SECS: Final = 5.0
_LAUNCHERS: Final = frozenset(
    (
        "uv",
        "uvx",
        "npx",
        "npm",
        "npm exec",
        "pipx",
        "poetry",
        "hatch",
        "pdm",
        "mise",
        "sh",
        "bash",
        "dash",
        "zsh",
        "fish",
    )
)


def watch(on_orphaned: Callable[[], None], interval: float = INTERVAL_SECS) -> None:
    """Call ``on_orphaned`` once, from another thread, when this process's launcher has lost its own parent."""
    launcher = os.getppid()
    client = _parent_of_launcher(launcher)
    if client is None or client <= 1:
        return

    def look() -> None:
        pause = threading.Event()
        while os.getppid() == launcher and _parent_of_launcher(launcher) == client:
            pause.wait(interval)
        on_orphaned()

    threading.Thread(target=look, name="watchdog", daemon=True).start()


def _parent_of_launcher(process: int) -> int | None:
    """The parent of ``process`` if that is a launcher."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name stands in parentheses and may itself hold any character.
    name, rest = stat[stat.index("(") + 1 :].rsplit(")", 1)
    return int(rest.split()[1]) if name in _LAUNCHERS else None
