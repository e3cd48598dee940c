"""The ``memorizz`` command."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line and return its exit code: 0, 1 for conflicts or a partial restore, 2 for refused."""
    try:
        return _main()
    except KeyboardInterrupt:
        # While the program was still being read; later the command itself sees it.
        sys.stderr.write("Interrupted\n")
        return 130


def _main() -> int:
    import logging

    from agent_memory.cli.running import run
    from agent_memory.logs import log_to_stderr
    from memorizz.cli.root import make_root

    log_to_stderr("warning", libraries=("memorizz",))
    try:
        return run(make_root(), sys.argv[1:], "memorizz", system_error_code=2)
    except Exception as error:  # whatever a provider or a file makes of itself, a person gets one line
        logging.getLogger("memorizz").debug("unexpected", exc_info=error)
        sys.stderr.write(f"Error: unexpected {type(error).__name__}: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
