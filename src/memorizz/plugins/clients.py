"""The coding agents that plugins are for, and their programs."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from memorizz.errors import MemorizzError

MARKETPLACE: Final = "memorizz"
"""The name that the clients know the marketplace by."""

_SECONDS: Final = 120
_SAID: Final = 300


class ClientFault(MemorizzError):
    """The program of a client did not do what it was told."""

    exit_code = 1


class Client(NamedTuple):
    """A coding agent: its program, where it looks for a marketplace, and the words it uses."""

    program: str
    manifest: str
    add: str
    remove: str

    def installing(self, directory: Path, plugins: Sequence[str]) -> list[list[str]]:
        """The commands that install plugins from a marketplace."""
        steps = [[self.program, "plugin", "marketplace", "add", str(directory)]]
        return steps + [[self.program, "plugin", self.add, f"{plugin}@{MARKETPLACE}"] for plugin in plugins]

    def removing(self, plugins: Sequence[str]) -> list[list[str]]:
        """The commands that take back what :meth:`installing` did."""
        steps = [[self.program, "plugin", self.remove, f"{plugin}@{MARKETPLACE}"] for plugin in plugins]
        return [*steps, [self.program, "plugin", "marketplace", "remove", MARKETPLACE]]


CLIENTS: Final = {
    "codex": Client("codex", ".agents/plugins/marketplace.json", "add", "remove"),
    "claude-code": Client("claude", ".claude-plugin/marketplace.json", "install", "uninstall"),
}


def run(program: str, command: Sequence[str]) -> None:
    """Run a command of a client, whose program is the file ``program``.

    Raises:
        ClientFault: It failed.
    """
    shown = shlex.join(command)
    try:
        done = subprocess.run(
            [program, *command[1:]], stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ClientFault(f"`{shown}` did not end within {_SECONDS} seconds") from None
    except OSError as error:
        raise ClientFault(f"`{shown}` cannot be run: {error.strerror}") from None
    if done.returncode:
        said = " ".join((done.stderr.strip() or done.stdout).decode(errors="replace").split())
        raise ClientFault(f"`{shown}` ended with {done.returncode}: {said[-_SAID:] or 'it did not say why'}")
