"""The two tools: an archive out, an archive in, within what the caller and the server allow."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from agent_memory.errors import MalformedParameters
from agent_memory.mcp.session import Tool, ToolFailed
from agent_memory.operations import arguments
from memorizz.archive.envelope import seal_checked
from memorizz.archive.selection import agents_of
from memorizz.errors import MemorizzError, ProviderFault
from memorizz.mcp.access import WRITE, Policy, Principal
from memorizz.memory_archive import MemoryArchive, validate_archive
from memorizz.providers.contract import Provider
from memorizz.taxonomy import MemoryType

log = logging.getLogger(__name__)

INSTRUCTIONS: Final = (
    "Moves an agent's memory between stores as a portable archive. memorizz_export_memories returns an archive; "
    "memorizz_import_memories restores one. Preview an import first (dry_run, the default), show the user its counts, "
    "conflicts and warnings, then apply. Never print memory values that nobody asked for. An archive that is larger "
    "than the request limit travels as a file: `memorizz memory export` and `memorizz memory import`."
)

_EXPORT: Final = {
    "type": "object",
    "properties": {
        "memory_id": {"type": "string", "description": "Only this namespace, such as a project's."},
        "agent_id": {"type": "string", "description": "Only this agent, with its delegates."},
        "memory_types": {
            "type": "array",
            "items": {"type": "string", "enum": [store.value for store in MemoryType]},
            "description": "Only these stores; all that this server shows when left out.",
        },
        "include_delegates": {"type": "boolean", "description": "With the agents it delegates to. Default true."},
        "include_history": {"type": "boolean", "description": "With recorded changes. Default true."},
        "include_context": {"type": "boolean", "description": "With captured context. Default true."},
    },
    "additionalProperties": False,
}
_IMPORT: Final = {
    "type": "object",
    "properties": {
        "archive": {"type": "object", "description": "The archive, as an export returned it, unchanged."},
        "dry_run": {"type": "boolean", "description": "Only say what would happen. Default true."},
        "conflict": {
            "type": "string",
            "enum": ["error", "skip", "replace"],
            "description": "What becomes of records that are there already. Default error.",
        },
        "id_strategy": {
            "type": "string",
            "enum": ["preserve", "new"],
            "description": "new makes an independent copy under new ids. Default preserve.",
        },
        "target_memory_id": {"type": "string", "description": "Namespace to restore a single-namespace archive into."},
    },
    "required": ["archive"],
    "additionalProperties": False,
}


class Refused(ToolFailed):
    """A call that is answered with a tool error: ``code: message``."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")


def tools(provider: Provider, policy: Policy, caller: Callable[[], Principal]) -> list[Tool]:
    """The table of tools over ``provider``; ``caller`` says, within a call, who makes it."""
    transfer = Transfer(provider, policy)
    return [
        Tool(
            name="memorizz_export_memories",
            title="Export memories",
            description=(
                "Return the caller's memories as one portable archive, checksummed: a project's (memory_id), an "
                "agent's with its delegates (agent_id), or everything the caller may see. Credentials and embeddings "
                'are left out. Returns {"ok", "archive"}, and "left_out" when this server withholds records or stores.'
            ),
            input_schema=_EXPORT,
            read_only=True,
            destructive=False,
            idempotent=True,
            call=lambda raw: _answer(_EXPORT, raw, lambda given: transfer.export(caller(), **given)),
        ),
        Tool(
            name="memorizz_import_memories",
            title="Import memories",
            description=(
                "Restore an archive into the caller's memory. Without dry_run=false it only previews: planned and "
                "skipped counts, conflicts, warnings and errors. Existing records stop an import unless conflict is "
                "skip or replace."
            ),
            input_schema=_IMPORT,
            read_only=False,
            destructive=True,
            idempotent=False,
            call=lambda raw: _answer(_IMPORT, raw, lambda given: transfer.restore(caller(), **given)),
        ),
    ]


