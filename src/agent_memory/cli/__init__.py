"""The command line for people and scripts."""

from __future__ import annotations

from collections.abc import Sequence

from agent_memory.cli.root import root
from agent_memory.cli.running import run

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code: 0, 1 for not found or failed, 2 for wrong usage."""
    return run(root, arguments, "agent-memory")
