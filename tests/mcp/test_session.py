"""What the stdio session answers to right, wrong and strange messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import database
from tests.support.ollama import NOBODY, FakeOllama
from tests.support.polling import eventually
from tests.support.stdio import StdioServer

META = "io.modelcontextprotocol/"
STATELESS = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}


@pytest.fixture
def server(db: Path) -> Iterator[StdioServer]:
    """A server that has not been spoken to yet; the embedder is down."""
    with StdioServer.serve(db, AGENT_MEMORY_OLLAMA_URL=NOBODY) as server:
        yield server


def call(server: StdioServer, tool: str, arguments: Any = None, **meta: Any) -> dict[str, Any]:
    return server.request("tools/call", {"name": tool, "arguments": arguments, **meta})


def begin(server: StdioServer, tool: str, arguments: Any) -> int:
    return server.begin("tools/call", {"name": tool, "arguments": arguments})


def null_reply(server: StdioServer) -> dict[str, Any]:
    return server.reply(None)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_known_version_is_agreed_to(server: StdioServer, version: str) -> None:
    assert server.initialize(version)["protocolVersion"] == version


@pytest.mark.parametrize("version", ["1999-01-01", "2026-07-28", None, 7, ["2025-11-25"]])
def test_an_unknown_handshake_version_is_answered_with_the_newest(server: StdioServer, version: Any) -> None:
    assert server.initialize(version)["protocolVersion"] == "2025-11-25"


def test_initialize_names_server_capabilities_and_instructions(server: StdioServer) -> None:
    result = server.initialize()

    assert result["serverInfo"] == {"name": "agent-memory", "title": "Agent memory", "version": "0.1.0"}
    assert result["capabilities"] == {"tools": {}}
    assert 0 < len(result["instructions"]) <= 1500


def test_discover_answers_in_the_stateless_revision(server: StdioServer) -> None:
    result = server.request("server/discover", {"_meta": STATELESS})["result"]

    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["resultType"] == "complete"
    assert result["cacheScope"] == "public"
    assert result["ttlMs"] >= 0
    assert result["_meta"][f"{META}serverInfo"]["name"] == "agent-memory"


def test_a_stateless_call_needs_no_handshake_and_its_result_says_it_is_complete(server: StdioServer) -> None:
    result = call(server, "memory_store", {"content": "x", "type": "TODO"}, _meta=STATELESS)["result"]

    assert result["content"][0]["text"] == "1"
    assert result["resultType"] == "complete"


def test_a_handshake_client_sees_no_members_of_the_stateless_revision(server: StdioServer) -> None:
    server.initialize()

    assert set(server.request("tools/list")["result"]) == {"tools"}
    assert set(call(server, "memory_list", {})["result"]) == {"content", "isError"}


def test_an_unsupported_stateless_version_is_refused_with_the_supported_ones(server: StdioServer) -> None:
    reply = call(server, "memory_list", {}, _meta={**STATELESS, f"{META}protocolVersion": "2031-01-01"})

    assert reply["error"]["code"] == -32022
    assert reply["error"]["data"]["requested"] == "2031-01-01"
    assert "2026-07-28" in reply["error"]["data"]["supported"]


def test_ping_is_answered_before_and_after_the_handshake(server: StdioServer) -> None:
    assert server.request("ping")["result"] == {}
    server.initialize()
    assert server.request("ping")["result"] == {}


def test_an_unknown_method_is_not_found(server: StdioServer) -> None:
    assert server.request("resources/list")["error"]["code"] == -32601


@pytest.mark.parametrize("params", [[], "x", 3])
def test_params_that_are_no_object_are_invalid(server: StdioServer, params: Any) -> None:
    assert server.request("tools/list", params)["error"]["code"] == -32602


@pytest.mark.parametrize("name", [None, 7, "", "memory_recall", {"a": 1}])
def test_an_unknown_tool_is_invalid_params(server: StdioServer, name: Any) -> None:
    reply = call(server, name, {})

    assert reply["error"]["code"] == -32602
    assert reply["error"]["message"].startswith("tool not found")


@pytest.mark.parametrize(
    "line",
    [b"not json", b'{"jsonrpc":"2.0",', b"\xff\xfe{}", b'{"id":1,"method":"ping","x":NaN}', b"[" * 100_000],
    ids=["text", "cut off", "invalid UTF-8", "NaN", "deep nesting"],
)
def test_a_line_that_is_not_json_gets_an_answer_and_the_server_lives_on(server: StdioServer, line: bytes) -> None:
    server.send_line(line)

    assert null_reply(server)["error"]["code"] == -32700
    assert server.request("ping")["result"] == {}


def test_a_line_beyond_the_limit_is_refused_and_the_next_one_is_read(server: StdioServer) -> None:
    server.send_line(b'"' + b"x" * (16 * 1024 * 1024 + 10) + b'"')

    assert "longer than" in null_reply(server)["error"]["message"]
    assert server.request("ping")["result"] == {}


@pytest.mark.parametrize(
    "message", [b"5", b'"ping"', b"null", b"[]", b"{}", b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
                b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
                b'{"jsonrpc":"2.0","id":4,"method":7}', rb'{"jsonrpc":"2.0","id":"\ud800","method":"ping"}'],
)  # fmt: skip
def test_json_that_is_no_request_is_invalid(server: StdioServer, message: bytes) -> None:
    server.send_line(message)

    assert null_reply(server)["error"]["code"] == -32600
    assert server.request("ping")["result"] == {}


def test_blank_lines_notifications_and_stray_answers_are_passed_over(server: StdioServer) -> None:
    for line in (
        b"",
        b"   ",
        b'{"jsonrpc":"2.0","method":"notifications/unheard_of"}',
        b'{"jsonrpc":"2.0","id":9,"result":{}}',
    ):
        server.send_line(line)

    assert server.request("ping")["result"] == {}
    assert len(server.lines) == 1


@pytest.mark.parametrize("request_id", [0, -3, 2**70, "", "a-b", "★"])
def test_the_id_of_a_request_comes_back_as_it_was(server: StdioServer, request_id: Any) -> None:
    server.send({"jsonrpc": "2.0", "id": request_id, "method": "ping"})

    assert server.reply(request_id) == {"jsonrpc": "2.0", "id": request_id, "result": {}}


def test_a_batch_is_answered_with_one_array(server: StdioServer) -> None:
    batch = [
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "memory_list", "arguments": {}}},
        5,
    ]
    server.send_line(json.dumps(batch).encode())

    (line,) = eventually(lambda: list(server.lines))
    assert {reply["id"] for reply in json.loads(line)} == {1, 2, None}


def test_a_batch_of_notifications_gets_no_answer(server: StdioServer) -> None:
    server.send_line(b'[{"jsonrpc":"2.0","method":"notifications/initialized"}]')

    assert server.request("ping")["result"] == {}
    assert len(server.lines) == 1


@pytest.mark.parametrize("params", [{"name": "memory_list"}, {"name": "memory_list", "arguments": None}])
def test_a_tool_without_required_parameters_needs_no_arguments(server: StdioServer, params: dict[str, Any]) -> None:
    assert server.request("tools/call", params)["result"]["content"][0]["text"] == "[]"


def test_arguments_that_are_json_text_are_read(server: StdioServer) -> None:
    reply = call(server, "memory_store", '{"content": "x", "type": "TODO"}')

    assert reply["result"]["content"][0]["text"] == "1"


@pytest.mark.parametrize("arguments", [[], 5, "x", "[]", True])
def test_arguments_that_are_no_object_are_a_tool_error(server: StdioServer, arguments: Any) -> None:
    result = call(server, "memory_list", arguments)["result"]

    assert result["isError"] is True
    assert result["content"][0]["text"].startswith("failed to deserialize parameters: arguments: expected an object")


def test_a_lone_surrogate_is_answered_naming_the_field(server: StdioServer) -> None:
    server.send_line(
        rb'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_store",'
        rb'"arguments":{"content":"cut \ud83d off","type":"TODO"}}}'
    )

    error = server.reply(1)["error"]
    assert error["code"] == -32602
    assert "content must be valid Unicode" in error["message"]
    assert "U+D83D" in error["message"]


def test_a_byte_order_mark_before_the_first_line_is_passed_over(server: StdioServer) -> None:
    server.send_line(b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}')

    assert server.reply(1)["result"] == {}


def test_a_number_of_thousands_of_digits_is_an_error_of_its_own_request(server: StdioServer) -> None:
    line = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_forget","arguments":{"id":%s}}}'
    server.send_line((line % ("9" * 5_000)).encode())

    assert "id: expected an integer" in server.reply(1)["result"]["content"][0]["text"]


def test_calls_that_wait_for_a_hanging_embedder_do_not_keep_others_waiting(ollama: FakeOllama, db: Path) -> None:
    with StdioServer.serve(db, AGENT_MEMORY_OLLAMA_URL=ollama.url) as server:
        server.initialize()
        with ollama.holding():
            stores = [begin(server, "memory_store", {"content": f"fact {n}", "type": "TODO"}) for n in range(60)]
            ollama.wait_for_embeds(60)
            assert call(server, "memory_list", {"limit": 1})["result"]["content"][0]["text"] == "[]"
        assert {server.reply(store)["result"]["isError"] for store in stores} == {False}


def test_a_cancelled_call_is_not_answered(ollama: FakeOllama, db: Path) -> None:
    store = {"name": "memory_store", "arguments": {"content": "x", "type": "TODO"}}
    with StdioServer.serve(db, AGENT_MEMORY_OLLAMA_URL=ollama.url) as server:
        server.initialize()
        with ollama.holding():
            cancelled = server.begin("tools/call", store)
            eventually(lambda: any(request.path == "/api/embed" for request in ollama.requests))
            server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": cancelled}})
            assert server.request("ping")["result"] == {}
        eventually(lambda: database.count(db) == 1)
    assert all(json.loads(line)["id"] != cancelled for line in server.lines)


@pytest.mark.parametrize("params", [None, [], {}, {"requestId": 77}, {"requestId": {"a": []}}])
def test_a_cancellation_of_nothing_is_passed_over(server: StdioServer, params: Any) -> None:
    server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    assert server.request("ping")["result"] == {}


def test_a_hanging_embedder_does_not_hold_up_ping_or_other_calls(ollama: FakeOllama, db: Path) -> None:
    with StdioServer.serve(db, AGENT_MEMORY_OLLAMA_URL=ollama.url) as server:
        server.initialize()
        with ollama.holding():
            stores = [
                server.begin(
                    "tools/call", {"name": "memory_store", "arguments": {"content": f"fact {n}", "type": "TODO"}}
                )
                for n in range(10)
            ]
            eventually(lambda: any(request.path == "/api/embed" for request in ollama.requests))

            assert server.request("ping")["result"] == {}
            assert call(server, "memory_list", {})["result"]["content"][0]["text"] == "[]"
        ids = {server.reply(store)["result"]["content"][0]["text"] for store in stores}
        assert ids == {str(number) for number in range(1, 11)}
