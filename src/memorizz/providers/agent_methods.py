"""The methods by which people keep agents: their configuration, and the tools it brings into the toolbox."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from memorizz.providers.record_methods import RecordMethods, now
from memorizz.providers.values import normalise
from memorizz.records import Record
from memorizz.taxonomy import MemoryType

_AGENTS = MemoryType.MEMAGENT


class AgentMethods(RecordMethods):
    """Keeping agents. An agent is a mapping, or an object with ``to_dict`` or ``model_dump``."""

    def store_memagent(self, agent: Any) -> str:
        """Keep an agent and return its id; one of the same ``agent_id`` is replaced.

        ``created_at`` stays that of the first time. Each of its tools becomes a row ``<agent_id>:<tool name>`` of the
        toolbox.
        """
        return self._keep_agent("store_memagent", normalise(_AGENTS, agent))

    def retrieve_memagent(self, agent_id: str) -> Record | None:
        """The agent of that id, or ``None``."""
        return self.get(_AGENTS, str(agent_id))

    def list_memagents(self) -> list[Record]:
        """All agents, in the order they were added."""
        return list(self.scan(_AGENTS))

    def update_memagent(self, agent: Any) -> bool:
        """Replace an agent, as :meth:`store_memagent` does, if there is one of that id; whether there was."""
        record = normalise(_AGENTS, agent)
        with self.exclusive(_AGENTS):
            if self.get(_AGENTS, _agent_id(record) or "") is None:
                return False
            self._keep_agent("update_memagent", record)
        return True

    def delete_memagent(self, agent_id: str, cascade: bool = False) -> bool:
        """Remove an agent and its rows in the toolbox; whether there was one.

        With ``cascade`` its memories go too: the records it owns, and those without owner in namespaces that no other
        agent lists.
        """
        with self.exclusive(_AGENTS):
            agent = self.get(_AGENTS, str(agent_id))
            if agent is None:
                return False
            if cascade:
                self._remove_memories(agent)
            self.delete(MemoryType.TOOLBOX, [row["_id"] for row in tool_rows(agent)])
            self._remove("delete_memagent", _AGENTS, [str(agent_id)])
        return True

    def update_memagent_memory_ids(self, agent_id: str, memory_ids: Iterable[str]) -> bool:
        """Set the namespaces of an agent; whether there is one of that id."""
        return self._change("update_memagent_memory_ids", _AGENTS, str(agent_id), {"memory_ids": list(memory_ids)})

    def delete_memagent_memory_ids(self, agent_id: str) -> bool:
        """Take all namespaces from an agent; whether there is one of that id. Their records stay."""
        return self._change("delete_memagent_memory_ids", _AGENTS, str(agent_id), {"memory_ids": []})

    def _keep_agent(self, operation: str, record: Record) -> str:
        id = _agent_id(record) or str(uuid4())
        with self.exclusive(_AGENTS):
            before = self.get(_AGENTS, id)
            moment = now()
            created = (before or {}).get("created_at") or record.get("created_at") or moment
            after = {**record, "agent_id": id, "_id": id, "id": id, "created_at": created, "updated_at": moment}
            old = {row["_id"] for row in tool_rows(before or {})}
            new = {row["_id"]: {**row, "timestamp": moment} for row in tool_rows(after)}
            # Everything that could be refused comes before the first write: not every provider can take one back.
            for tool, row in new.items():
                self.check(MemoryType.TOOLBOX, tool, row)
            self.put(_AGENTS, [(id, after)], replace=True)
            self.put(MemoryType.TOOLBOX, list(new.items()), replace=True)
            self.delete(MemoryType.TOOLBOX, sorted(old.difference(new)))
            self._report(operation, _AGENTS, id, before, after)
        return id

    def _remove_memories(self, agent: Record) -> None:
        others = [other for other in self.scan(_AGENTS) if other["_id"] != agent["_id"]]
        namespaces = _texts(agent.get("memory_ids")).difference(*(_texts(other.get("memory_ids")) for other in others))
        for store in MemoryType:
            if store is _AGENTS:
                continue
            ids = []
            for row in self.scan(store):
                owner = row.get("agent_id") or row.get("owner_agent_id")
                if owner == agent["_id"] or (not owner and row.get("memory_id") in namespaces):
                    ids.append(row["_id"])
            if ids:
                self._remove("delete_memagent", store, ids)


def tool_rows(agent: Record) -> list[Record]:
    """The rows of the toolbox that mirror an agent's tools. Tools without a name have none."""
    tools = agent.get("tools")
    rows = {}
    for tool in tools if isinstance(tools, list) else []:
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str) or not tool["name"]:
            continue
        id = f"{agent['agent_id']}:{tool['name']}"
        description = tool.get("description") or ""
        rows[id] = {
            "_id": id,
            "tool_id": id,
            "name": tool["name"],
            "description": description,
            "signature": tool.get("signature") or "",
            "docstring": tool.get("docstring") or description,
            "tool_type": tool.get("tool_type") or tool.get("type") or "function",
            "parameters": tool.get("parameters") or {},
            "agent_id": agent["agent_id"],
        }
    return list(rows.values())


def _agent_id(record: Record) -> str | None:
    found = (record.get(name) for name in ("agent_id", "_id", "id"))
    return next((str(value) for value in found if value), None)


def _texts(value: Any) -> set[str]:
    return {item for item in value if isinstance(item, str)} if isinstance(value, list) else set()
