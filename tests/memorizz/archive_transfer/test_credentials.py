"""Credentials: which settings of an agent are some, what only describes one, and whose are kept on a replace."""

from __future__ import annotations

from typing import Any

import pytest

from memorizz import MemoryArchive, MemoryProvider, MemoryType
from memorizz.archive.redaction import redact
from tests.memorizz.transfer.test_import import agent, small

SETTINGS = ["auth", "x-auth", "secret_key", "aws_secret_key", "passwords", "cookies", "connection_string"]


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_of_an_agent_is_left_out_where_the_same_word_in_a_memory_stays(name: str) -> None:
    settings = {"mcp_servers": [{"name": "buoys", name: "s3cret", "timeout": 5}]}
    found = redact(MemoryType.MEMAGENT, settings)
    assert found.record == {"mcp_servers": [{"name": "buoys", "timeout": 5}]}
    assert found.omitted == {f"agents.mcp_servers.{name}"}
    memory = {"content": "x", "metadata": {name: "in the jar by the door"}}
    assert redact(MemoryType.KNOWLEDGE_BASE, memory) == (memory, frozenset())


@pytest.mark.parametrize("value", [True, False, None, 3])
def test_a_switch_of_that_name_is_no_credential(value: object) -> None:
    settings = {"mcp_servers": [{"name": "buoys", "auth": value}]}
    assert redact(MemoryType.MEMAGENT, settings) == (settings, frozenset())


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "description": "the token"},
        {"type": ["string", "null"]},
        {"$ref": "#/$defs/token"},
        {"anyOf": [{"type": "string"}]},
        {"enum": ["a", "b"]},
    ],
)
def test_a_parameter_that_is_called_like_a_credential_keeps_its_schema(schema: dict[str, Any]) -> None:
    tool = {"name": "ring", "parameters": {"token": schema}}
    assert redact(MemoryType.TOOLBOX, tool) == (tool, frozenset())
    held = {"tools": [tool]}
    assert redact(MemoryType.MEMAGENT, held) == (held, frozenset())


@pytest.mark.parametrize(
    "value", ["s3cret", {"type": "bearer", "value": "s3cret"}, {"type": []}, {"value": "s3cret"}, ["s3cret"], {}]
)
def test_a_value_under_that_name_is_left_out(value: object) -> None:
    found = redact(MemoryType.TOOL_LOG, {"parameters": {"token": value, "times": 2}})
    assert found == ({"parameters": {"times": 2}}, frozenset({"tool_log.parameters.token"}))


def test_titles_of_threads_and_names_of_changed_fields_are_no_credentials() -> None:
    titled = {"thread_titles": {"night-token": "The token hunt"}}
    assert redact(MemoryType.MEMAGENT, titled) == (titled, frozenset())
    change = {"content": {"field_changes": {"api_key": "removed", "token": "s3cret"}}}
    assert redact(MemoryType.SHARED_MEMORY, change) == (
        {"content": {"field_changes": {"api_key": "removed"}}},
        frozenset({"shared_memory.content.field_changes.token"}),
    )


LIVE = {
    "llm_config": {"provider": "openai", "model": "m-1", "api_key": "live"},
    "mcp_servers": [
        {"name": "buoys", "url": "https://buoys.example/mcp", "headers": {"Authorization": "Bearer live"}},
        {"name": "tides", "url": "https://tides.example/mcp", "auth": "live"},
    ],
    "automations_enabled": True,
}


def test_a_replaced_agent_keeps_the_credentials_of_unchanged_addresses(target: MemoryProvider) -> None:
    target.put(MemoryType.MEMAGENT, [("keel", agent("keel", **LIVE))])
    made = MemoryArchive(target).export()
    assert "live" not in str(made["stores"])
    report = MemoryArchive(target).import_archive(made, dry_run=False, conflict="replace")
    assert target.get(MemoryType.MEMAGENT, "keel") == agent("keel", **{**LIVE, "automations_enabled": False})
    assert [warning for warning in report["warnings"] if "keel" in warning] == [
        "the automations of agent 'keel' are switched off; it keeps its credentials"
    ]


@pytest.mark.parametrize("name", ["url", "command", "provider"])
def test_an_archive_cannot_send_live_credentials_to_another_address(target: MemoryProvider, name: str) -> None:
    target.put(MemoryType.MEMAGENT, [("keel", agent("keel", **LIVE))])
    moved = [
        {"name": "buoys", "url": "https://buoys.example/mcp", "headers": {}, name: "elsewhere"},
        {"name": "tides", "url": "https://tides.example/mcp"},
    ]
    made = small(agents=[agent("keel", llm_config={"provider": "openai", "model": "m-2"}, mcp_servers=moved)])
    for dry_run in (True, False):
        report = MemoryArchive(target).import_archive(made, dry_run=dry_run, conflict="replace")
        assert "agents 'keel': mcp_servers.buoys leads elsewhere now" in " ".join(report["warnings"])
    record = target.get(MemoryType.MEMAGENT, "keel")
    assert record is not None
    assert record["llm_config"] == {"provider": "openai", "model": "m-2", "api_key": "live"}
    assert record["mcp_servers"] == [moved[0], {**moved[1], "auth": "live"}]
