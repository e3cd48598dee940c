"""What is kept beside agents, in tables of its own: their model, namespaces, knowledge bases and delegates.

The extras of an agent hold these fields as they were given. As long as the tables say the same, the extras count; where
another program changed the tables, these do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from memorizz.providers.oracle_schema import OF_AGENTS, Column, Kind
from memorizz.providers.oracle_sessions import Sql
from memorizz.providers.oracle_values import Shape, is_held, plain, read_extras, text_of
from memorizz.providers.values import Unreadable
from memorizz.records import Record
from memorizz.taxonomy import MemoryType

_LISTS: Final = {
    "memory_ids": ("agent_memories", "memory_id"),
    "knowledge_base_ids": ("agent_knowledge_bases", "knowledge_base_id"),
}
_NAME_SIZE: Final = 255
_NUMBERS: Final = ("temperature", "max_tokens", "top_p", "frequency_penalty", "presence_penalty")
_MODEL: Final = ("provider", "model", *_NUMBERS)
_COLUMNS: Final = (
    *(Column(name, Kind.TEXT, _NAME_SIZE) for name in _MODEL[:2]),
    *(Column(name, Kind.NUMBER) for name in _NUMBERS),
    Column("additional_config", Kind.JSON),
)

Linked = Callable[[MemoryType], bool]


class Agents:
    """The tables beside ``agents``. ``prefix`` names the schema."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def known(self, sql: Sql, ids: Iterable[str]) -> dict[str, bytes]:
        """Those of ``ids`` that an agent has, and the keys of their rows."""
        wanted = sorted({id for id in ids if id})
        rows = sql.among(f"SELECT agent_id, id FROM {self._prefix}agents WHERE agent_id IN ({{}})", wanted)
        return {id: bytes(key) for id, key in rows}

    def complete(self, sql: Sql, agents: Mapping[bytes, Record]) -> None:
        """Let agents that were read say what the tables beside them say."""
        models = {bytes(row[0]): row[1:] for row in sql.among(self._select_models, agents)}
        for key, record in agents.items():
            _settle_model(record, models.get(key))
        for field, (table, column) in _LISTS.items():
            held = _grouped(
                sql.among(f"SELECT agent_id, {column} FROM {self._prefix}{table} WHERE agent_id IN ({{}})", agents)
            )
            for key, record in agents.items():
                _settle_list(record, field, _texts(record.get(field)), held.get(key, set()))
        delegates = _grouped(
            sql.among(
                f"SELECT l.agent_id, a.agent_id FROM {self._prefix}agent_delegates l JOIN {self._prefix}agents a "
                "ON a.id = l.delegate_agent_id WHERE l.agent_id IN ({})",
                agents,
            )
        )
        known = self.known(sql, {id for record in agents.values() for id in _texts(record.get("delegates"))})
        for key, record in agents.items():
            # Who is not there cannot be linked to.
            own = _texts(record.get("delegates")) & known.keys()
            _settle_list(record, "delegates", own, delegates.get(key, set()))

    def write(self, sql: Sql, agents: Mapping[bytes, Record], types: Any) -> None:
        """The second phase: all agents are there, and can be linked to."""
        self.clear(sql, agents)
        models = [(key, *row) for key, record in agents.items() if (row := _model_row(record)) is not None]
        marks = ", ".join(f":b{number}" for number in range(len(_COLUMNS) + 1))
        names = ", ".join(column.name for column in _COLUMNS)
        sql.many(
            f"INSERT INTO {self._prefix}agent_llm_configs (agent_id, {names}) VALUES ({marks})",
            models,
            [None, *map(types, _COLUMNS)],
        )
        for field, (table, column) in _LISTS.items():
            rows = [(key, text) for key, record in agents.items() for text in sorted(_texts(record.get(field)))]
            sql.many(f"INSERT INTO {self._prefix}{table} (agent_id, {column}) VALUES (:b0, :b1)", rows)
        self._link(sql, [(key, id) for key, record in agents.items() for id in sorted(_texts(record.get("delegates")))])

    def clear(self, sql: Sql, keys: Iterable[bytes]) -> None:
        """Remove what is beside these agents."""
        rows = [(key,) for key in keys]
        for table in ("agent_llm_configs", "agent_memories", "agent_knowledge_bases", "agent_delegates"):
            sql.many(f"DELETE FROM {self._prefix}{table} WHERE agent_id = :b0", rows)

    def unlink(self, sql: Sql, keys: Iterable[bytes]) -> None:
        """Remove the links that lead to these agents."""
        rows = [(key,) for key in keys]
        sql.many(f"DELETE FROM {self._prefix}agent_delegates WHERE delegate_agent_id = :b0", rows)

    def welcome(self, sql: Sql, ids: set[str], written: Mapping[bytes, Record], shapes: Iterable[Shape]) -> None:
        """Link agents that are new, by their ids, to what waited for them: other agents, personas, tools and skills."""
        waiting = sql.query(
            f"SELECT id, archive_extras FROM {self._prefix}agents "
            "WHERE JSON_VALUE(archive_extras, '$.delegates[0]') IS NOT NULL"
        )
        links = []
        for key, text in waiting:
            if key in written:
                continue
            try:
                links += [(bytes(key), id) for id in sorted(_texts(read_extras(text)[0].get("delegates")) & ids)]
            except Unreadable:
                continue
        self._link(sql, links)
        for shape in shapes:
            if shape.is_there and shape.has_extras:
                sql.run(
                    f"UPDATE {self._prefix}{shape.table.name} SET agent_id = JSON_VALUE(archive_extras, '$.agent_id') "
                    "WHERE agent_id IS NULL AND JSON_VALUE(archive_extras, '$.agent_id') IN "
                    f"(SELECT agent_id FROM {self._prefix}agents)"
                )

    def release(self, sql: Sql, ids: Iterable[str]) -> None:
        """Let no persona, tool or skill refer to these agents by key; their extras still name them."""
        rows = [(id,) for id in ids]
        for store in OF_AGENTS:
            sql.many(f"UPDATE {self._prefix}{store} SET agent_id = NULL WHERE agent_id = :b0", rows)

    @property
    def _select_models(self) -> str:
        names = ", ".join(column.name for column in _COLUMNS)
        return f"SELECT agent_id, {names} FROM {self._prefix}agent_llm_configs WHERE agent_id IN ({{}})"

    def _link(self, sql: Sql, links: list[tuple[bytes, str]]) -> None:
        sql.many(
            f"INSERT INTO {self._prefix}agent_delegates (agent_id, delegate_agent_id) "
            f"SELECT :b0, a.id FROM {self._prefix}agents a WHERE a.agent_id = :b1 AND NOT EXISTS "
            f"(SELECT 1 FROM {self._prefix}agent_delegates l WHERE l.agent_id = :b0 AND l.delegate_agent_id = a.id)",
            links,
        )


