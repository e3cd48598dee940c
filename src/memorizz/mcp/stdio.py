"""The server for one client over standard input and output."""

from __future__ import annotations

import logging
import os
import signal
from typing import Final, NoReturn

from agent_memory._version import __version__
from agent_memory.mcp import watchdog
from agent_memory.mcp.session import Identity, Session
from agent_memory.mcp.wire import LONGEST_LINE, take_standard_streams
from memorizz.mcp.settings import ServerSettings
from memorizz.mcp.tools import INSTRUCTIONS, tools
from memorizz.providers.contract import Provider

log = logging.getLogger(__name__)

IDENTITY: Final = Identity("memorizz", "Memory graph", __version__, INSTRUCTIONS)
# A restore that is being written is worth waiting for; a client that is gone would not wait for more.
_FINISH_SECS: Final = 30.0


def serve(provider: Provider, settings: ServerSettings) -> NoReturn:
    """Serve until standard input ends, and end the process."""
    # JSON may spell a character in six.
    wire = take_standard_streams(longest=max(LONGEST_LINE, 6 * settings.policy.max_bytes))
    session = Session(wire, IDENTITY, tools(provider, settings.policy, lambda: settings.principal))
    watchdog.watch(lambda: _exit("its client is gone"))
    try:
        log.info("serving the memory graph")
        session.run()
    except KeyboardInterrupt:
        log.info("interrupted")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    session.wait(_FINISH_SECS)
    wire.drain(1.0)
    provider.close()
    _exit("standard input ended")


def _exit(reason: str) -> NoReturn:
    log.info("stopped: %s", reason)
    logging.shutdown()
    # Threads of calls may still be in the storage; what they have written is either whole or undone at the next start.
    os._exit(0)
