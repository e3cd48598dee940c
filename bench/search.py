"""How long a search takes, by mode, size of the memory, kind of query, limit and filter.

    python bench/search.py [--sizes 1000 10000 100000] [--keep DIR]

The memories have 20 to 80 words from a vocabulary of 20,000 and vectors of 768 dimensions, both seeded
(``corpus.py``); the embedder answers at once, so hybrid numbers are the price of the two rankings and their
fusion. Each cell is the median and the 95th percentile of up to 30 searches, or of those that fit into
``--seconds`` (at least five), each with another query of its kind:

- two words: bare words that stand together in some memories (FTS5's AND finds them)
- question: eight words of plain English with a question mark, so any of its words counts (the OR retry)
- no match: two words that no memory holds
- Chinese: one phrase, found inside text without spaces

It then times ``list(limit=20)``, and one sweep. ``--keep`` caches the filled databases, and each run works on
a copy.
"""

from __future__ import annotations

import argparse
import itertools
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from corpus import COMMON_TAG, NOW, Corpus, NoEmbedder, SeededEmbedder, prepared
from harness import machine, median, percentile, progress, table

import agent_memory

if TYPE_CHECKING:
    from agent_memory.domain.embedding import Embedder
    from agent_memory.service.memory import AgentMemory

_VARIETY: Final = 30
_LEAST: Final = 5
_LIMITS: Final = (10, 50)
_MODES: Final[dict[str, Embedder]] = {"keyword": NoEmbedder(), "hybrid": SeededEmbedder()}

Timings = dict[tuple[str, ...], list[float]]


def main() -> None:
    """Measure and print."""
    arguments = _arguments()
    searches: Timings = {}
    upkeep: Timings = {}
    sizes: list[int] = arguments.sizes
    queries = _queries()
    file_size: dict[int, int] = {}
    with tempfile.TemporaryDirectory() as scratch:
        keep = arguments.keep or Path(scratch)
        for size in sizes:
            path = Path(scratch) / f"run-{size}.db"
            shutil.copyfile(prepared(keep, size), path)
            file_size[size] = path.stat().st_size
            for mode, embedder in _MODES.items():
                progress(f"{size}: searching in {mode} mode")
                with agent_memory.open(path, embedder=embedder, clock=lambda: NOW) as memory:
                    _search(memory, mode, size, queries, arguments.seconds, searches)
            with agent_memory.open(path, embedder=SeededEmbedder(), clock=lambda: NOW) as memory:
                progress(f"{size}: listing and sweeping")
                upkeep["list(limit=20)", str(size)] = _timed(lambda: memory.list(limit=20), 20, arguments.seconds)
                upkeep["sweep()", str(size)] = _timed(memory.sweep, 1, arguments.seconds)
    print(f"{machine()}\n")
    _print_searches(searches, sizes)
    _print_growth(searches, sizes)
    _print_upkeep(upkeep, sizes, file_size)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time searches.")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--keep", type=Path, help="directory that caches the filled databases")
    parser.add_argument("--seconds", type=float, default=3.0, help="the most to spend on one cell")
    return parser.parse_args()


def _queries() -> dict[str, list[str]]:
    """The queries of each kind; those of two words come from the first thousand memories, which all sizes hold."""
    corpus = Corpus()
    contents = [memory.content for memory in corpus.memories(1_000)]
    pairs = corpus.pairs(contents, _VARIETY)
    return {
        "two words": pairs,
        "question": [f"what did we decide about the {pair}?" for pair in pairs],
        "no match": [f"qxqzw{index} wqxj{index}" for index in range(_VARIETY)],
        "Chinese": ["数据库索引", "缓存配置", "向量检索", "部署日志", "接口错误"] * (_VARIETY // 5),
    }


def _search(
    memory: AgentMemory, mode: str, size: int, queries: dict[str, list[str]], seconds: float, into: Timings
) -> None:
    memory.search(queries["question"][0])
    for kind, texts in queries.items():
        for tag in (None, COMMON_TAG):
            for limit in _LIMITS:
                key = (kind, mode, "yes" if tag else "no", str(limit), str(size))
                into[key] = _timed(_searches(memory, mode, texts, tag, limit), _VARIETY, seconds)


def _searches(memory: AgentMemory, mode: str, texts: Sequence[str], tag: str | None, limit: int) -> Callable[[], None]:
    """A function that searches for the next of ``texts``."""
    left = iter(texts)

    def search() -> None:
        # An agent's query is a new one; ours come again in each cell, so forget the patterns made for them.
        re.purge()
        answer = memory.search(next(left), tag=tag, limit=limit)
        if answer.search_mode != mode:
            raise RuntimeError(f"searched in {answer.search_mode} mode instead of {mode}")

    return search


def _timed(action: Callable[[], object], most: int, seconds: float) -> list[float]:
    """Milliseconds of each of up to ``most`` calls."""
    timings: list[float] = []
    begun = time.perf_counter()
    while len(timings) < most and (len(timings) < _LEAST or time.perf_counter() - begun < seconds):
        before = time.perf_counter()
        action()
        timings.append((time.perf_counter() - before) * 1_000)
    return timings


def _print_searches(searches: Timings, sizes: Sequence[int]) -> None:
    cells = list(dict.fromkeys(key[:-1] for key in searches))
    rows = [[*cell, *[_cell(searches[(*cell, str(size))]) for size in sizes]] for cell in cells]
    print(table(["query", "mode", "tag filter", "limit", *[f"{size:,} (p50 / p95 ms)" for size in sizes]], rows))


def _print_growth(searches: Timings, sizes: Sequence[int]) -> None:
    rows = []
    for kind, mode in dict.fromkeys(key[:2] for key in searches):
        medians = [median(searches[kind, mode, "no", "10", str(size)]) for size in sizes]
        growth = [f"{after / before:.1f} x" for before, after in itertools.pairwise(medians)]
        rows.append([kind, mode, *growth])
    steps = [f"{before:,} to {after:,}" for before, after in itertools.pairwise(sizes)]
    print("\nGrowth of the median, limit 10 without a filter:\n")
    print(table(["query", "mode", *steps], rows))


def _print_upkeep(upkeep: Timings, sizes: Sequence[int], file_size: dict[int, int]) -> None:
    rows: list[list[str]] = [
        [name, *[f"{median(upkeep[name, str(size)]):,.1f} ms" for size in sizes]]
        for name in dict.fromkeys(key[0] for key in upkeep)
    ]
    rows.append(["file", *[f"{file_size[size] / 1e6:,.1f} MB" for size in sizes]])
    print()
    print(table(["", *[f"{size:,}" for size in sizes]], rows))


def _cell(timings: Sequence[float]) -> str:
    return f"{median(timings):.1f} / {percentile(timings, 0.95):.1f}"


if __name__ == "__main__":
    main()
