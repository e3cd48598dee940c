"""Running the command line in processes of its own."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support.stdio import TIMEOUT, environment
from tests.support.zygote import Forked


class Cli:
    """`agent-memory` on one database file, a new process for each command."""

    def __init__(self, path: Path, ollama_url: str) -> None:
        self.path = path
        self._environment = environment(AGENT_MEMORY_DB=str(path), AGENT_MEMORY_OLLAMA_URL=ollama_url)
        self.stderr: list[str] = []

    def run(self, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
        """Exit code, standard output and standard error of one command."""
        process = Forked(arguments, self._environment)
        # Outputs are short, but an input may be longer than a pipe holds, and nobody may want it.
        with suppress(BrokenPipeError), process.stdin as given:
            given.write(stdin.encode())
        with process.stdout as out, process.stderr as err:
            output, error = out.read().decode(), err.read().decode()
        self.stderr += error.splitlines()
        return process.wait(TIMEOUT), output, error

    def value(self, *arguments: str, stdin: str = "") -> Any:
        """The JSON value that a command with ``--json`` prints, or its error text as :class:`CommandFailed`."""
        code, output, error = self.run(arguments[0], "--json", *arguments[1:], stdin=stdin)
        if not output:
            raise CommandFailed(code, error.rstrip("\n").rpartition("Error: ")[2])
        return json.loads(output)


class CommandFailed(Exception):
    """A command that printed no result. ``code`` is its exit code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
