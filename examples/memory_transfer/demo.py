"""Two agents, their whole memory, and three lives of it: the original, a restored one and an independent copy.

    python examples/memory_transfer/demo.py --root ./memory-transfer-demo
    python examples/memory_transfer/demo.py --root ./memory-transfer-demo --oracle-config connection.json

A coordinator and its delegate fill every one of the thirteen stores, a fact is corrected, and a call of a model is
captured, all with the journal of changes on. Their graph is exported to one archive, restored with its ids into a
second folder, and copied with new ids into a third. Then the demo checks that nothing was lost and that the copy refers
to nothing of the original. It needs no model and no network.

With ``--oracle-config`` the graph is restored into an Oracle database instead of the second folder. The file holds
``user``, ``password`` and ``dsn`` as JSON, and ``schema`` where that is not the user's own; others must not be able to
read it. The database must hold none of the demo's records.

``--root`` must not hold an earlier run. The story and ``evidence.json`` name the agents, namespaces, archive, counts
and maps of ids.
"""

from __future__ import annotations

import argparse
import json
import stat
import sys
from pathlib import Path
from typing import Any

from memorizz import (
    ContextSnapshots,
    ConversationMemory,
    EntityMemory,
    FileSystemConfig,
    FileSystemProvider,
    KnowledgeBase,
    MemAgentModel,
    MemorizzError,
    MemoryArchive,
    MemoryProvider,
    MemoryType,
    OracleConfig,
    OracleProvider,
    Persona,
    SemanticCache,
    SharedMemory,
    ShortTermMemory,
    Skillbox,
    Summaries,
    Toolbox,
    ToolLog,
    WorkflowMemory,
    enable_memory_history,
    memory_change_context,
)

KEEL, PLOVER = "keel", "plover"
HARBOR, GAUGE = "harbor", "tide-gauge"
THREAD = "night-watch"


def say(text: str) -> None:
    """One line of the story."""
    sys.stdout.write(text + "\n")


def live(provider: MemoryProvider) -> None:
    """Let the two agents have a night's worth of memory, in every store."""
    mine: dict[str, Any] = {"memory_id": HARBOR, "agent_id": KEEL}
    persona = Persona(provider).create("Keel", role="watch lead", goals="Keep the log honest.", **mine)
    tool = Toolbox(provider).create(
        "read_gauge",
        "Read the tide gauge.",
        parameters={"depth_m": {"type": "number"}},
        import_reference="station.tools:read_gauge",
        agent_id=PLOVER,
    )
    provider.store_memagent(
        MemAgentModel(agent_id=PLOVER, name="Plover", instruction="Watch the tide gauge.", memory_ids=[GAUGE])
    )
    provider.store_memagent(
        MemAgentModel(
            agent_id=KEEL,
            name="Keel",
            instruction="Coordinate the weather watch.",
            memory_ids=[HARBOR],
            delegates=[PLOVER],
            persona={"persona_id": persona, "name": "Keel"},
            llm_config={"provider": "openai", "model": "any", "api_key": "sk-this-must-not-travel"},
        )
    )
    talk = ConversationMemory(provider)
    messages = [
        talk.create("user", "The barometer fell six points since noon.", thread_id=THREAD, **mine),
        talk.create("assistant", "I will ask Plover for the gauge.", thread_id=THREAD, **mine),
    ]
    facts = KnowledgeBase(provider)
    wrong = facts.create("High water is at 06:10.", **mine)
    facts.correct(wrong, "High water is at 06:40: the clock was slow.", reason="clock checked")
    gauge = EntityMemory(provider).create("Tide gauge", "instrument", **mine)
    EntityMemory(provider).create(
        "North pier", "place", relations=[{"entity_id": gauge, "relation_type": "hosts"}], **mine
    )
    skill = Skillbox(provider).create("gale-warning", "1. Check the wind.\n2. Post.", agent_id=KEEL)
    WorkflowMemory(provider).create(
        "Gale drill", {"1": {"tool": "read_gauge"}}, outcome="success", promoted_skill_id=skill, **mine
    )
    Summaries(provider).create("Pressure fell; Plover was asked.", messages, thread_id=THREAD, **mine)
    ShortTermMemory(provider).create("Check the anemometer bearings.", **mine)
    SemanticCache(provider).create("when is high water", "06:40", **mine)
    ToolLog(provider).create(
        "read_gauge", {"depth_m": 3}, "3.4", success=True, memory_id=GAUGE, agent_id=PLOVER, tool_id=tool
    )
    session = SharedMemory(provider).create(KEEL, [PLOVER])
    SharedMemory(provider).post(session, PLOVER, "The gauge reads 3.4 m.")
    SharedMemory(provider).complete(session, "warning posted")
    ContextSnapshots(provider).capture(
        "span-1", [{"role": "user", "content": "The barometer fell."}], agent_id=KEEL, memory_id=HARBOR, run_id="run-1"
    )


def records(provider: MemoryProvider) -> dict[str, list[dict[str, Any]]]:
    """Everything that a provider holds, by store."""
    return {store.value: list(provider.scan(store)) for store in MemoryType}


def check(condition: object, what: str) -> None:
    """End the demo when something is not as it should be."""
    if not condition:
        raise SystemExit(f"FAILED: {what}")
    say(f"  ok  {what}")