def _texts(value: Any) -> set[str]:
    return {item for item in value if isinstance(item, str) and item} if isinstance(value, list) else set()


def _grouped(rows: Iterable[tuple[Any, ...]]) -> dict[bytes, set[str]]:
    found: dict[bytes, set[str]] = {}
    for key, text in rows:
        found.setdefault(bytes(key), set()).add(text)
    return found


def _settle_list(record: Record, field: str, own: set[str], held: set[str]) -> None:
    if own != held:
        record[field] = sorted(held)


def _model_row(record: Record) -> list[Any] | None:
    """The row of an agent's model, where its configuration names provider and model."""
    config = record.get("llm_config")
    if not isinstance(config, dict):
        return None
    names = [config.get(name) for name in _MODEL[:2]]
    if not all(isinstance(name, str) and 0 < len(name) <= _NAME_SIZE for name in names):
        return None
    numbers = {name: value for name in _NUMBERS if type(value := config.get(name)) in (int, float)}
    rest = {name: value for name, value in config.items() if name not in (*_MODEL[:2], *numbers)}
    return [*names, *map(numbers.get, _NUMBERS), text_of(rest) if rest else None]


def _settle_model(record: Record, held: tuple[Any, ...] | None) -> None:
    own = _model_row(record)
    if own is None and held is None:
        return
    if own is not None and held is not None and all(map(is_held, _COLUMNS, own, held)):
        return
    if held is None:
        del record["llm_config"]
        return
    said = {column.name: plain(column, value) for column, value in zip(_COLUMNS, held, strict=True)}
    rest = said.pop("additional_config")
    named = {name: value for name, value in said.items() if value is not None}
    record["llm_config"] = {**named, **(rest if isinstance(rest, dict) else {})}
