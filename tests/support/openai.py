"""A small real HTTP server that speaks the embeddings of OpenAI's API."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class FakeOpenAI:
    """Answers each text with its length as a vector. ``status`` and ``answer`` take the place of that."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[tuple[str, str | None, Any]] = []
        self.status = 200
        self.answer: bytes | None = None


@contextmanager
def openai() -> Iterator[FakeOpenAI]:
    """The server, on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.requests.append((self.path, self.headers["Authorization"], body))
            rows = [{"index": index, "embedding": [len(text), 0.5]} for index, text in enumerate(body["input"])]
            # In whatever order: the index says which text is meant.
            answer = server.answer or json.dumps({"data": rows[::-1]}).encode()
            self.send_response(server.status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server = FakeOpenAI(f"http://127.0.0.1:{http.server_port}/v1")
        thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        http.shutdown()
        thread.join()
