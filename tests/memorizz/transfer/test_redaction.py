"""What does not travel: credentials and vectors, found by name, wherever they stand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorizz import FileSystemProvider, MemoryArchive, MemoryProvider, MemoryType
from memorizz.archive.redaction import is_credential, redact, with_credentials_of
from memorizz.taxonomy import MemoryType as Store
from tests.memorizz.archive.test_canonical import TREES

DROPPED = [
    "API-Key", "apikey", "api_key", "x_api_key", "accessToken", "access-token", "refresh_token", "bearertoken",
    "clientSecret", "aws_secret_access_key", "private_key", "code_verifier", "credential", "credentials", "set-cookie",
    "session_cookie", "cookie", "user_password", "passwd", "secret", "my-token", "token", "x-authorization",
    "Authorization", "PASSWORD",
]  # fmt: skip
KEPT = [
    "secret_key", "cookies", "passwords", "authorization_code", "auth", "mytoken", "tokens", "max_tokens",
    "token_count", "tokenizer", "hidden.password", "content", "keyboard", "",
]  # fmt: skip


@pytest.mark.parametrize("name", DROPPED)
def test_a_member_of_a_credentials_name_is_left_out_and_reported_with_its_store(name: str) -> None:
    found = redact(Store.KNOWLEDGE_BASE, {"content": "x", "deep": [{name: "s3cret", "other": 1}]})
    assert found.record == {"content": "x", "deep": [{"other": 1}]}
    assert found.omitted == {f"knowledge_base.deep.{name}"}


@pytest.mark.parametrize("name", KEPT)
def test_a_member_of_another_name_stays(name: str) -> None:
    record = {"content": "x", name: "kept", "deep": {name: "kept"}}
    assert redact(Store.KNOWLEDGE_BASE, record) == (record, frozenset())


@pytest.mark.parametrize("holder", ["properties", "$defs"])
def test_names_of_parameters_in_a_json_schema_are_no_credentials(holder: str) -> None:
    schema = {"input_schema": {"type": "object", holder: {"api_key": {"type": "string"}, "vector": {"type": "array"}}}}
    assert redact(Store.TOOLBOX, schema) == (schema, frozenset())
    assert redact(Store.TOOLBOX, {holder: {"api_key": "real"}}).omitted == {f"toolbox.{holder}.api_key"}


def test_a_flat_tool_parameter_keeps_its_schema_and_a_value_does_not() -> None:
    tool = {"parameters": {"token": {"type": "string"}, "times": {"type": "integer"}}}
    assert redact(Store.TOOLBOX, tool) == (tool, frozenset())
    assert redact(Store.TOOLBOX, {"parameters": {"token": "abc"}}).record == {"parameters": {}}


def test_credentials_inside_a_json_text_are_left_out_and_other_text_is_untouched() -> None:
    record = {
        "arguments": '{"depth_m": 3, "api_key": "inside"}',
        "nested": json.dumps({"body": json.dumps({"password": "x", "keep": 1})}),
        "spaced": ' { "keep" :  1 } ',
        "prose": 'Use {"token": "abc"} as the header.',
        "torn": '{"token": "abc"',
    }
    found = redact(Store.TOOL_LOG, record)
    assert found.record == {
        "arguments": '{"depth_m": 3}',
        "nested": json.dumps({"body": json.dumps({"keep": 1})}),
        "spaced": ' { "keep" :  1 } ',
        "prose": 'Use {"token": "abc"} as the header.',
        "torn": '{"token": "abc"',
    }
    assert found.omitted == {"tool_log.arguments.api_key", "tool_log.nested.body.password"}


def test_vectors_are_left_out_silently_unless_they_are_wanted() -> None:
    record = {"content": "x", "embedding": [0.5], "deep": {"vector": [1], "embedding": None}, "vector": "attack vector"}
    assert redact(Store.KNOWLEDGE_BASE, record) == (
        {"content": "x", "deep": {}, "vector": "attack vector"},
        frozenset(),
    )
    assert redact(Store.KNOWLEDGE_BASE, record, keep_vectors=True).record == record


def test_the_deployments_model_of_an_agent_is_left_out_and_a_missing_one_is_not_reported() -> None:
    agent = {"model": {"client": 1}, "llm_config": {"model": "m-1", "api_key": "k"}}
    assert redact(Store.MEMAGENT, agent) == (
        {"llm_config": {"model": "m-1"}},
        frozenset({"agents.model", "agents.llm_config.api_key"}),
    )
    assert redact(Store.MEMAGENT, {"model": None}).omitted == frozenset()
    assert redact(Store.TOOL_LOG, {"model": "m-1"}).record == {"model": "m-1"}


def test_an_export_names_what_it_left_out(reference: FileSystemProvider) -> None:
    manifest = MemoryArchive(reference).export(agent_id="agent-keel")["manifest"]
    assert manifest["omitted_fields"] == [
        "agents.llm_config.api_key",
        "agents.mcp_servers.headers.Authorization",
        "agents.mcp_servers.token",
        "agents.model",
        "agents.tools.api_key",
        "tool_log.arguments.api_key",
    ]
    assert any("credentials were left out" in warning for warning in manifest["warnings"])


def test_embeddings_travel_when_they_are_wanted_and_are_not_restored(
    reference: FileSystemProvider, target: MemoryProvider
) -> None:
    made = MemoryArchive(reference).export(include_embeddings=True)
    assert any("embedding" in row["data"] for row in made["stores"]["personas"])
    assert made["manifest"]["includes"]["embeddings"] is True
    assert MemoryArchive(target).import_archive(made, dry_run=False)["ok"]
    assert not any("embedding" in record for record in target.scan(MemoryType.PERSONAS))


def test_an_archive_made_by_hand_brings_no_credentials_in(target: MemoryProvider) -> None:
    from memorizz.memory_archive import seal_archive

    made = MemoryArchive(target).export()
    made["stores"]["knowledge_base"] = [{"id": "k", "data": {"content": "x", "api_key": "planted"}}]
    made["manifest"]["counts"]["knowledge_base"] = made["manifest"]["record_count"] = 1
    assert MemoryArchive(target).import_archive(seal_archive(made), dry_run=False)["ok"]
    (record,) = target.scan(MemoryType.KNOWLEDGE_BASE)
    assert "api_key" not in record


def test_a_replaced_record_gets_its_own_credentials_back() -> None:
    existing = {
        "llm_config": {"model": "m-1", "api_key": "live"},
        "mcp_servers": [{"name": "a", "token": "t-a"}, {"name": "b", "headers": {"Authorization": "Bearer x", "n": 1}}],
        "gone": {"password": "x"},
    }
    planned: dict[str, Any] = {
        "llm_config": {"model": "m-2"},
        "mcp_servers": [{"name": "b", "headers": {"n": 2}}, {"name": "c"}],
    }
    assert with_credentials_of(existing, planned) == {
        "llm_config": {"model": "m-2", "api_key": "live"},
        "mcp_servers": [{"name": "b", "headers": {"n": 2, "Authorization": "Bearer x"}}, {"name": "c"}],
    }
    assert planned["llm_config"] == {"model": "m-2"}


@given(TREES)
def test_redacting_twice_changes_nothing_more_and_leaves_no_credential(tree: Any) -> None:
    record = {"content": tree, "api_key": tree}
    once = redact(Store.KNOWLEDGE_BASE, record).record
    assert redact(Store.KNOWLEDGE_BASE, once) == (once, frozenset())
    assert "api_key" not in once


@given(st.text())
def test_a_name_is_a_credential_by_its_end_only(name: str) -> None:
    assert is_credential(f"{name}_token")
    assert not is_credential(f"token_{name}x")