class Transfer:
    """Exports and imports for principals under a policy."""

    def __init__(self, provider: Provider, policy: Policy) -> None:
        self._provider = provider
        self._policy = policy

    def export(
        self,
        principal: Principal,
        *,
        memory_id: str | None = None,
        agent_id: str | None = None,
        memory_types: Sequence[str] | None = None,
        **includes: Any,
    ) -> dict[str, Any]:
        """The answer with the archive, and what the policy left out.

        Raises:
            Refused: The caller may not have what was asked for, or it is too large.
        """
        if agent_id is not None:
            self._check_agents({agent_id}, "agent_id")
        chosen = self._policy.stores if memory_types is None else self._stores(memory_types)
        archive = MemoryArchive(self._provider).export(
            memory_id=memory_id,
            agent_id=agent_id,
            memory_types=chosen,
            user_id=principal.name,
            visible_agents=self._policy.agents,
            max_bytes=self._policy.max_bytes,
            **includes,
        )
        withheld = [] if memory_types is not None else sorted(frozenset(MemoryType) - self._policy.stores)
        left_out: dict[str, Any] = {}
        if "left_out" in archive["manifest"]:
            left_out["records"] = archive["manifest"]["left_out"]
        if withheld:
            left_out["stores"] = [store.value for store in withheld]
            archive = self._saying(archive, withheld)
        return {"ok": True, "archive": archive, **({"left_out": left_out} if left_out else {})}

    def restore(
        self, principal: Principal, *, archive: Mapping[str, Any], dry_run: bool = True, **options: Any
    ) -> dict[str, Any]:
        """The report of an import or its preview.

        Raises:
            Refused: The caller or the server may not write, or the archive holds what may not be imported here.
        """
        if not dry_run:
            if WRITE not in principal.scopes:
                raise Refused("insufficient_scope", f"applying an import needs the scope {WRITE}")
            if not self._policy.allow_writes:
                raise Refused("writes_disabled", "this server does not write; preview with dry_run true")
        valid = validate_archive(archive, max_bytes=self._policy.max_bytes)
        self._check_contents(valid, copies=options.get("id_strategy") == "new")
        return MemoryArchive(self._provider).import_archive(
            valid, dry_run=dry_run, user_id=principal.name, max_bytes=self._policy.max_bytes, **options
        )

    def _stores(self, names: Sequence[str]) -> frozenset[MemoryType]:
        if not names:
            raise Refused("invalid_memory_type", "memory_types must not be empty; leave it out for all")
        try:
            stores = frozenset(MemoryType.parse(name) for name in names)
        except ValueError as error:
            raise Refused("invalid_memory_type", str(error)) from None
        for store in sorted(stores):
            self._check_store(store)
        return stores

    def _check_store(self, store: MemoryType) -> None:
        if store not in self._policy.stores:
            raise Refused(
                "memory_type_not_tenant_scoped",
                f"{store} holds records of all users and does not travel over a network; "
                f"these do: {', '.join(sorted(self._policy.stores))}",
            )

    def _check_agents(self, agents: set[str], where: str) -> None:
        if self._policy.agents is not None and not self._policy.agents.issuperset(agents):
            unseen = sorted(agents - self._policy.agents)[0]
            raise Refused("agent_not_found", f"{where}: this server shows no agent {unseen!r:.80}")

    def _check_contents(self, archive: Mapping[str, Any], *, copies: bool) -> None:
        for name, rows in archive["stores"].items():
            store = MemoryType(name)
            if rows:
                self._check_store(store)
            if self._policy.agents is None:
                continue
            for row in rows:
                agents = agents_of(store, row["data"])
                self._check_agents(agents, f"{store} {row['id']!r:.80}")
                if agents and copies:
                    raise Refused(
                        "agent_not_found",
                        f"{store} {row['id']!r:.80}: new ids would make an agent that this server does not show",
                    )

    def _saying(self, archive: Mapping[str, Any], withheld: Sequence[MemoryType]) -> dict[str, Any]:
        manifest = dict(archive["manifest"])
        names = ", ".join(withheld)
        said = f"stores that hold records of all users do not travel over a network and were left out: {names}"
        manifest["warnings"] = [*manifest["warnings"], said]
        parts = {name: part for name, part in archive.items() if name != "integrity"}
        return seal_checked({**parts, "manifest": manifest}, max_bytes=self._policy.max_bytes)


def _refuse_ambiguous(schema: Mapping[str, Any], raw: Any) -> None:
    """Refuse what a language model may have meant otherwise: what is exported or written depends on it.

    Raises:
        Refused: A text is empty or spells ``null``, or a flag is a text.
    """
    for name, value in raw.items() if isinstance(raw, dict) else ():
        kind = schema["properties"].get(name, {}).get("type")
        if kind == "string" and isinstance(value, str) and value.strip() in ("", "null", "undefined"):
            raise Refused("invalid_arguments", f"{name}: must not be empty; leave it out (got {value!r})")
        if kind == "boolean" and isinstance(value, str):
            raise Refused("invalid_arguments", f"{name}: expected true or false, got a text")


def _answer(schema: Mapping[str, Any], raw: Any, call: Callable[[dict[str, Any]], dict[str, Any]]) -> Sequence[str]:
    """The JSON text of what ``call`` returns for the arguments.

    Raises:
        Refused: The arguments or what they ask for.
    """
    try:
        given = arguments.read(schema, raw)
    except MalformedParameters as error:
        raise Refused("invalid_arguments", error.reason) from None
    _refuse_ambiguous(schema, raw)
    if given.unknown:
        known = ", ".join(schema["properties"])
        raise Refused("invalid_arguments", f"unknown argument `{given.unknown[0]:.80}`; known are {known}")
    try:
        result = call(given.values)
    except ProviderFault as error:
        log.error("the storage failed: %s", error)
        raise Refused("internal_error", "the storage failed (details are in the server log)") from None
    except MemorizzError as error:
        raise Refused("archive_error", str(error)) from None
    return [json.dumps(result, ensure_ascii=False, separators=(",", ":"))]