def verify(provider: MemoryProvider, archive: dict[str, Any], ids: dict[str, str]) -> None:
    """Check a restored graph: ``ids`` says which id took the place of which."""

    def new(id: str) -> str:
        return ids.get(id, id)

    mine = {(store, new(row["id"])) for store, rows in archive["stores"].items() for row in rows}
    # A database may hold more than what the demo brought.
    held = {
        store: [record for record in found if (store, record["_id"]) in mine]
        for store, found in records(provider).items()
    }
    by_id = {store: {record["_id"]: record for record in found} for store, found in held.items()}
    natural = {str(record.get("agent_id")): record for record in held["agents"]}
    for store, rows in archive["stores"].items():
        check(all(new(row["id"]) in by_id[store] for row in rows), f"{len(rows):2} records of {store} are there")
    keel = natural[new(KEEL)]
    check(keel["delegates"] == [new(PLOVER)], "the coordinator has its delegate")
    check(natural[new(PLOVER)]["memory_ids"] == [new(GAUGE)], "the delegate has a namespace of its own")
    check("api_key" not in keel["llm_config"], "no credential came along")
    check(keel["automations_enabled"] is False, "its automations are off")
    (old,) = [record for record in held["knowledge_base"] if record.get("status") == "superseded"]
    (fact,) = [record for record in held["knowledge_base"] if record.get("supersedes")]
    check((old["superseded_by"], fact["supersedes"]) == (fact["_id"], old["_id"]), "the corrected fact is linked")
    (summary,) = held["summaries"]
    check(set(summary["source_message_ids"]) == set(by_id["conversation_memory"]), "the summary has its messages")
    changes = [row for row in held["shared_memory"] if "memory_history_change" in str(row["content"])]
    check(len(changes) > 10, f"{len(changes)} changes of the journal came along")


def main() -> int:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True, metavar="DIR")
    parser.add_argument("--oracle-config", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    try:
        oracle = None if arguments.oracle_config is None else private_config(arguments.oracle_config)
    except (OSError, ValueError) as error:
        parser.error(f"--oracle-config: {error}")
    root: Path = arguments.root.expanduser().absolute()
    if (root / "evidence.json").exists() or (root / "source").exists():
        parser.error(f"--root: {root} holds an earlier run; name another directory, or remove that one")
    try:
        return run(root, oracle)
    except MemorizzError as error:
        say(f"FAILED: {error}")
        return error.exit_code


def private_config(path: Path) -> OracleConfig:
    """The connection in a file that only its owner can read."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise ValueError(f"others can read {path}, which holds a password (its mode is {mode:04o}): chmod 600 {path}")
    said = json.loads(path.read_text(encoding="utf-8"))
    names = {"user", "password", "dsn"}
    if not isinstance(said, dict) or not names <= said.keys() <= names | {"schema"}:
        raise ValueError(f"{path} must hold a JSON object with user, password and dsn, and maybe schema")
    return OracleConfig(**said)


def run(root: Path, oracle: OracleConfig | None) -> int:
    """The story. ``oracle`` takes the place of the second folder."""
    path = root / "harbor.memorizz.json"
    second = FileSystemProvider(FileSystemConfig(root / "restored")) if oracle is None else OracleProvider(oracle)
    with (
        second as restored,
        FileSystemProvider(FileSystemConfig(root / "source")) as source,
        FileSystemProvider(FileSystemConfig(root / "copy")) as copy,
    ):
        say("Keel and Plover keep watch over a harbor, and remember it.")
        history = enable_memory_history(source)
        with memory_change_context(actor="demo", source="demo"):
            live(source)
        say(f"  {len(history.timeline().changes)} changes are in the journal")
        manifest = MemoryArchive(source).export_file(path, agent_id=KEEL)
        archive = json.loads(path.read_text(encoding="utf-8"))
        say(f"\nKeel, its delegate and their memory: {manifest['record_count']} records in {path}")
        check(all(manifest["counts"].values()), "every store has something in it")
        check("agents.llm_config.api_key" in manifest["omitted_fields"], "the credential stayed behind")

        before = records(restored)
        preview = MemoryArchive(restored).import_file(path)
        check(preview["ok"] and records(restored) == before, "the preview wrote nothing")
        first = MemoryArchive(restored).import_file(path, dry_run=False)
        check(first["ok"], "the graph is restored with its ids")
        verify(restored, archive, first["id_map"])
        again = MemoryArchive(restored).export(agent_id=KEEL)
        check(again["manifest"]["counts"] == manifest["counts"], "what is exported from there is the same")

        copied = MemoryArchive(copy).import_file(path, dry_run=False, id_strategy="new")
        check(copied["ok"], "the graph is copied with new ids")
        verify(copy, archive, copied["id_map"])
        ids = {row["id"] for rows in archive["stores"].values() for row in rows}
        check(
            not ids & {record["_id"] for found in records(copy).values() for record in found}, "the copy shares no id"
        )

    place = {"root": str(root / "restored")}
    if oracle is not None:
        place = {"dsn": oracle.dsn.rpartition("@")[2], "schema": oracle.schema or oracle.user}
    evidence = {
        "archive": str(path),
        "counts": manifest["counts"],
        "source": {"root": str(root / "source"), "agents": [KEEL, PLOVER], "namespaces": [HARBOR, GAUGE]},
        "restored": _evidence(place, first),
        "copy": _evidence({"root": str(root / "copy")}, copied),
    }
    (root / "evidence.json").write_text(json.dumps(evidence, indent=2) + "\n", encoding="utf-8")
    say(f"\nWhat happened is in {root / 'evidence.json'}.")
    return 0


def _evidence(place: dict[str, str], report: dict[str, Any]) -> dict[str, Any]:
    ids = report["id_map"]
    return {
        **place,
        "agents": [ids.get(agent, agent) for agent in (KEEL, PLOVER)],
        "namespaces": [ids.get(namespace, namespace) for namespace in (HARBOR, GAUGE)],
        "imported": report["imported"],
        "counts": report["counts"],
        "id_map": ids,
    }


if __name__ == "__main__":
    sys.exit(main())
