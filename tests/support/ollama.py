"""A small real HTTP server that speaks the part of Ollama that agent-memory uses."""

from __future__ import annotations

import hashlib
import json
import math
import random
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self

DIM = 768
MODEL = "nomic-embed-text"
NOBODY = "http://127.0.0.1:9"
"""An address that refuses connections at once."""

Mode = Literal[
    "ok", "error", "not_found", "wrong_count", "wrong_dimension", "nan", "zero", "empty", "not_json", "no_member",
    "hang", "drip", "hang_up",
]  # fmt: skip

BROKEN: tuple[Mode, ...] = (
    "error", "not_found", "wrong_count", "wrong_dimension", "nan", "zero", "empty", "not_json", "no_member", "hang_up",
)  # fmt: skip
"""The modes in which an embed request gets an answer at once, and the answer is no embedding."""


def hashed_vector(text: str) -> list[float]:
    """The unit vector that an unprogrammed text gets: always the same for it, unlike that of any other."""
    numbers = random.Random(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    return unit([numbers.gauss(0, 1) for _ in range(DIM)])


def unit(values: Sequence[float]) -> list[float]:
    """``values``, filled up with zeros to 768 and scaled to length 1."""
    norm = math.sqrt(math.fsum(value * value for value in values))
    return [value / norm for value in values] + [0.0] * (DIM - len(values))


def at_angle(degrees: float) -> list[float]:
    """A unit vector in one plane: the smaller the difference of two angles, the closer the vectors."""
    return unit([math.cos(math.radians(degrees)), math.sin(math.radians(degrees))])


def packed(vector: Sequence[float]) -> bytes:
    """``vector`` as the file keeps it: little-endian float32."""
    return struct.pack(f"<{len(vector)}f", *vector)


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it arrived."""

    method: str
    path: str
    body: Any

    @property
    def texts(self) -> list[str]:
        """The texts to embed."""
        texts: list[str] = self.body["input"]
        return texts


@dataclass
class FakeOllama:
    """``with FakeOllama() as ollama: ... ollama.url``. Change ``mode`` and ``vectors`` at any time."""

    mode: Mode = "ok"
    vectors: dict[str, list[float]] = field(default_factory=dict)
    constant: list[float] | None = None
    """One vector for every text, where only speed matters."""
    poison: set[str] = field(default_factory=set)
    """Texts that make the whole request fail with an error status."""
    hanging: set[str] = field(default_factory=set)
    """Texts that make the whole request wait for the end."""
    models: list[str] = field(default_factory=lambda: [f"{MODEL}:latest"])
    requests: list[Request] = field(default_factory=list)
    http: Literal["HTTP/1.0", "HTTP/1.1"] = "HTTP/1.1"
    """With 1.0 the server closes each connection after its answer."""

    def __post_init__(self) -> None:
        # Bound but never listening: the port stays ours while the server is down, and refuses connections.
        self._reserved = _bound_socket(0)
        self.port: int = self._reserved.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._server: ThreadingHTTPServer | None = None
        self._changed = threading.Condition()
        self._release = threading.Event()

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self._release.set()
        self.down()
        self._reserved.close()

    def up(self) -> None:
        """Listen."""
        server = _Server(("127.0.0.1", self.port), _Handler)
        server.ollama = self
        self._server = server
        threading.Thread(target=server.serve_forever, args=(0.01,), name="fake-ollama", daemon=True).start()

    def down(self) -> None:
        """Refuse connections until :meth:`up`."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def program(self, **vectors: list[float]) -> None:
        """Vectors of texts that are Python names; use ``vectors`` for others."""
        self.vectors.update(vectors)

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Embed requests inside wait; at the end they are answered as usual."""
        self._release.clear()
        before, self.mode = self.mode, "hang"
        try:
            yield
        finally:
            self.mode = before
            self._release.set()

    def wait_for_embeds(self, count: int, timeout: float = 20.0) -> None:
        """Return when ``count`` embed requests have arrived since the start."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.embedded) >= count, timeout), (
                f"{len(self.embedded)} of {count} embed requests arrived"
            )

    @property
    def embedded(self) -> list[list[str]]:
        """The texts of each embed request, in the order of arrival."""
        return [request.texts for request in self.requests if request.path.endswith("/api/embed")]

    def vector_of(self, text: str) -> list[float]:
        """What ``text`` is embedded as."""
        if self.constant is not None:
            return self.constant
        return self.vectors.get(text) or hashed_vector(text)

    def record(self, request: Request) -> None:
        """Remember a request (called by the server)."""
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()

    def answer(self, request: Request) -> tuple[int, bytes]:
        """Status and body for an embed request (called by the server)."""
        mode = self.mode
        if mode == "hang":
            self._release.wait(30)
        texts = request.texts
        if self.hanging.intersection(texts):
            self._release.wait(30)
        if mode == "error" or any(text in self.poison for text in texts):
            return 500, b'{"error": "the model runner has unexpectedly stopped"}'
        if mode == "not_found":
            return 404, b'{"error": "model \\"nomic-embed-text\\" not found, try pulling it first"}'
        if mode == "not_json":
            return 200, b"<html>proxy</html>"
        if mode == "no_member":
            return 200, json.dumps({"embedding": hashed_vector("x")}).encode()
        vectors = [self.vector_of(text) for text in texts]
        if mode == "wrong_count":
            vectors.append(hashed_vector("one too many"))
        elif mode == "wrong_dimension":
            vectors = [vector[:384] for vector in vectors]
        elif mode == "nan":
            vectors = [[math.nan, *vector[1:]] for vector in vectors]
        elif mode == "zero":
            vectors = [[0.0] * DIM for _ in vectors]
        elif mode == "empty":
            vectors = []
        return 200, json.dumps({"model": MODEL, "embeddings": vectors}).encode()

    def drip(self, send: Any) -> None:
        """Send white space byte by byte until the other side has had enough (called by the server)."""
        while not self._release.wait(0.005):
            send(b" ")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    allow_reuse_port = True
    request_queue_size = 64
    ollama: FakeOllama

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up early are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.protocol_version = self.server.ollama.http

    def do_GET(self) -> None:
        ollama = self.server.ollama
        ollama.record(Request("GET", self.path, None))
        if self.path.endswith("/api/tags"):
            self._reply(200, json.dumps({"models": [{"name": name} for name in ollama.models]}).encode())
        else:
            self._reply(404, b"404 page not found")

    def do_POST(self) -> None:
        ollama = self.server.ollama
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
        request = Request("POST", self.path, body)
        ollama.record(request)
        if not self.path.endswith("/api/embed"):
            self._reply(404, b"404 page not found")
        elif ollama.mode == "hang_up":
            self.close_connection = True
        elif ollama.mode == "drip":
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            ollama.drip(self._send)
        else:
            self._reply(*ollama.answer(request))

    def _send(self, part: bytes) -> None:
        self.wfile.write(part)
        self.wfile.flush()

    def _reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the requests are recorded."""


def _bound_socket(port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "SO_REUSEPORT"):
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.bind(("127.0.0.1", port))
    return bound
