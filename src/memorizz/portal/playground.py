"""The Playground: one agent's memory, and what a query would recall from it, without any model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from memorizz.archive.redaction import redact
from memorizz.archive.selection import Request, select
from memorizz.errors import ProviderFault
from memorizz.portal import reading
from memorizz.portal.transfer import agents_of_choice
from memorizz.portal.web import Call, Refused
from memorizz.records import Record, record_id
from memorizz.taxonomy import MemoryType

TABS: Final = ("memory", "recall", "settings")
RECALLED: Final = 20
_LATEST: Final = 5


def show_agents(call: Call) -> Response:
    """The agents, each with a link to its playground."""
    with call.portal.connection.provider() as provider:
        agents = agents_of_choice(provider)
        rows = {
            str(row.get("agent_id") or row["_id"]): redact(MemoryType.MEMAGENT, row).record
            for row in provider.list_memagents()
        }
    return call.render("agents.html", agents=agents, rows=rows)


def show(call: Call) -> Response:
    """One agent: the tab Memory, Recall or Settings."""
    agent_id = call.request.path_params["agent"]
    tab = call.query("tab") or "memory"
    if tab not in TABS:
        raise Refused(f"there is no tab {tab!r:.80}; they are {', '.join(TABS)}", 404)
    query = call.query("q") or ""
    context: dict[str, Any] = {"agent_id": agent_id, "tab": tab, "tabs": TABS, "query": query, "recalled": []}
    with call.portal.connection.provider() as provider, provider.snapshot():
        physical = provider.find(MemoryType.MEMAGENT, [agent_id]).get(agent_id)
        try:
            agent = None if physical is None else provider.retrieve_memagent(physical)
        except ProviderFault as error:
            raise Refused(f"the agent {agent_id!r:.80} cannot be read: {error}", 404) from None
        if agent is None:
            raise Refused(f"there is no agent {agent_id!r:.80}", 404)
        context["agent_id"] = agent_id = record_id(MemoryType.MEMAGENT, agent)
        own = Request(agent_id=agent_id, include_delegates=False)
        selection = select(provider, own) if tab != "settings" else None
    records = {} if selection is None else selection.records
    shown = redact(MemoryType.MEMAGENT, agent, keep_vectors=True)
    context["name"] = str(shown.record.get("name") or agent_id)
    context |= {"fields": reading.fields(shown.record), "omitted": sorted(shown.omitted)}
    context["groups"] = [
        (reading.BY_TYPE[store], len(found), _latest(store, found))
        for store, found in records.items()
        if found and store is not MemoryType.MEMAGENT
    ]
    if query:
        context["recalled"] = [
            (item.store, item.record, reading.title(item.store.type, item.record), item.score)
            for item in reading.recall(_searchable(records), query, RECALLED)
        ]
    return call.render("playground.html", **context)


def _searchable(records: Mapping[MemoryType, list[Record]]) -> dict[MemoryType, list[Record]]:
    """Without agents and credentials: a search must not find out what is not shown."""
    return {
        store: [redact(store, record).record for record in found]
        for store, found in records.items()
        if store is not MemoryType.MEMAGENT
    }


def _latest(store: MemoryType, records: list[dict[str, Any]]) -> list[tuple[dict[str, Any], str]]:
    newest = sorted(records, key=reading.when, reverse=True)[:_LATEST]
    return [(record, reading.title(store, record)) for record in newest]
