"""Starting, listening, serving beside others, and ending."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import database
from tests.support.doors import McpDoor
from tests.support.ollama import FakeOllama
from tests.support.rest import Answer, RestServer, exchange
from tests.support.stdio import command, environment


def refused(db: Path, *arguments: str) -> str:
    """The last line of standard error of a daemon that does not start."""
    done = subprocess.run(
        command("serve-rest", *arguments), env=environment(AGENT_MEMORY_DB=str(db)), capture_output=True, timeout=30
    )
    assert done.returncode != 0
    assert done.stdout == b""
    *before, line = done.stderr.decode().splitlines()
    assert all(" INFO " in earlier for earlier in before), before
    return line


def test_a_daemon_goes_through_its_life(db: Path) -> None:  # 15.1 #71
    with RestServer(db) as rest:
        stored = rest.post("/api/memories", {"content": "Ship it.", "type": "DECISION"})
        assert stored.status == 201
        assert rest.post("/api/memories", {"content": "x", "type": "NOPE"}).status == 400
        assert [row["id"] for row in rest.get("/api/memories").json] == [stored.json["id"]]
        assert rest.post("/api/search", {"query": "ship"}).json["search_mode"] == "keyword"
        assert rest.post("/api/search", {"query": '"unbalanced'}).status == 200
        for answer in (
            rest.post("/api/search", {"query": "x", "limit": 0}),
            rest.post("/api/memories", {"content": "x", "type": "TODO", "ttl_secs": -1}),
            rest.get("/api/memories?limit=201"),
        ):
            assert answer.status == 400
            assert answer.error.startswith("invalid argument: ")
        assert rest.request("DELETE", "/api/memories/1").status == 200
        assert rest.request("DELETE", "/api/memories/1").status == 404
        assert rest.get("/health").json == {"status": "ok", "embedder": "unreachable"}
        assert rest.close() == 0
    assert not any("Traceback" in line for line in rest.stderr)


@pytest.mark.parametrize("addr", ["127.0.0.1:0", "127.9.9.9:0", "[::1]:0"])
def test_every_loopback_address_is_allowed(db: Path, addr: str) -> None:  # 15.1 #58
    with RestServer(db, addr=addr, fork=True) as rest:
        assert rest.get("/health").status == 200
        assert not any("exposed" in line for line in rest.stderr)


@pytest.mark.parametrize("addr", ["0.0.0.0:7437", "[::]:7437", "192.0.2.1:80"])
def test_any_other_address_is_refused_before_the_database_is_opened(db: Path, addr: str) -> None:  # 15.1 #59 #72
    assert refused(db, "--addr", addr) == (
        f"Error: refusing to bind non-loopback address {addr}: the REST API is unauthenticated; "
        "pass --allow-remote to expose it beyond localhost"
    )
    assert not db.exists()


def test_it_is_allowed_with_the_flag_and_one_warning(db: Path) -> None:  # 15.1 #60
    with RestServer(db, "--allow-remote", addr="0.0.0.0:0", fork=True) as rest:
        assert rest.log_count("WARNING agent_memory.rest.server: the REST API is exposed on 0.0.0.0:") == 1


@pytest.mark.parametrize(
    "addr",
    ["localhost:7437", "7437", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", ":80", "::1:80", "[::1]", "1.2.3:80"],
)
def test_what_is_no_socket_address_is_refused_naming_it(db: Path, addr: str) -> None:
    assert refused(db, "--addr", addr).startswith(f'Error: parsing --addr "{addr}" as a socket address: ')
    assert not db.exists()


def test_an_address_in_use_is_refused_in_one_line(db: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        line = refused(db, "--addr", f"127.0.0.1:{port}")
    assert line.startswith(f"Error: listening on 127.0.0.1:{port}: ")
    assert line.endswith("--addr")
    assert not db.exists()


def test_a_database_that_cannot_be_opened_stops_the_start(tmp_path: Path) -> None:
    db = tmp_path / "not.db"
    db.write_bytes(b"something else entirely, and long enough to be looked at" * 100)
    assert "opening database at" in refused(db, "--addr", "127.0.0.1:0")


def test_it_serves_beside_mcp_servers_on_the_same_file(rest: RestServer, mcp: McpDoor) -> None:
    by_mcp = mcp.store(content="told over stdio", type="DECISION")
    by_rest = rest.post("/api/memories", {"content": "told over http", "type": "DECISION"}).json["id"]
    assert {row["id"] for row in rest.post("/api/search", {"query": "told"}).json["results"]} == {by_mcp, by_rest}
    assert {row["id"] for row in mcp.search(query="told")["results"]} == {by_mcp, by_rest}
    assert rest.request("DELETE", f"/api/memories/{by_mcp}").status == 200
    assert [row["id"] for row in mcp.list()] == [by_rest]


def test_many_clients_at_once_lose_nothing(rest: RestServer, db: Path) -> None:  # E1
    def store_many(number: int) -> None:
        connection = rest.connect()
        for index in range(25):
            body = {"content": f"memory {number}-{index}", "type": "TODO"}
            assert exchange(connection, "POST", "/api/memories", body).status == 201
        connection.close()

    threads = [threading.Thread(target=store_many, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert database.count(db) == 200
    database.check_integrity(db)


def begun(rest: RestServer, ollama: FakeOllama) -> Callable[[], Answer]:
    """Begin to store a memory whose embedding hangs; what is returned waits for the answer."""
    answers: list[Any] = []

    def store() -> None:
        connection = rest.connect()
        try:
            answers.append(exchange(connection, "POST", "/api/memories", {"content": "held up", "type": "TODO"}))
        except (OSError, http.client.HTTPException) as error:
            answers.append(error)
        connection.close()

    thread = threading.Thread(target=store)
    thread.start()
    ollama.wait_for_embeds(1)

    def wait() -> Answer:
        thread.join(30)
        answer: Answer = answers[0]
        return answer

    return wait


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_running_requests_finish(db: Path, ollama: FakeOllama, number: int) -> None:
    with RestServer(db, fork=True, AGENT_MEMORY_OLLAMA_URL=ollama.url) as rest:
        rest.logged("semantic search ready")
        with ollama.holding():
            wait = begun(rest, ollama)
            rest.signal(number)
            # It listens no more once the signal has arrived.
            while _accepts(rest):
                pass
        assert wait().status == 201
        assert rest.wait() == 0
    assert database.rows(db, "SELECT content, embedding_status FROM memories") == [("held up", 1)]
    assert "stopped" in rest.stderr[-1]


def test_a_second_signal_waits_for_nothing(db: Path, ollama: FakeOllama) -> None:
    with RestServer(db, fork=True, AGENT_MEMORY_OLLAMA_URL=ollama.url) as rest:
        rest.logged("semantic search ready")
        with ollama.holding():
            begun(rest, ollama)
            rest.signal(signal.SIGTERM)
            while _accepts(rest):
                pass
            rest.signal(signal.SIGTERM)
            assert rest.wait() == 0
    database.check_integrity(db)


def test_a_second_signal_does_not_wait_for_the_lock_of_another_program(db: Path, ollama: FakeOllama) -> None:
    with RestServer(db, fork=True, AGENT_MEMORY_OLLAMA_URL=ollama.url) as rest:
        rest.logged("lifecycle sweep complete")
        with database.connected(db) as other:
            other.execute("BEGIN IMMEDIATE")
            begun(rest, ollama)
            rest.signal(signal.SIGTERM)
            while _accepts(rest):
                pass
            rest.signal(signal.SIGTERM)
            assert rest.wait() == 0
            other.execute("ROLLBACK")
    assert rest.log_count("store failed") == 0
    database.check_integrity(db)


def test_what_other_servers_read_from_the_environment_means_nothing_here(db: Path) -> None:
    hostile = {"WEB_CONCURRENCY": "many", "FORWARDED_ALLOW_IPS": "*", "UVICORN_HOST": "nowhere"}
    with RestServer(db, fork=True, **hostile) as rest:
        assert rest.get("/health").status == 200


@pytest.mark.parametrize("arguments", [["--help"], ["serve-rest", "--help"], ["list"], ["--version"]])
def test_other_commands_load_nothing_of_the_daemon(db: Path, arguments: list[str]) -> None:
    heavy = ["starlette", "uvicorn", "anyio", "httptools", "uvloop", "asyncio"]
    program = (
        "import sys\nfrom agent_memory.__main__ import main\n"
        f"sys.argv = ['agent-memory', *{arguments}]\ncode = main()\n"
        f"sys.exit(code or str([name for name in {heavy} if name in sys.modules] or ''))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(AGENT_MEMORY_DB=str(db)), capture_output=True, text=True
    )
    assert done.stderr.removeprefix(f"created {db}").strip() == ""


def _accepts(rest: RestServer) -> bool:
    try:
        socket.create_connection((rest.host, rest.port), timeout=1).close()
    except OSError:
        return False
    return True


def test_a_storage_fault_shows_the_generic_sentence_only(rest: RestServer, db: Path) -> None:
    rest.post("/api/memories", {"content": "x", "type": "TODO"})
    database.execute(db, "DROP TABLE memory_links; DROP TABLE memories")
    for operation, answer in {
        "store": rest.post("/api/memories", {"content": "x", "type": "TODO"}),
        "list": rest.get("/api/memories"),
        "search": rest.post("/api/search", {"query": "x"}),
        "update": rest.request("PATCH", "/api/memories/1", {"scope": "s"}),
        "forget": rest.request("DELETE", "/api/memories/1"),
        "link": rest.post("/api/links", {"from_id": 1, "to_id": 2, "kind": "supersedes"}),
        "unlink": rest.request("DELETE", "/api/links/1/2/supersedes"),
    }.items():
        assert answer.status == 500
        assert answer.json == {"error": f"{operation} failed due to a storage error (details are in the server log)"}
    health = rest.get("/health")
    assert health.json == {"error": "list failed due to a storage error (details are in the server log)"}
    assert health.status == 500
    rest.logged("no such table", 8)


def test_a_damaged_file_is_not_healthy(rest: RestServer, db: Path) -> None:  # E13
    rest.post("/api/memories", {"content": "x", "type": "TODO"})
    assert rest.get("/health").status == 200
    database.execute(db, "PRAGMA wal_checkpoint(TRUNCATE)")
    with open(db, "r+b") as file:
        file.write(b"\xff" * 8_192)
    answer = rest.get("/health")
    assert answer.status == 500
    assert "storage error" in answer.error or "restart this program" in answer.error


@pytest.mark.parametrize(
    ("mode", "embedder"), [("ok", "ready"), ("no_model", "model_missing"), ("down", "unreachable")]
)
def test_health_says_how_the_embedder_is(db: Path, ollama: FakeOllama, mode: str, embedder: str) -> None:  # 15.1 #70
    if mode == "no_model":
        ollama.models = ["llama3:latest"]
    elif mode == "down":
        ollama.down()
    with RestServer(db, fork=True, AGENT_MEMORY_OLLAMA_URL=ollama.url) as rest:
        assert rest.get("/health").json == {"status": "ok", "embedder": embedder}


def test_a_connection_is_kept_and_head_has_no_body(rest: RestServer) -> None:
    connection = rest.connect()
    first = exchange(connection, "HEAD", "/health")
    assert (first.status, first.body) == (200, b"")
    before = connection.sock
    assert exchange(connection, "GET", "/health").status == 200
    assert connection.sock is before
    connection.close()
