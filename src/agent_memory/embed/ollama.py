"""The embedder that asks a local Ollama (https://docs.ollama.com/api/embed).

Raw text is sent, without task prefixes: every program that shares the file must embed alike.
"""

from __future__ import annotations

import io
import json
import math
import threading
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from agent_memory.domain.embedding import Health
from agent_memory.errors import EmbedderUnreachable, EmbeddingRejected

if TYPE_CHECKING:
    import socket
    from http.client import HTTPResponse

TIMEOUT_SECS: Final = 10.0
EXTRA_SECS_PER_TEXT: Final = 1.0
CONNECT_TIMEOUT_SECS: Final = 1.0
_LARGEST_ANSWER: Final = 64 * 1024 * 1024


class OllamaEmbedder:
    """Embeds through one Ollama at a base URL. Safe to use from many threads."""

    model: Final = "nomic-embed-text"
    dim: Final = 768

    def __init__(self, url: str, timeout: float = TIMEOUT_SECS) -> None:
        """``url`` is an http(s) base URL; ``timeout`` (seconds) bounds a request for one text as a whole."""
        self.url = url
        self._timeout = timeout
        self._lock = threading.Lock()
        self._running: set[socket.socket] = set()
        self._closed = False

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """One vector of 768 little-endian float32 per text, in order.

        Raises:
            EmbedderUnreachable: Nothing answered in time.
            EmbeddingRejected: The answer was an error, or not one finite 768-vector per text.
        """
        body = json.dumps({"model": self.model, "input": list(texts)}).encode()
        answer = self._request("POST", "/api/embed", body, self._timeout + EXTRA_SECS_PER_TEXT * (len(texts) - 1))
        vectors = answer.get("embeddings") if isinstance(answer, dict) else None
        if not isinstance(vectors, list):
            raise EmbeddingRejected("invalid embedding response: no member 'embeddings'")
        if len(vectors) != len(texts):
            raise EmbeddingRejected(f"invalid embedding response: expected {len(texts)} embeddings, got {len(vectors)}")
        return [_pack(vector, self.dim) for vector in vectors]

    def health(self) -> Health:
        """Whether the model can be used; an answer that cannot be understood counts as unreachable."""
        try:
            answer = self._request("GET", "/api/tags", None, self._timeout)
            names = [str(model["name"]) for model in answer["models"]]
        except (EmbedderUnreachable, EmbeddingRejected, LookupError, TypeError):
            return "unreachable"
        return "ready" if any(name.startswith(self.model) for name in names) else "model_missing"

    def close(self) -> None:
        """End running requests at once; they and later ones fail as unreachable."""
        with self._lock:
            self._closed = True
            for connected in self._running:
                try:
                    connected.shutdown(2)  # SHUT_RDWR
                except OSError:  # the peer closed it already
                    pass

    def _request(self, method: str, path: str, body: bytes | None, timeout: float) -> Any:
        # A server's first answer should not wait for these imports, nor a keyword-only process pay their 6 MB.
        import http.client
        from urllib.parse import urlsplit

        parts = urlsplit(self.url)
        deadline = time.monotonic() + timeout
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "localhost", parts.port, timeout=min(timeout, CONNECT_TIMEOUT_SECS))
        try:
            connection.connect()
            with self._entered(connection.sock) as connected:
                # http.client forgets its socket as soon as the peer announces to close it, and knows a time-out for
                # each read only: an answer that drips in would never end.
                connection.sock = _TimedSocket(connected, deadline)
                headers = {"Content-Type": "application/json"} if body is not None else {}
                connection.request(method, parts.path.rstrip("/") + path, body, headers)
                with connection.getresponse() as response:
                    answer = _read(response)
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise EmbedderUnreachable(f"embedding HTTP error: {method} {self.url}{path}: {reason}") from error
        if response.status != 200:
            raise EmbeddingRejected(f"embedding HTTP error: status {response.status}: {_message(answer)}")
        try:
            return json.loads(answer)
        except (ValueError, RecursionError) as error:
            raise EmbeddingRejected(f"invalid embedding response: not JSON ({error})") from error

    @contextmanager
    def _entered(self, connected: socket.socket) -> Iterator[socket.socket]:
        """``connected`` as one of the sockets that :meth:`close` ends; closed at the end."""
        try:
            with self._lock:
                if self._closed:
                    raise EmbedderUnreachable("the embedder is closed")
                self._running.add(connected)
            yield connected
        finally:
            with self._lock:
                self._running.discard(connected)
            connected.close()


class _TimedSocket:
    """What ``http.client`` uses of a socket, with one deadline for all of it."""

    def __init__(self, connected: socket.socket, deadline: float) -> None:
        self._connected = connected
        self._deadline = deadline

    def sendall(self, data: bytes) -> None:
        self._connected.settimeout(_remaining(self._deadline))
        self._connected.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:  # noqa: ARG002
        return io.BufferedReader(_TimedReader(self._connected, self._deadline))

    def close(self) -> None:
        """The real socket outlives the connection: the answer is still to be read."""


class _TimedReader(io.RawIOBase):
    def __init__(self, connected: socket.socket, deadline: float) -> None:
        self._connected = connected
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._connected.settimeout(_remaining(self._deadline))
        return self._connected.recv_into(buffer)


def _remaining(deadline: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("timed out")
    return seconds


def _read(response: HTTPResponse) -> bytes:
    answer = response.read(_LARGEST_ANSWER + 1)
    if len(answer) > _LARGEST_ANSWER:
        raise OSError(f"an answer of more than {_LARGEST_ANSWER} bytes")
    return answer


def _message(answer: bytes) -> str:
    try:
        text = str(json.loads(answer)["error"])
    except (ValueError, LookupError, TypeError):
        text = answer[:200].decode("utf-8", "replace")
    return text[:200]


def _pack(vector: object, dim: int) -> bytes:
    if not isinstance(vector, list):
        raise EmbeddingRejected("invalid embedding response: an embedding is not an array")
    if len(vector) != dim:
        raise EmbeddingRejected(f"embedding dimension mismatch: expected {dim}, got {len(vector)}")
    try:
        packed = array("f", vector)
    except (TypeError, OverflowError):
        raise EmbeddingRejected("invalid embedding response: an embedding holds something that is no number") from None
    norm = math.fsum(value * value for value in packed)
    if not math.isfinite(norm) or norm == 0:
        raise EmbeddingRejected("invalid embedding response: an embedding has no direction (zero, NaN or infinite)")
    # The file holds little-endian floats; so does every processor that Python and sqlite-vec run on together.
    return packed.tobytes()
