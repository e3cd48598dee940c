"""``memorizz plugin``: the plugins of coding agents, and the memory of the project they work in."""

from __future__ import annotations

from memorizz.cli.root import Lazy

plugin = Lazy(
    {
        "install": "plugin_install",
        "uninstall": "plugin_install",
        "export-memory": "plugin_memory",
        "import-memory": "plugin_memory",
        "memory-id": "plugin_memory",
    },
    name="plugin",
    help="Plugins for coding agents, and the memory of the project they work in.",
)

COMMANDS = {"plugin": plugin}
