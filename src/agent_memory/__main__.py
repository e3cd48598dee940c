"""The ``agent-memory`` command."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main() -> int:
    """Run the command line and return its exit code."""
    arguments = sys.argv[1:]
    options = _plain_serve(arguments)
    if options is None:
        from agent_memory.cli import main as command_line

        return command_line(arguments)
    # Each agent starts a server of its own and waits for it, so this path loads nothing that it does not use.
    from agent_memory.config import Settings
    from agent_memory.errors import AgentMemoryError
    from agent_memory.logs import log_to_stderr
    from agent_memory.mcp.server import serve

    try:
        settings = Settings.resolve(
            db=options.get("db"), ollama_url=options.get("ollama_url"), sweep_secs=options.get("sweep_secs")
        )
        log_to_stderr(settings.log_level, background=True)
        serve(settings)
    except AgentMemoryError as error:
        sys.stderr.write(f"Error: {error}\n")
        return error.exit_code
    except OSError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _plain_serve(arguments: Sequence[str]) -> dict[str, str] | None:
    """The options of a ``serve`` command that has only options with a value, or ``None`` for anything else."""
    names = {"--db": "db", "--ollama-url": "ollama_url", "--sweep-secs": "sweep_secs"}
    options: dict[str, str] = {}
    rest = list(arguments)
    commands = 0
    while rest:
        argument = rest.pop(0)
        name, equals, value = argument.partition("=")
        if argument == "serve":
            commands += 1
        elif name in names and equals:
            options[names[name]] = value
        elif name in names and rest:
            options[names[name]] = rest.pop(0)
        else:
            return None
    return options if commands == 1 else None


if __name__ == "__main__":
    sys.exit(main())
