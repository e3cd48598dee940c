"""Embedders that a restore can ask for vectors: an Ollama, or any server that speaks the API of OpenAI."""

from __future__ import annotations

import http.client
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from memorizz.errors import ConfigurationError, MemorizzError

KINDS: Final = ("ollama", "openai")

_DEFAULT_URLS: Final = {"ollama": "http://localhost:11434", "openai": "https://api.openai.com/v1"}
_PATHS: Final = {"ollama": "/api/embed", "openai": "/embeddings"}
_TIMEOUT_SECS: Final = 60.0
_LARGEST_ANSWER: Final = 256 * 1024 * 1024


class EmbeddingFailed(MemorizzError):
    """The embedder did not give one vector for each text."""


class HttpEmbedder:
    """Asks a server for vectors. ``describe`` says which one, without its key."""

    def __init__(self, kind: str, model: str, url: str | None = None, key: str | None = None) -> None:
        """``kind`` is one of :data:`KINDS`, ``url`` the base of its API.

        Raises:
            ConfigurationError: There is no such kind, or the URL is none.
        """
        if kind not in KINDS:
            raise ConfigurationError(f"the embedder must be one of {', '.join(KINDS)} (got {kind!r:.80})")
        self._kind = kind
        self.model = model
        self.url = (url or _DEFAULT_URLS[kind]).rstrip("/")
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise ConfigurationError("the URL of the embedder must be http(s)://host, without user and password")
        self._key = key

    @property
    def describe(self) -> str:
        """Which model, and where."""
        return f"{self.model} at {self.url}"

    def get_embedding(self, text: str) -> list[float]:
        """The vector of one text.

        Raises:
            EmbeddingFailed: There was none.
        """
        return self.get_embeddings([text])[0]

    def get_embeddings(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of texts, in their order, asked for together.

        Raises:
            EmbeddingFailed: There was not one for each.
        """
        answer = self._post({"model": self.model, "input": list(texts)})
        if self._kind == "ollama":
            vectors = answer.get("embeddings")
        else:
            data = answer.get("data")
            rows = [row for row in data if isinstance(row, dict)] if isinstance(data, list) else []
            vectors = [row.get("embedding") for row in sorted(rows, key=_index)]
        if not isinstance(vectors, list) or len(vectors) != len(texts) or not all(map(_is_vector, vectors)):
            raise EmbeddingFailed(f"{self.describe} did not answer with one vector for each of {len(texts)} texts")
        return [[float(number) for number in vector] for vector in vectors]

    def _post(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        parts = urlsplit(self.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=_TIMEOUT_SECS)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        try:
            connection.request("POST", parts.path + _PATHS[self._kind], json.dumps(body).encode(), headers)
            response = connection.getresponse()
            content = response.read(_LARGEST_ANSWER)
        except (OSError, http.client.HTTPException) as error:
            raise EmbeddingFailed(f"{self.describe} cannot be asked: {error or type(error).__name__}") from None
        finally:
            connection.close()
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError):
            answer = None
        if response.status != 200:
            raise EmbeddingFailed(f"{self.describe} answered with status {response.status}: {_reason(answer)}")
        if not isinstance(answer, dict):
            raise EmbeddingFailed(f"{self.describe} did not answer with a JSON object")
        return answer


def configured(variables: Mapping[str, str]) -> HttpEmbedder | None:
    """The embedder that the settings name, or ``None`` when they name none.

    Raises:
        ConfigurationError: They are incomplete.
    """

    def text(name: str) -> str:
        return variables.get(f"MEMORIZZ_DEFAULT_EMBEDDING_{name}", "")

    kind = text("PROVIDER")
    if not kind:
        return None
    model = text("MODEL") or ("nomic-embed-text" if kind == "ollama" else "")
    if not model:
        raise ConfigurationError("MEMORIZZ_DEFAULT_EMBEDDING_MODEL must name the model")
    return HttpEmbedder(kind, model, text("URL") or None, text("API_KEY") or None)


def _index(row: Mapping[str, Any]) -> int:
    index = row.get("index")
    return index if isinstance(index, int) else 0


def _is_vector(value: Any) -> bool:
    numbers = value if isinstance(value, list) else []
    return bool(numbers) and all(
        isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number) for number in numbers
    )


def _reason(answer: Any) -> str:
    said = answer.get("error") if isinstance(answer, dict) else None
    said = said.get("message") if isinstance(said, dict) else said
    return str(said)[:200] if said else "no reason given"
