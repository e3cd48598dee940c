"""The ``memorizz`` command."""

from __future__ import annotations

import sys

from agent_memory import __version__

_USAGE = """Usage: memorizz [--version] [--help]

The memory graph is not part of this version, so there is no command yet.
The typed memory is: see `agent-memory --help`.
"""


def main() -> int:
    """Run the command and return its exit code: 2 for anything but ``--version`` and ``--help``."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        sys.stdout.write(f"memorizz {__version__}\n")
        return 0
    if arguments == ["--help"]:
        sys.stdout.write(_USAGE)
        return 0
    sys.stderr.write(_USAGE)
    return 2


if __name__ == "__main__":
    sys.exit(main())
