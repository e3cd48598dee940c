"""``memorizz ui``: the portal on an address of this machine."""

from __future__ import annotations

import logging

from agent_memory.service.memory import AgentMemory
from agent_memory.web.address import Address
from agent_memory.web.server import bound, run
from memorizz.portal.application import application
from memorizz.portal.connection import Connection
from memorizz.portal.settings import PortalSettings
from memorizz.portal.web import Portal

log = logging.getLogger(__name__)

_FINISH_SECS = 10


def serve(settings: PortalSettings, connection: Connection, memory: AgentMemory | None) -> None:
    """Serve until a signal.

    Raises:
        OpenError: The address cannot be listened on.
    """
    with bound(settings.address, flag="--port") as (listener, real):
        if not real.is_loopback and not settings.cookie_secure:
            log.warning(
                "%s is open to other machines without TLS: put a proxy that speaks TLS in front and name it with "
                "--public-url https://...",
                real,
            )
        portal = Portal.open(settings, connection, memory)
        run(application(portal), listener, f"portal listening on {_url(real)}", finish_secs=_FINISH_SECS)
    connection.close()
    if memory is not None:
        memory.close()


def _url(address: Address) -> str:
    return f"http://{address}"
