"""Clients that read nothing, systems that allow little, streams that are closed: the server does what it can."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import agent_memory
from agent_memory import EmbedderUnreachable
from agent_memory.embed.ollama import OllamaEmbedder
from tests.support import database
from tests.support.ollama import NOBODY, FakeOllama
from tests.support.polling import eventually
from tests.support.processes import open_files
from tests.support.stdio import StdioServer, command, environment


def request(number: int, tool: str, **arguments: Any) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode() + b"\n"


def test_a_client_that_leaves_standard_error_unread_is_served_and_may_leave(db: Path) -> None:
    with subprocess.Popen(
        command("--db", str(db), "serve"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(AGENT_MEMORY_LOG="debug"), bufsize=0,
    ) as server:  # fmt: skip
        assert server.stdin is not None
        assert server.stdout is not None
        for number in range(1_500):
            server.stdin.write(b"not json " + b"x" * 200 + b"\n")
            assert json.loads(server.stdout.readline())["error"]["code"] == -32700, number
        server.stdin.write(request(1, "memory_store", content="x", type="TODO"))
        assert json.loads(server.stdout.readline())["result"]["content"][0]["text"] == "1"
        server.stdin.close()
        assert server.wait(20) == 0


def test_a_repeated_refusal_of_the_embedder_is_logged_once(db: Path, ollama: FakeOllama) -> None:
    ollama.mode = "not_found"
    with StdioServer.serve(db, AGENT_MEMORY_OLLAMA_URL=ollama.url) as server:
        server.initialize()
        for number in range(5):
            params = {"name": "memory_store", "arguments": {"content": f"fact {number}", "type": "TODO"}}
            assert "result" in server.request("tools/call", params)
        assert server.log_count("embedding failed") == 1


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_AS"), reason="needs a limit on address space")
def test_a_system_that_allows_few_threads_still_gets_every_answer(db: Path, ollama: FakeOllama) -> None:
    limit = 600 * 1024 * 1024
    server = StdioServer(
        command("--db", str(db), "serve"),
        environment(AGENT_MEMORY_OLLAMA_URL=ollama.url),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    with server:
        server.initialize()
        store = {"name": "memory_store", "arguments": {"content": "x", "type": "TODO"}}
        with ollama.holding():
            numbers = [server.begin("tools/call", store) for _ in range(120)]
            ollama.wait_for_embeds(2)
        assert all("result" in server.reply(number) for number in numbers)
    assert database.count(db) == 120


def test_standard_streams_that_do_not_block_are_made_to(db: Path) -> None:
    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        for _ in range(20):
            memory.store("x" * 50_000, "TODO")
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with subprocess.Popen(
        command("--db", str(db), "serve"), stdin=subprocess.PIPE, stdout=writing, stderr=subprocess.DEVNULL,
        env=environment(), bufsize=0,
    ) as server:  # fmt: skip
        os.close(writing)
        assert server.stdin is not None
        server.stdin.write(request(1, "memory_list"))
        with open(reading, "rb") as replies:
            assert len(json.loads(replies.readline())["result"]["content"][0]["text"]) > 1_000_000
            server.stdin.close()
        assert server.wait(20) == 0


def test_a_large_reply_is_delivered_whole_to_a_slow_reader_that_has_closed_the_input(db: Path) -> None:
    with agent_memory.open(db, ollama_url=NOBODY) as memory:
        for _ in range(20):
            memory.store("x" * 500_000, "TODO")
    with subprocess.Popen(
        command("--db", str(db), "serve"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=environment(), bufsize=0,
    ) as server:  # fmt: skip
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(request(1, "memory_list"))
        server.stdin.close()
        received = b""
        pause = threading.Event()
        while part := server.stdout.read(1 << 16):
            received += part
            if len(received) % (1 << 21) < 1 << 16:
                pause.wait(0.05)
    assert len(json.loads(received)["result"]["content"][0]["text"]) > 10_000_000


@pytest.mark.parametrize("arguments", [["serve"], ["list"]])
def test_an_interrupt_while_the_file_is_locked_ends_without_a_traceback(db: Path, arguments: list[str]) -> None:
    agent_memory.open(db, ollama_url=NOBODY).close()
    with database.connected(db) as foreign:
        foreign.execute("PRAGMA journal_mode = DELETE")
        foreign.execute("BEGIN EXCLUSIVE")
        with subprocess.Popen(
            command("--db", str(db), *arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment(),
        ) as waiting:  # fmt: skip
            eventually(lambda: any(str(db) in held for held in open_files(waiting.pid)))
            waiting.send_signal(signal.SIGINT)
            _, errors = waiting.communicate(timeout=20)
        foreign.execute("ROLLBACK")
    assert waiting.returncode in (1, 130)
    assert b"Traceback" not in errors


@pytest.mark.parametrize("redirected", ["store - --type TODO <&-", "list >&-", "list --json >&-", "list 2>&-"])
def test_a_closed_standard_stream_ends_without_a_traceback(db: Path, redirected: str) -> None:
    agent_memory.open(db, ollama_url=NOBODY).close()
    line = f"{sys.executable} -m agent_memory {redirected}"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, env=environment(AGENT_MEMORY_DB=str(db)))
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1, 2)


def test_another_journal_mode_than_that_in_use_is_a_warning(
    db: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with agent_memory.open(db, ollama_url=NOBODY) as first:
        first.store("one", "TODO")
        monkeypatch.setenv("AGENT_MEMORY_JOURNAL", "delete")
        with agent_memory.open(db, ollama_url=NOBODY) as second:
            assert second.store("two", "TODO") == 2
            assert len(first.list()) == 2
    assert "is in use with the journal mode wal, which stays" in caplog.text


def test_an_answer_whose_headers_drip_in_ends_with_the_time_limit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        enough = threading.Event()

        def drip() -> None:
            connected, _ = listening.accept()
            with connected:
                try:
                    connected.sendall(b"HTTP/1.1 200 OK\r\n")
                    while not enough.wait(0.02):
                        connected.sendall(b"X-More: 1\r\n")
                except OSError:
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        embedder = OllamaEmbedder(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=0.3)
        with pytest.raises(EmbedderUnreachable, match="timed out"):
            embedder.embed(["x"])
        enough.set()
        dripping.join(20)


def test_json_nested_beyond_reason_is_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            for _ in range(2):
                connected, _ = listening.accept()
                with connected:
                    body = b"[" * 200_000
                    connected.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                    connected.shutdown(socket.SHUT_WR)
                    while connected.recv(1 << 16):
                        pass

        answering = threading.Thread(target=answer)
        answering.start()
        embedder = OllamaEmbedder(f"http://127.0.0.1:{listening.getsockname()[1]}")
        assert embedder.health() == "unreachable"
        with pytest.raises(agent_memory.EmbeddingRejected):
            embedder.embed(["x"])
        answering.join(20)


def test_a_forked_child_that_closes_does_not_end_the_requests_of_its_parent(db: Path, ollama: FakeOllama) -> None:
    program = """
import os, sys, threading, warnings, agent_memory
warnings.simplefilter("ignore")
memory = agent_memory.open(sys.argv[1], ollama_url=sys.argv[2])
storing = threading.Thread(target=memory.store, args=("x", "TODO"))
storing.start()
sys.stdin.readline()
child = os.fork()
if child == 0:
    memory.close()
    os._exit(0)
os.waitpid(child, 0)
print("closed", flush=True)
storing.join()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program, str(db), ollama.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with ollama.holding():
            ollama.wait_for_embeds(1)
            process.stdin.write(b"\n")
            assert process.stdout.readline() == b"closed\n"
    assert database.value(db, "embedding_status", 1) == 1
