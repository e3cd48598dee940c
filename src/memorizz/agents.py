"""The configuration of an agent: its fields, their types and the values they have when nobody sets them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from memorizz.checks import invalid, refusal
from memorizz.errors import InvalidRecord
from memorizz.records import Record
from memorizz.taxonomy import MemoryType

Json: TypeAlias = dict[str, Any]
Named: TypeAlias = Json | str | None
"""Something that is configured by its name or by an object."""


class MemAgentModel(msgspec.Struct, kw_only=True):
    """The configuration of one agent.

    ``delegates`` are the ids of agents it hands work to, ``memory_ids`` the namespaces whose records are its own, the
    first of them the one it writes to. Fields that this version does not know are kept in ``extra`` and written back.
    Times are ISO 8601 text. Only data is held: a tool is an object with a name and, if it can be run, an
    ``import_reference``.
    """

    agent_id: str
    name: str | None = None
    instruction: str | None = None
    application_id: str | None = None
    application_mode: str | None = "assistant"
    memory_ids: list[str] | None = None
    memory_types: list[str] | None = None
    delegates: list[str] | None = None
    knowledge_base_ids: list[str] | None = None
    tools: list[Json | str] | None = None
    tool_access: str | None = "private"
    persona: Json | None = None
    model: Named = None
    llm_config: Json | None = None
    background_llm_config: Json | None = None
    max_steps: int = 20
    embedding_provider: Named = None
    embedding_config: Json | None = None
    semantic_cache: bool = False
    semantic_cache_config: Json | None = None
    tool_result_policy: Named = None
    tool_cache_config: Json | None = None
    context_policy: Named = None
    completion_policy: Named = None
    retrieval_policy: Named = None
    memory_consolidation: Named | bool = None
    memory_routing: Named | bool = None
    reranker: Named | bool = None
    entity_policy: Named = None
    delegation_config: Json | None = None
    skill_retrieval: bool = False
    skill_retrieval_config: Json | None = None
    semantic_layer_config: Json | None = None
    context_window_tokens: int | None = None
    context_window_source: str | None = None
    thread_titles: dict[str, str] | None = None
    is_favorite: bool = False
    multi_tenant: bool = False
    internet_access_provider: Named = None
    internet_access_config: Json | None = None
    skills_marketplace_provider: Named = None
    skills_marketplace_config: Json | None = None
    sandbox_provider: Named = None
    browser_control: Named | bool = None
    meta_harness: bool = False
    meta_harness_mode: str | None = None
    default_harness: str | None = "auto"
    harness_config: Json | None = None
    skill_paths: list[str] | None = None
    mcp_servers: list[Json] | None = None
    self_aware: bool = False
    self_aware_config: Json | None = None
    continual_learning: bool = False
    continual_learning_config: Json | None = None
    learning_control_plane: bool = False
    learning_control_plane_config: Json | None = None
    automations_enabled: bool = True
    default_timezone: str | None = None
    whatsapp_enabled: bool = False
    whatsapp_config: Json | None = None
    created_at: str | None = None
    updated_at: str | None = None
    extra: Json = msgspec.field(default_factory=dict)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MemAgentModel:
        """The configuration in a record of the store ``agents``.

        Raises:
            InvalidRecord: A field breaks its rule; the message names the agent, the field, the rule and the value.
        """
        known = {name: value for name, value in data.items() if name in FIELDS}
        extra = {name: value for name, value in data.items() if name not in FIELDS and name not in _IDENTITY}
        id = data.get("agent_id")
        if not id:
            raise invalid(MemoryType.MEMAGENT, id, "agent_id", "text that is not empty", id)
        try:
            agent = msgspec.convert(known, cls)
        except msgspec.ValidationError as error:
            raise refusal(MemoryType.MEMAGENT, id, data, str(error)) from None
        agent.extra = extra
        return agent

    @classmethod
    def validate(cls, data: Mapping[str, Any]) -> None:
        """Do nothing for a record that :meth:`from_dict` would take.

        Raises:
            InvalidRecord: As there.
        """
        cls.from_dict(data)

    def to_dict(self) -> Record:
        """The record of the store ``agents``: every field, known or kept, and ``_id`` and ``id``.

        Raises:
            InvalidRecord: A field was set to what its rule does not allow, or to something that is not JSON.
        """
        record: Record = {name: getattr(self, name) for name in FIELDS}
        record |= self.extra | {"_id": self.agent_id, "id": self.agent_id}
        try:
            copied: Record = json.loads(json.dumps(record, allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidRecord(f"agents: {self.agent_id}: the configuration must be JSON data ({error})") from None
        type(self).validate(copied)
        return copied


FIELDS: Final = tuple(name for name in MemAgentModel.__struct_fields__ if name != "extra")
"""The names of the known fields, in the order they are written."""

_IDENTITY: Final = frozenset({"_id", "id"})
