"""Synthetic memories, the same on every run: English-like sentences with Zipf's word frequencies, and vectors.

The 64 most frequent words are real function words, so a question asked in plain English matches nearly every
memory, as it does in real text. One memory in 100 is Chinese.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from harness import progress

from agent_memory import EmbedderUnreachable, MemoryType
from agent_memory.domain.embedding import Health
from agent_memory.domain.memory import NewMemory
from agent_memory.store.store import SQLiteStore

MODEL: Final = "nomic-embed-text"
DIM: Final = 768
NOW: Final = 1_767_225_600
"""The time of every measurement."""
COMMON_TAG: Final = "tag-0"
"""A tag of about one memory in ten."""

_SEED: Final = 20_260_101
_VOCABULARY: Final = 20_000
_FIRST_DAY: Final = NOW - 180 * 86_400
_BATCH: Final = 1_000
_TAGS: Final = 40
_FUNCTION_WORDS: Final = """
    the of and to in a is that for it was on are as with be this have from or had by but what we can not all were
    when your there use an each which do how their if will up other about out many then them these so some would
    make like into time has look two more see did decide handle
"""
_CHINESE: Final = ("数据库", "索引", "查询", "缓存", "向量", "检索", "测试", "部署", "配置", "接口", "日志", "错误")

Vectors = npt.NDArray[np.float32]


class SeededEmbedder:
    """The same text gets the same random direction, always."""

    model = MODEL
    dim = DIM
    url = "seeded:"

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """One unit vector a text, as little-endian float32."""
        return [_unit(np.random.default_rng(zlib.crc32(text.encode())), 1)[0].tobytes() for text in texts]

    def health(self) -> Health:
        """Always well."""
        return "ready"

    def close(self) -> None:
        """Nothing to release."""


class NoEmbedder(SeededEmbedder):
    """An embedder that is down, so that everything runs by keyword."""

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Fails."""
        raise EmbedderUnreachable(f"no vectors for {len(texts)} texts")

    def health(self) -> Health:
        """Always down."""
        return "unreachable"


class PreparedEmbedder(SeededEmbedder):
    """Any text gets the next of some prepared vectors, so that it takes no time worth counting."""

    def __init__(self, seed: int) -> None:
        self._vectors = itertools.cycle([vector.tobytes() for vector in _unit(np.random.default_rng(seed), 64)])

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """The next vectors."""
        return list(itertools.islice(self._vectors, len(texts)))


class Corpus:
    """An endless, seeded stream of memories: the first thousand are the same however many follow."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(_SEED)
        self.words = _vocabulary(self._random)
        frequencies = 1 / np.arange(1, _VOCABULARY + 1)
        self._cumulative = np.cumsum(frequencies / frequencies.sum())
        self._types = list(MemoryType)

    def memories(self, count: int) -> Iterator[NewMemory]:
        """The next ``count``."""
        for _ in range(count):
            yield NewMemory(
                content=self._content(),
                type=self._types[int(self._random.integers(len(self._types)))],
                tags=tuple(f"tag-{tag}" for tag in sorted(self._tags())),
                scope=f"project-{self._random.integers(8)}" if self._random.random() < 0.7 else None,
            )

    def pairs(self, contents: Sequence[str], count: int) -> list[str]:
        """``count`` queries of two words, neither common nor rare, that stand together in one of ``contents``."""
        rank = {word: place for place, word in enumerate(self.words)}
        found: list[str] = []
        while len(found) < count:
            content = contents[int(self._random.integers(len(contents)))]
            fitting = sorted({word for word in _plain_words(content) if 200 <= rank.get(word, 0) < 2_000})
            if len(fitting) >= 2:
                found.append(" ".join(self._random.choice(fitting, 2, replace=False)))
        return found

    def _content(self) -> str:
        if self._random.random() < 0.01:
            return "".join(self._random.choice(_CHINESE, self._random.integers(10, 30))) + "。"
        length = int(self._random.integers(20, 81))
        places = np.searchsorted(self._cumulative, self._random.random(length))
        return " ".join(self.words[min(int(place), _VOCABULARY - 1)] for place in places).capitalize() + "."

    def _tags(self) -> set[int]:
        # Squaring favours the low numbers; tag-0 alone gets one memory in ten.
        draws = self._random.random(self._random.integers(0, 4))
        return {int(_TAGS * draw**1.5) for draw in draws}


def fill(path: Path, count: int) -> None:
    """Create a database of ``count`` memories with vectors, spread over the 180 days before :data:`NOW`."""
    store = SQLiteStore(path)
    random = np.random.default_rng(_SEED + 1)
    memories = Corpus().memories(count)
    for first in range(0, count, _BATCH):
        vectors = _unit(random, min(_BATCH, count - first))
        with store.writing("store") as writer:
            for index, vector in enumerate(vectors, start=first):
                at = _FIRST_DAY + (NOW - _FIRST_DAY) * index // count
                writer.insert(next(memories), vector.tobytes(), at)
    store.close()


def prepared(keep: Path, size: int) -> Path:
    """A database of ``size`` memories in the directory ``keep``, made there unless it is there already."""
    path = keep / f"memories-{size}.db"
    if not path.exists():
        progress(f"{size}: filling a database")
        keep.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        unfinished.unlink(missing_ok=True)
        fill(unfinished, size)
        unfinished.rename(path)
    return path


def _vocabulary(random: np.random.Generator) -> list[str]:
    """Function words first, then pronounceable words of two to four syllables."""
    syllables = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in ("a", "e", "i", "o", "u", "an", "er")]
    words = dict.fromkeys(_FUNCTION_WORDS.split())
    while len(words) < _VOCABULARY:
        words["".join(random.choice(syllables, random.integers(2, 5)))] = None
    return list(words)


def _plain_words(content: str) -> list[str]:
    return content.rstrip(".").lower().split()


def _unit(random: np.random.Generator, count: int) -> Vectors:
    vectors = random.standard_normal((count, DIM), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype("<f4")
