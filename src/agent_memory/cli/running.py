"""Running a command group: standard streams as they come, errors in one line, exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from agent_memory.errors import AgentMemoryError


def run(root: click.Command, arguments: Sequence[str], name: str, *, system_error_code: int = 1) -> int:
    """Run one command of ``root``, called ``name``, and return its exit code.

    That is what the command returns, the code that its error fixes, ``system_error_code`` when the system refused
    something, and 130 after an interrupt.
    """
    # A standard stream that was closed is None.
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A narrow encoding shows escapes; it is no reason to fail.
            stream.reconfigure(errors="backslashreplace")
    try:
        result = root.main(list(arguments), prog_name=name, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            sys.stderr.write("Interrupted\n")
            return 130
        sys.stderr.write("Aborted\n")
        return 1
    except AgentMemoryError as error:
        sys.stderr.write(f"Error: {error}\n")
        return error.exit_code
    except BrokenPipeError:
        # The reader of the output has seen enough. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted\n")
        return 130
    except OSError as error:
        sys.stderr.write(f"Error: {error}\n")
        return system_error_code
    return result if isinstance(result, int) else 0
