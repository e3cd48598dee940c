"""Showing results: JSON for scripts, tables on a terminal, plain lines into a pipe."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

import click

from agent_memory.domain.memory import Memory

_WIDE: Final = 100
_MEDIUM: Final = 70

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def print_json(value: object) -> None:
    """``value`` as one line of JSON, with escapes where the output's encoding needs them."""
    ascii_only = (sys.stdout.encoding or "ascii").lower().replace("-", "") != "utf8"
    click.echo(json.dumps(value, ensure_ascii=ascii_only))


def echo(text: str = "") -> None:
    """Print text that may come from outside: into a pipe as it is, on a terminal without its control characters."""
    click.echo(printable(text) if sys.stdout.isatty() else text, color=True)


def printable(text: str) -> str:
    """``text`` with its control characters, except line breaks and tabs, as escapes: they could steer a terminal."""
    return "".join(
        f"\\x{ord(character):02x}" if unicodedata.category(character) == "Cc" and character not in "\n\t" else character
        for character in text
    )


def print_memories(memories: Sequence[Memory]) -> None:
    """One row per memory, its text cut to the width of the terminal; into a pipe one line each, uncut."""
    if sys.stdout.isatty():
        _print_table(memories)
        return
    for m in memories:
        columns = (str(m.id), m.type.value, f"{m.decay_score:.2f}", m.scope or "-", ",".join(m.tags) or "-", m.content)
        # Line breaks and tabs would break the columns of the reader.
        echo("\t".join(map(_one_line, columns)))
        for neighbour in m.related or ():
            echo(f"\t{neighbour.kind} {neighbour.id}\t{_one_line(neighbour.snippet)}")


def _print_table(memories: Sequence[Memory]) -> None:
    # Drawing is the only thing that needs rich.
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    cells = [_cells(m) for m in memories]
    # The id is what every other command asks for: the columns before the text never give way.
    for name in ("id", "type", "decay", *(("created",) if console.width >= _WIDE else ())):
        table.add_column(name, no_wrap=True, min_width=max([len(name), *(len(row[name]) for row in cells)]))
    for name in ("scope", "tags") if console.width >= _MEDIUM else ():
        table.add_column(name, no_wrap=True, overflow="ellipsis", max_width=24 if console.width >= _WIDE else 14)
    table.add_column("content", no_wrap=True, overflow="ellipsis", ratio=1, min_width=16)
    names = [str(column.header) for column in table.columns]
    for m, row in zip(memories, cells, strict=True):
        table.add_row(*(Text(row[name]) for name in names))
        for neighbour in m.related or ():
            link = f"{neighbour.kind} {neighbour.id}: {neighbour.snippet}"
            table.add_row(*([""] * (len(names) - 1)), Text(printable(_one_line(link))))
    console.print(table)


def _cells(m: Memory) -> dict[str, str]:
    cells = {
        "id": str(m.id),
        "type": m.type.value,
        "decay": f"{m.decay_score:.2f}",
        "created": day(m.created_at),
        "scope": m.scope or "",
        "tags": ", ".join(m.tags),
        "content": m.content,
    }
    return {name: printable(_one_line(cell)) for name, cell in cells.items()}


def _one_line(text: str) -> str:
    return " ".join(text.split())


def print_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """One ``name  value`` line each, the values aligned."""
    width = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        echo(f"{name:<{width}}  {value}")


def print_memory(memory: Memory) -> None:
    """Everything about one memory, its text last."""
    pairs = [
        ("id", str(memory.id)),
        ("type", memory.type.value),
        ("tags", ", ".join(memory.tags) or "-"),
        ("scope", memory.scope or "- (global)"),
        ("source", memory.source or "-"),
        ("created", moment(memory.created_at)),
        ("last used", moment(memory.last_accessed)),
        ("uses", str(memory.access_count)),
        ("expires", "never" if memory.expires_at is None else moment(memory.expires_at)),
        ("decay score", f"{memory.decay_score:.4f}"),
        ("embedding", "current" if memory.embedding_status else "pending"),
    ]
    pairs += [(f"{n.kind} {n.id}", n.snippet) for n in memory.related or ()]
    print_pairs(pairs)
    echo()
    echo(memory.content)


def day(seconds: int) -> str:
    """The UTC date of a unix time."""
    return moment(seconds)[:10]


def moment(seconds: int) -> str:
    """A unix time as UTC date and time; one beyond the calendar as its number."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{seconds} (unix seconds)"


def outcome(found: bool, result: Any, *, as_json: bool, done: str, missing: str) -> int:
    """Report an operation that may have found nothing to work on, and return the exit code."""
    if as_json:
        print_json(result)
    if not found:
        click.echo(missing, err=True)
    elif not as_json:
        click.echo(done)
    return 0 if found else 1


@contextmanager
def progress(what: str, least: int = 0) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on standard error where that is a terminal, for ``least`` steps or more.

    Yields what is called with the steps done and their total.
    """
    if not sys.stderr.isatty():
        yield None
        return
    # Drawing is the only thing that needs rich.
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        tasks: list[Any] = []

        def show(done: int, total: int) -> None:
            if total >= least:
                if not tasks:
                    tasks.append(bar.add_task(what))
                bar.update(tasks[0], completed=done, total=total)

        yield show


@contextmanager
def busy(what: str) -> Iterator[None]:
    """A sign of life on standard error, where that is a terminal, while something runs whose length is not known."""
    if not sys.stderr.isatty():
        yield
        return
    # Drawing is the only thing that needs rich.
    from rich.console import Console

    with Console(stderr=True).status(f"{what} …"):
        yield
