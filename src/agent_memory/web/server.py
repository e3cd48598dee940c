"""Serving an ASGI application on one address until a signal ends it."""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

import uvicorn
from uvicorn.server import HANDLED_SIGNALS

from agent_memory.errors import OpenError
from agent_memory.web.address import Address
from agent_memory.web.protocol import Protocol

log = logging.getLogger(__name__)

_BACKLOG: Final = 2_048
_FINISH_SECS: Final = 30


@contextmanager
def bound(address: Address, *, flag: str) -> Iterator[tuple[socket.socket, Address]]:
    """A socket that listens on ``address``, and that address with its real port; ``flag`` is the option to change it.

    Raises:
        OpenError: The address cannot be listened on.
    """
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
                f"listening on {address}: {error.strerror or error} — choose another address with {flag}"
            ) from error
        yield listener, Address(address.ip, listener.getsockname()[1])


def run(application: Any, listener: socket.socket, ready: str, *, finish_secs: int = _FINISH_SECS) -> None:
    """Serve until a signal, then finish running requests; a second signal gives them up. ``ready`` is logged."""
    config = uvicorn.Config(
        application,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        http=Protocol,
        ws="none",
        # Not given, the number would come from a variable that is meant for other servers.
        workers=1,
        timeout_graceful_shutdown=finish_secs,
    )
    _Server(config, ready).run(sockets=[listener])


class _Server(uvicorn.Server):
    """Says when it listens. Signals end it for good, and it does not repeat them: the process ended well."""

    def __init__(self, config: uvicorn.Config, ready: str) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections."""
        await super().startup(sockets)
        log.info("%s", self._ready)

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
