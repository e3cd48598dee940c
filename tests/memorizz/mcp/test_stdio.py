"""The MCP server of the memory graph for one client of this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from memorizz import SQLiteConfig, SQLiteProvider
from memorizz.memory_archive import MemoryArchive, seal_archive, validate_archive
from tests.memorizz.mcp.conftest import over_stdio, refusal, result, tool
from tests.memorizz.support import archive

pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_client_learns_of_two_tools_with_their_hints(memory: Path, mode: str) -> None:
    async def body(client: Client) -> Any:
        return await client.list_tools()

    listed = {found.name: found for found in over_stdio(memory, body, mode=mode).tools}
    assert list(listed) == ["memorizz_export_memories", "memorizz_import_memories"]
    exporting, importing = (found.annotations for found in listed.values())
    assert (exporting.read_only_hint, exporting.destructive_hint) == (True, False)
    assert (importing.read_only_hint, importing.destructive_hint, importing.idempotent_hint) == (False, True, False)
    assert listed["memorizz_import_memories"].input_schema["required"] == ["archive"]


def test_an_export_is_the_archive_of_the_exact_tenant(memory: Path) -> None:
    made = result(over_stdio(memory, tool("export"), MEMORIZZ_MCP_SERVER_LOCAL_PRINCIPAL="ana"))
    assert made["ok"]
    validate_archive(made["archive"])
    assert made["archive"]["manifest"]["scope"]["user_id"] == "ana"
    users = {row["data"].get("user_id") for row in made["archive"]["stores"]["conversation_memory"]}
    assert users == {"ana"}
    with SQLiteProvider(SQLiteConfig(path=memory)) as provider:
        direct = MemoryArchive(provider).export(user_id="ana")
    assert made["archive"]["stores"] == direct["stores"]


def test_the_documented_calls_move_a_project(memory: Path, tmp_path: Path) -> None:
    made = result(over_stdio(memory, tool("export", memory_id="ns-plover")))["archive"]
    target = tmp_path / "target.sqlite3"
    preview = result(over_stdio(target, tool("import", archive=made)))
    assert (preview["dry_run"], preview["imported"], preview["ok"]) == (True, 0, True)
    assert preview["planned"] == made["manifest"]["record_count"] > 0
    applied = result(over_stdio(target, tool("import", archive=made, dry_run=False, id_strategy="new")))
    assert (applied["ok"], applied["imported"]) == (True, preview["planned"])
    into = tool("import", archive=made, dry_run=False, target_memory_id="ns-other")
    assert result(over_stdio(target, into))["ok"]
    with SQLiteProvider(SQLiteConfig(path=target)) as provider:
        assert MemoryArchive(provider).export(memory_id="ns-other")["manifest"]["record_count"] == preview["planned"]


def test_a_conflict_is_listed_by_a_preview_and_refused_by_an_apply(memory: Path) -> None:
    given = archive("anonymous")
    preview = result(over_stdio(memory, tool("import", archive=given)))
    assert not preview["ok"]
    assert len(preview["conflicts"]) == preview["planned"]
    assert refusal(over_stdio(memory, tool("import", archive=given, dry_run=False))).startswith("archive_error: ")
    assert result(over_stdio(memory, tool("import", archive=given, dry_run=False, conflict="skip")))["ok"]


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("export", {"agent_id": "nobody"}, "archive_error: agents: there is no agent 'nobody'"),
    ("export", {"memory_types": ["notes"]}, "invalid_memory_type: unknown memory type 'notes'"),
    ("export", {"memory_types": []}, "invalid_memory_type: memory_types must not be empty"),
    ("export", {"memory_types": [1]}, "invalid_arguments: memory_types: expected an array of strings"),
    ("export", {"user_id": "ben"}, "invalid_arguments: unknown argument `user_id`"),
    ("export", {"include_history": "perhaps"}, "invalid_arguments: include_history: expected true or false"),
    ("import", {}, "invalid_arguments: missing field `archive`"),
    ("import", {"archive": 5}, "invalid_arguments: archive: expected an object"),
    ("import", {"archive": {}}, "archive_error: "),
    ("import", {"archive": {"format": "memorizz.memory", "version": 2}}, "archive_error: "),
]


@pytest.mark.parametrize(("name", "arguments", "message"), REFUSED)
def test_a_call_that_cannot_be_done_says_a_code_and_a_sentence(
    memory: Path, name: str, arguments: dict[str, Any], message: str
) -> None:
    assert refusal(over_stdio(memory, tool(name, **arguments))).startswith(message)


@pytest.mark.parametrize(("option", "value"), [("conflict", "merge"), ("id_strategy", "fresh")])
def test_an_option_without_that_value_is_refused(memory: Path, option: str, value: str) -> None:
    answer = over_stdio(memory, tool("import", archive=archive(), **{option: value}))
    assert value in refusal(answer)


def test_an_archive_of_another_tenant_is_refused(memory: Path) -> None:
    answer = over_stdio(memory, tool("import", archive=archive("user_ana")), MEMORIZZ_MCP_SERVER_LOCAL_PRINCIPAL="ben")
    assert "outside of the scope 'ben'" in refusal(answer)


def test_a_server_that_does_not_write_previews(memory: Path) -> None:
    given = archive("anonymous")
    call = tool("import", archive=given, dry_run=False, conflict="skip")
    assert refusal(over_stdio(memory, call, "--read-only")).startswith("writes_disabled: ")
    assert result(over_stdio(memory, tool("import", archive=given), "--read-only"))["dry_run"]


def test_only_agents_on_the_list_are_seen_and_the_rest_is_counted(memory: Path) -> None:
    made = result(over_stdio(memory, tool("export"), "--agent-id", "agent-keel"))
    validate_archive(made["archive"])
    assert [row["id"] for row in made["archive"]["stores"]["agents"]] == ["agent-keel"]
    hidden = made["left_out"]["records"]
    assert hidden["agents"] == 2
    assert made["archive"]["manifest"]["left_out"] == hidden
    assert any("may not be seen" in warning for warning in made["archive"]["manifest"]["warnings"])
    everything = result(over_stdio(memory, tool("export")))
    assert "left_out" not in everything
    kept = made["archive"]["manifest"]["record_count"]
    assert kept + sum(hidden.values()) == everything["archive"]["manifest"]["record_count"]


def test_an_agent_that_is_not_on_the_list_is_not_found(memory: Path) -> None:
    given = archive("agent_coordinator")
    only = ("--agent-id", "agent-keel")
    assert refusal(over_stdio(memory, tool("export", agent_id="agent-reed"), *only)).startswith("agent_not_found: ")
    assert refusal(over_stdio(memory, tool("import", archive=given), *only)).startswith("agent_not_found: ")
    own = result(over_stdio(memory, tool("export", agent_id="agent-keel", include_delegates=False), *only))["archive"]
    copies = tool("import", archive=own, id_strategy="new")
    assert "new ids would make an agent" in refusal(over_stdio(memory, copies, *only))


def test_a_limit_is_an_error_and_never_a_shorter_archive(memory: Path) -> None:
    small = ("--max-request-bytes", "5000")
    assert "5000" in refusal(over_stdio(memory, tool("export"), *small))
    assert "5000" in refusal(over_stdio(memory, tool("import", archive=archive("agent_coordinator")), *small))


def test_an_archive_that_is_larger_than_a_line_of_the_typed_memory_fits_where_the_limit_says_so(tmp_path: Path) -> None:
    given = archive("anonymous")
    given["stores"]["knowledge_base"][0]["data"]["content"] = "x" * (17 * 1024 * 1024)
    sealed = json.loads(json.dumps(seal_archive(given)))
    answer = over_stdio(tmp_path / "big.sqlite3", tool("import", archive=sealed), "--max-request-bytes", "20000000")
    assert result(answer)["planned"] == given["manifest"]["record_count"]


@pytest.mark.parametrize(
    "arguments",
    [{"memory_id": ""}, {"memory_id": "null"}, {"agent_id": " "}, {"include_history": "false"}],
)
def test_what_may_be_meant_otherwise_is_refused_before_too_much_is_exported(
    memory: Path, arguments: dict[str, Any]
) -> None:
    assert refusal(over_stdio(memory, tool("export", **arguments))).startswith("invalid_arguments: ")


def test_a_flag_as_text_applies_nothing(memory: Path) -> None:
    answer = over_stdio(memory, tool("import", archive=archive("empty_store"), dry_run="false"))
    assert refusal(answer) == "invalid_arguments: dry_run: expected true or false, got a text"
