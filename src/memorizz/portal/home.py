"""The page Home: what the memory holds."""

from __future__ import annotations

from collections import Counter

from starlette.responses import Response

from memorizz.archive.redaction import redact
from memorizz.archive.selection import agents_of
from memorizz.portal.reading import STORES
from memorizz.portal.web import Call
from memorizz.taxonomy import MemoryType

_AGENTS_SHOWN = 12


def show(call: Call) -> Response:
    """Counts by store and by agent."""
    with call.portal.connection.provider() as provider, provider.snapshot():
        counts: Counter[MemoryType] = Counter()
        owners: Counter[str] = Counter()
        names: dict[str, str] = {}
        for store in STORES:
            for record in provider.scan(store.type):
                counts[store.type] += 1
                if store.type is MemoryType.MEMAGENT:
                    shown = redact(store.type, record).record
                    names[str(record.get("agent_id") or record["_id"])] = str(shown.get("name") or "")
                else:
                    owners.update(agents_of(store.type, record))
        problems = provider.problems()
    agents = Counter({agent: owners[agent] for agent in names})
    return call.render(
        "home.html",
        counts=counts,
        most=max(counts.values(), default=0),
        total=counts.total(),
        agents=agents.most_common(_AGENTS_SHOWN),
        more_agents=max(0, len(names) - _AGENTS_SHOWN),
        most_of_agent=max(agents.values(), default=0),
        names=names,
        problems=problems,
        typed=None if call.portal.memory is None else call.portal.memory.statistics(),
    )
