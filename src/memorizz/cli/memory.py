"""``memorizz memory``: ``export``, ``import``, ``inspect``, ``verify`` and ``timeline``."""

from __future__ import annotations

from memorizz.cli.root import Lazy

memory = Lazy(
    {"export": "export", "import": "restore", "inspect": "archives", "verify": "archives", "timeline": "timeline"},
    name="memory",
    help="Archives of a memory, and the history of its changes.",
)

COMMANDS = {"memory": memory}
