"""``agent-memory serve-rest``: the typed memory over HTTP."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

import uvicorn
from starlette.applications import Starlette
from uvicorn.server import HANDLED_SIGNALS

from agent_memory import app
from agent_memory.config import Settings
from agent_memory.errors import InvalidSetting, OpenError
from agent_memory.rest.address import Address
from agent_memory.rest.application import application
from agent_memory.rest.protocol import Protocol
from agent_memory.service.lifecycle import Sweeper
from agent_memory.service.memory import AgentMemory

log = logging.getLogger(__name__)

_BACKLOG: Final = 2_048
_FINISH_SECS: Final = 30
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
    with _bound(address) as listener:
        memory = app.open_memory(settings)
        bound = Address(address.ip, listener.getsockname()[1])
        if not bound.is_loopback:
            log.warning(
                "the REST API is exposed on %s without authentication: whoever can reach it can read, change and "
                "delete every memory",
                bound,
            )
        sweeper = Sweeper(memory.sweep, settings.sweep_secs)
        sweeper.start()
        threading.Thread(target=memory.report_embedder, name="report", daemon=True).start()
        _Server(_config(application(memory, guarded=bound.is_loopback)), bound).run(sockets=[listener])
    sweeper.stop()
    _finish(memory)


def _config(served: Starlette) -> uvicorn.Config:
    return uvicorn.Config(
        served,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        http=Protocol,
        ws="none",
        # Not given, the number would come from a variable that is meant for other servers.
        workers=1,
        timeout_graceful_shutdown=_FINISH_SECS,
    )


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


@contextmanager
def _bound(address: Address) -> Iterator[socket.socket]:
    family = socket.AF_INET if address.ip.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        if os.name == "posix":
            # A daemon that is started again should not wait for the last one's connections to time out.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((str(address.ip), address.port))
            listener.listen(_BACKLOG)
        except OSError as error:
            raise OpenError(
                f"listening on {address}: {error.strerror or error} — choose another address with --addr"
            ) from error
        yield listener


class _Server(uvicorn.Server):
    """Says when it listens. Signals end it for good, and it does not repeat them: the process ended well."""

    def __init__(self, config: uvicorn.Config, address: Address) -> None:
        super().__init__(config)
        self._address = address

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections."""
        await super().startup(sockets)
        log.info("REST listening on %s", self._address)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let signals end the server, and not hurt what comes after it."""
        for number in HANDLED_SIGNALS:
            signal.signal(number, self.handle_exit)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Finish what runs at the first signal, and nothing more at the second."""
        self.force_exit = self.should_exit
        self.should_exit = True
