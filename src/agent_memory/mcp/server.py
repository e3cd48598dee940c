"""``agent-memory serve``: the typed memory for one client over standard input and output."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from typing import Final

from agent_memory import app
from agent_memory._version import __version__
from agent_memory.config import Settings
from agent_memory.mcp import watchdog
from agent_memory.mcp.session import Identity, Session
from agent_memory.mcp.tools import INSTRUCTIONS, tools
from agent_memory.mcp.wire import Wire, take_standard_streams
from agent_memory.service.lifecycle import Sweeper
from agent_memory.service.memory import AgentMemory

log = logging.getLogger(__name__)

# A server has to be gone two seconds after its client is.
_FINISH_SECS: Final = 1.6
_WITH_EMBEDDER_SECS: Final = 0.6
_CLOSE_SECS: Final = 0.4
_LONGEST_WAIT_FOR_CLIENT_SECS: Final = 1.0


def serve(settings: Settings) -> None:
    """Serve until standard input ends. Never returns to a caller that still has something to do.

    Raises:
        OpenError: The database cannot be opened; nothing was served.
    """
    wire = take_standard_streams()
    memory = app.open_memory(settings)
    session = Session(wire, Identity("agent-memory", "Agent memory", __version__, INSTRUCTIONS), tools(memory))
    sweeper = Sweeper(memory.sweep, settings.sweep_secs)
    try:
        log.info("Service initialized: agent-memory %s on %s", __version__, settings.db)
        threading.Thread(target=_begin_upkeep, args=(session, memory, sweeper), name="upkeep", daemon=True).start()
        watchdog.watch(lambda: _exit("its client is gone"))
        session.run()
    except KeyboardInterrupt:
        log.info("interrupted")
    _finish(wire, session, memory, sweeper)


def _begin_upkeep(session: Session, memory: AgentMemory, sweeper: Sweeper) -> None:
    # The client is waiting for the handshake; nobody is waiting for the sweep.
    session.answered.wait(_LONGEST_WAIT_FOR_CLIENT_SECS)
    sweeper.start()
    memory.report_embedder()


def _finish(wire: Wire, session: Session, memory: AgentMemory, sweeper: Sweeper) -> None:
    """Let running calls end: with their vectors if that is quick, else without, so that no memory is lost."""
    deadline = time.monotonic() + _FINISH_SECS
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sweeper.stop()
    if not session.wait(_WITH_EMBEDDER_SECS):
        memory.end_embedding()
        session.wait(deadline - time.monotonic() - _CLOSE_SECS)
    closing = threading.Thread(target=memory.close, name="close", daemon=True)
    closing.start()
    wire.drain(deadline - time.monotonic())
    closing.join(max(deadline - time.monotonic(), 0.05))
    _exit("standard input ended")


def _exit(reason: str) -> None:
    log.info("stopped: %s", reason)
    # Whatever still runs is in a daemon thread inside SQLite or a socket; the interpreter's own shutdown would
    # pull the ground from under it. Every acknowledged memory is in the file already.
    logging.shutdown()
    os._exit(0)
