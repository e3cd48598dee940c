"""``agent-memory serve-rest``: the typed memory over HTTP."""

from __future__ import annotations

import logging
import os
import threading
from typing import Final, NoReturn

from agent_memory import app
from agent_memory.config import Settings
from agent_memory.errors import InvalidSetting
from agent_memory.rest.application import application
from agent_memory.service.lifecycle import Sweeper
from agent_memory.service.memory import AgentMemory
from agent_memory.web.address import Address
from agent_memory.web.server import bound, run

log = logging.getLogger(__name__)

_CLOSE_SECS: Final = 2.0


def serve(settings: Settings, address: Address, *, allow_remote: bool) -> None:
    """Serve until a signal ends it; running requests are finished. Never returns once it has served.

    Raises:
        InvalidSetting: Other machines could reach ``address``, and that was not allowed.
        OpenError: The database or the address cannot be opened; nothing was served.
    """
    if not address.is_loopback and not allow_remote:
        raise InvalidSetting(
            f"refusing to bind non-loopback address {address}: the REST API is unauthenticated; "
            "pass --allow-remote to expose it beyond localhost"
        )
    with bound(address, flag="--addr") as (listener, real):
        memory = app.open_memory(settings)
        if not real.is_loopback:
            log.warning(
                "the REST API is exposed on %s without authentication: whoever can reach it can read, change and "
                "delete every memory",
                real,
            )
        sweeper = Sweeper(memory.sweep, settings.sweep_secs)
        sweeper.start()
        threading.Thread(target=memory.report_embedder, name="report", daemon=True).start()
        run(application(memory, guarded=real.is_loopback), listener, f"REST listening on {real}")
    sweeper.stop()
    _finish(memory)


def _finish(memory: AgentMemory) -> NoReturn:
    memory.end_embedding()
    # A request that was given up may still hold the memory, waiting for another program's lock.
    closing = threading.Thread(target=memory.close, name="close", daemon=True)
    closing.start()
    closing.join(_CLOSE_SECS)
    log.info("stopped")
    logging.shutdown()
    # Its thread would keep the interpreter from ending. Every acknowledged memory is in the file already.
    os._exit(0)
