"""How MCP clients really write arguments: what is taken as meant, and what is refused by name."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.contract.bounds import limit_message, ttl_message
from tests.support import database
from tests.support.doors import DoorError, McpDoor

ABSENT = (None, "null", "", "undefined")
PREFIX = "failed to deserialize parameters: "
MALFORMED: dict[str, tuple[Any, ...]] = {
    "string": (5, 1.5, True, ["x"], {"a": 1}),
    "integer": ("abc", "5.5", 5.5, True, [5], {"a": 1}, "1e3", "0x10", "five"),
    "boolean": ("yes", "1", 1, 0, [True], {"a": 1}),
    "array": (5, True, {"a": 1}, [1], ["a", None], [["a"]], "[1, 2]"),
}
VALID: dict[str, dict[str, Any]] = {
    "memory_store": {"content": "needle", "type": "TODO"},
    "memory_search": {"query": "needle"},
    "memory_list": {},
    "memory_update": {"id": 1, "scope": "s"},
    "memory_link": {"from_id": 1, "to_id": 2, "kind": "relates_to"},
    "memory_unlink": {"from_id": 1, "to_id": 2, "kind": "relates_to"},
    "memory_forget": {"id": 99},
}
TYPES: dict[str, dict[str, str]] = {
    "memory_store": {
        "content": "string", "type": "string", "tags": "array", "source": "string", "scope": "string",
        "ttl_secs": "integer",
    },
    "memory_search": {
        "query": "string", "type": "string", "tag": "string", "scope": "string", "limit": "integer",
        "expand_links": "boolean",
    },
    "memory_list": {
        "type": "string", "tag": "string", "scope": "string", "limit": "integer", "expand_links": "boolean",
    },
    "memory_update": {
        "id": "integer", "content": "string", "tags": "array", "scope": "string", "ttl_secs": "integer",
    },
    "memory_link": {"from_id": "integer", "to_id": "integer", "kind": "string"},
    "memory_unlink": {"from_id": "integer", "to_id": "integer", "kind": "string"},
    "memory_forget": {"id": "integer"},
}  # fmt: skip


def refusal(mcp: McpDoor, tool: str, arguments: Any) -> str:
    """The text with which a malformed call is refused."""
    with pytest.raises(DoorError) as caught:
        mcp.call(tool, arguments)
    assert caught.value.kind == "malformed", caught.value
    assert caught.value.message.startswith(PREFIX)
    return caught.value.message


@pytest.mark.parametrize("field", ["tags", "source", "scope", "ttl_secs"])
def test_an_optional_argument_of_store_may_be_null_in_any_spelling(mcp: McpDoor, field: str) -> None:  # C1
    for absent in (*ABSENT, ["null"], [None]) if field == "tags" else ABSENT:
        memory_id = mcp.store(content="x", type="TODO", **{field: absent})
        raw = database.row(mcp.path, memory_id)
        assert (raw["tags"], raw["source"], raw["scope"], raw["expires_at"]) == ("[]", None, None, None), absent


@pytest.mark.parametrize("field", ["type", "tag", "scope", "limit", "expand_links"])
def test_an_optional_argument_of_search_and_list_may_be_null_in_any_spelling(mcp: McpDoor, field: str) -> None:
    # C1, C8
    database.fill(mcp.path, 60, content="needle")
    for absent in ABSENT:
        results = mcp.search(query="needle", **{field: absent})["results"]
        assert len(results) == 50, absent
        listed = mcp.list(**{field: absent})
        assert len(listed) == 60, absent
        assert "related" not in results[0]
        assert "related" not in listed[0]


@pytest.mark.parametrize("written", [5, "5", "5.0", 5.0, " 5 "])
def test_an_integer_may_be_written_as_text_or_with_a_zero_fraction(mcp: McpDoor, written: Any) -> None:  # C4
    database.fill(mcp.path, 9, content="needle")
    assert len(mcp.search(query="needle", limit=written)["results"]) == 5
    assert len(mcp.list(limit=written)) == 5
    raw = database.row(mcp.path, mcp.store(content="x", type="TODO", ttl_secs=written))
    assert raw["expires_at"] == raw["created_at"] + 5


def test_ids_may_be_written_as_text_too(mcp: McpDoor) -> None:  # C4
    a, b = mcp.store(content="a", type="TODO"), mcp.store(content="b", type="TODO")
    assert mcp.link(from_id=str(a), to_id=float(b), kind="supersedes") == {
        "from_id": a,
        "to_id": b,
        "kind": "supersedes",
        "linked": True,
    }
    assert mcp.unlink(from_id=f"{a}.0", to_id=str(b), kind="supersedes")["unlinked"] is True
    assert mcp.update(id=str(a), scope="s")["id"] == a
    assert mcp.forget(id=str(a)) == {"id": a, "deleted": True}


def test_bounds_hold_for_numbers_written_as_text(mcp: McpDoor) -> None:
    for tool, arguments, message in (
        ("memory_search", {"query": "x", "limit": "0"}, limit_message(0)),
        ("memory_list", {"limit": "201.0"}, limit_message(201)),
        ("memory_store", {"content": "x", "type": "TODO", "ttl_secs": "-1"}, ttl_message(-1)),
        ("memory_update", {"id": 1, "ttl_secs": "0"}, ttl_message(0)),
    ):
        with pytest.raises(DoorError) as caught:
            mcp.call(tool, arguments)
        assert (caught.value.kind, caught.value.message) == ("invalid", message)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30, 1e300])
def test_a_number_beyond_64_bits_is_refused_like_any_other(mcp: McpDoor, number: Any) -> None:
    for tool, field in (("memory_search", "limit"), ("memory_list", "limit"), ("memory_store", "ttl_secs")):
        with pytest.raises(DoorError) as caught:
            mcp.call(tool, {**VALID[tool], field: number})
        assert caught.value.message.startswith(f"invalid argument: {field} must be between 1 and ")
    with pytest.raises(DoorError) as caught:
        mcp.forget(id=number)
    assert caught.value.message.startswith("invalid argument: id must be a 64-bit integer (got ")


@pytest.mark.parametrize("written", [True, "true", "True"])
def test_a_boolean_may_be_written_as_text(mcp: McpDoor, written: Any) -> None:  # C4
    mcp.store(content="needle", type="TODO")
    assert mcp.list(limit=5, expand_links=written)[0]["related"] == []
    assert mcp.search(query="needle", expand_links=written)["results"][0]["related"] == []
    assert "related" not in mcp.list(expand_links=str(not written) if written is True else "false")[0]


@pytest.mark.parametrize("written", [["a", "b"], '["a","b"]', ' ["a", "b"] ', "a,b", "a, b", "a,b,"])
def test_tags_may_be_a_list_a_json_text_or_separated_by_commas(mcp: McpDoor, written: Any) -> None:  # C4
    memory_id = mcp.store(content="x", type="TODO", tags=written)
    assert database.value(mcp.path, "tags", memory_id) == '["a","b"]'
    mcp.update(id=memory_id, tags=[])
    assert mcp.update(id=memory_id, tags=written)["tags"] == ["a", "b"]


def test_one_tag_may_be_a_bare_text(mcp: McpDoor) -> None:
    mcp.store(content="x", type="TODO", tags="solo")
    assert [row["tags"] for row in mcp.list(tag="solo")] == [["solo"]]


def test_arguments_as_a_whole_may_be_written_as_json_text(mcp: McpDoor) -> None:
    result = mcp.call("memory_store", json.dumps({"content": "x", "type": "TODO"}))
    assert result["content"][0]["text"] == str(mcp.list()[0]["id"])


@pytest.mark.parametrize("tool", sorted(TYPES))
def test_a_value_of_the_wrong_type_is_refused_naming_the_field(mcp: McpDoor, tool: str) -> None:  # C18
    for field, type in TYPES[tool].items():
        for wrong in MALFORMED[type]:
            assert field in refusal(mcp, tool, {**VALID[tool], field: wrong}), (field, wrong)
    assert mcp.list() == []


@pytest.mark.parametrize("tool", sorted(set(TYPES) - {"memory_list"}))
def test_a_missing_argument_is_named(mcp: McpDoor, tool: str) -> None:  # C2, C3
    required = {
        "memory_store": ["content", "type"],
        "memory_search": ["query"],
        "memory_update": ["id"],
        "memory_forget": ["id"],
    }.get(tool, ["from_id", "to_id", "kind"])
    for field in required:
        arguments = {name: value for name, value in VALID[tool].items() if name != field}
        assert f"`{field}`" in refusal(mcp, tool, arguments)
    nothing: Any
    for nothing in ({}, None, "{}", "null"):
        assert f"`{required[0]}`" in refusal(mcp, tool, nothing), nothing


@pytest.mark.parametrize("arguments", [None, {}, "{}"])
def test_a_tool_without_required_arguments_needs_none(mcp: McpDoor, arguments: Any) -> None:  # C3
    mcp.store(content="x", type="TODO")
    assert len(json.loads(mcp.call("memory_list", arguments)["content"][0]["text"])) == 1


@pytest.mark.parametrize("arguments", [[], [1], 5, True, "", "not json", '"text"', "[1]"])
def test_arguments_that_are_no_object_are_refused(mcp: McpDoor, arguments: Any) -> None:  # C18
    for tool in TYPES:
        refusal(mcp, tool, arguments)
    assert mcp.list() == []


@pytest.mark.parametrize(
    ("tool", "misspelt", "meant"),
    [
        ("memory_store", "tag", "tags"),
        ("memory_store", "ttl", "ttl_secs"),
        ("memory_search", "scop", "scope"),
        ("memory_search", "expand_link", "expand_links"),
        ("memory_list", "limits", "limit"),
        ("memory_link", "kinds", "kind"),
        ("memory_unlink", "from", "from_id"),
        ("memory_forget", "ids", "id"),
    ],
)
def test_an_unknown_argument_is_ignored_with_a_warning_that_names_the_nearest(
    mcp: McpDoor, tool: str, misspelt: str, meant: str
) -> None:  # C13
    plain = mcp.call(tool, VALID[tool])
    assert len(plain["content"]) == 1
    result = mcp.call(tool, {**VALID[tool], misspelt: "x"})
    assert not result.get("isError")
    _, warning = result["content"]
    assert warning["type"] == "text"
    assert re.findall("`([^`]+)`", warning["text"])[:2] == [misspelt, meant]


@pytest.mark.parametrize("unknown", ["type", "source", "ttl_sec", "created_at", "colour"])
def test_an_update_with_an_unknown_field_fails_as_a_whole(mcp: McpDoor, unknown: str) -> None:
    memory_id = mcp.store(content="before", type="TODO", tags=["a"])
    before = database.everything(mcp.path)
    for extra in ("TODO", None, ""):
        message = refusal(mcp, "memory_update", {"id": memory_id, "content": "after", unknown: extra})
        assert message.startswith(f"{PREFIX}unknown field ")
        assert f"`{unknown}`" in message
    assert database.everything(mcp.path) == before


def test_an_explicit_null_clears_in_an_update(mcp: McpDoor) -> None:
    memory_id = mcp.store(content="x", type="TODO", tags=["a"], scope="s", ttl_secs=60)
    assert mcp.update(id=memory_id, tags=None)["tags"] == []
    assert database.row(mcp.path, memory_id)["scope"] == "s"
    assert mcp.update(id=memory_id, scope=None)["scope"] is None
    assert database.row(mcp.path, memory_id)["expires_at"] is not None
    mcp.update(id=memory_id, ttl_secs=None)
    assert database.row(mcp.path, memory_id)["expires_at"] is None


def test_the_word_null_is_a_content_like_any_other(mcp: McpDoor) -> None:
    memory_id = mcp.store(content="null", type="TODO")
    assert mcp.update(id=memory_id, content="undefined")["content"] == "undefined"
    assert [row["content"] for row in mcp.list()] == ["undefined"]


def test_a_lone_surrogate_is_answered_in_a_form_that_every_json_parser_reads(mcp: McpDoor) -> None:  # B8
    lone = "\ud83d"
    calls: list[tuple[str, Any]] = [("memory_list", {lone: 1}), ("memory_update", {"id": 1, lone: 1}), (lone, {})]
    for tool, fields in TYPES.items():
        for field, type in fields.items():
            calls.append((tool, {**VALID[tool], field: [lone] if type == "array" else lone}))
    unreadable = []
    for tool, arguments in calls:
        reply = mcp.server.request("tools/call", {"name": tool, "arguments": arguments})
        try:
            str(reply).encode()
            json.dumps(reply, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            unreadable.append((tool, ascii(arguments)))
    assert mcp.list() == []
    assert unreadable == []


@pytest.mark.parametrize("name", ["memory_drop", "", "Memory_Store", "store"])
def test_an_unknown_tool_is_a_json_rpc_error(mcp: McpDoor, name: str) -> None:
    reply = mcp.server.request("tools/call", {"name": name, "arguments": {}})
    assert reply["error"]["code"] == -32602
    assert reply["error"]["message"].startswith("tool not found")


def test_client_errors_carry_the_message_and_no_data(mcp: McpDoor) -> None:  # 15.1 #57
    reply = mcp.server.request("tools/call", {"name": "memory_list", "arguments": {"limit": 0}})
    assert reply["error"] == {"code": -32602, "message": limit_message(0)}


def test_a_malformed_call_is_a_tool_result_with_is_error(mcp: McpDoor) -> None:
    reply = mcp.server.request("tools/call", {"name": "memory_forget", "arguments": {"id": "x"}})
    assert "error" not in reply
    assert reply["result"]["isError"] is True
    (content,) = reply["result"]["content"]
    assert content["type"] == "text"
    assert content["text"].startswith(PREFIX)
