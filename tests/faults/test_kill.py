"""`kill -9` at any moment: what was acknowledged is there, and the file is sound."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support import database
from tests.support.ollama import NOBODY
from tests.support.stdio import StdioServer


@pytest.mark.parametrize("acknowledged_before", [1, 7, 60])
def test_every_acknowledged_memory_survives_a_kill_between_many_stores(db: Path, acknowledged_before: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "agent_memory", "--db", str(db), "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        env={**os.environ, "AGENT_MEMORY_OLLAMA_URL": NOBODY},
    ) as server:
        assert server.stdin is not None and server.stdout is not None

        def keep_storing() -> None:
            assert server.stdin is not None
            number = 0
            try:
                while True:
                    number += 1
                    arguments = {"content": f"fact {number}", "type": "TODO", "tags": [str(number)]}
                    call = {"name": "memory_store", "arguments": arguments}
                    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}
                    server.stdin.write(json.dumps(message).encode() + b"\n")
            except (BrokenPipeError, ValueError):
                return

        storing = threading.Thread(target=keep_storing, daemon=True)
        storing.start()
        acknowledged = {}
        for _ in range(acknowledged_before):
            reply = json.loads(server.stdout.readline())
            acknowledged[int(reply["result"]["content"][0]["text"])] = f"fact {reply['id']}"
        server.send_signal(signal.SIGKILL)
        # What was written before the kill is acknowledged as well.
        for line in server.stdout.read().splitlines():
            try:
                reply = json.loads(line)
            except ValueError:
                continue  # the line that the kill cut off
            acknowledged[int(reply["result"]["content"][0]["text"])] = f"fact {reply['id']}"
        server.wait()
        storing.join(10)
    assert len(acknowledged) >= acknowledged_before
    database.check_integrity(db)
    kept = dict(database.rows(db, "SELECT id, content FROM memories"))
    assert acknowledged.items() <= kept.items()


def test_a_server_starts_on_the_file_that_a_killed_one_left(db: Path) -> None:
    first = StdioServer.serve(db, AGENT_MEMORY_OLLAMA_URL=NOBODY)
    first.initialize()
    first.request("tools/call", {"name": "memory_store", "arguments": {"content": "kept", "type": "TODO"}})
    first.kill()
    with StdioServer.serve(db, AGENT_MEMORY_OLLAMA_URL=NOBODY) as second:
        second.initialize()
        listed = second.request("tools/call", {"name": "memory_list"})["result"]["content"][0]["text"]
    assert [memory["content"] for memory in json.loads(listed)] == ["kept"]
