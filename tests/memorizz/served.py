"""Servers of the memory graph: the MCP server over HTTP, and the portal."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support.rest import Daemon


class GraphServer(Daemon):
    """`memorizz` with arguments that make it a server on a free port of this machine."""

    def __init__(self, *arguments: str, **variables: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMORIZZ_")}
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [sys.executable, "-m", "memorizz", *arguments, "--port", "0"],
            env={**kept, **variables},
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
        )
        super().__init__(process, "listening on http://")
