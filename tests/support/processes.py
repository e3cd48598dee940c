"""Python programs in processes of their own, started together."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

TIMEOUT = 60.0
_PRELUDE = """
import sys
import agent_memory

def barrier():
    print("ready", flush=True)
    sys.stdin.readline()

db, number = sys.argv[1], int(sys.argv[2])
"""


def run_together(code: str, db: Path, processes: int) -> Sequence[str]:
    """Run ``code`` in several processes that pass its ``barrier()`` at once; what each printed after it.

    ``db`` and ``number`` are defined in it. Fails when one of them fails.
    """
    with ExitStack() as stack:
        started = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", _PRELUDE + code, str(db), str(number)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for number in range(processes)
        ]
        for process in started:
            stack.callback(process.kill)
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", process.communicate(timeout=TIMEOUT)[1]
        for process in started:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        outputs = []
        for process in started:
            output, errors = process.communicate(timeout=TIMEOUT)
            assert process.returncode == 0, errors
            outputs.append(output)
        return outputs


def open_files(pid: int) -> list[str]:
    """The names of the files that a process has open; none when one of them was closed during the look."""
    try:
        return [str(held.readlink()) for held in Path(f"/proc/{pid}/fd").iterdir()]
    except FileNotFoundError:
        return []
