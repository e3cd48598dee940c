"""Showing results: JSON for scripts, tables on a terminal, plain lines into a pipe."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from agent_memory.domain.memory import Memory

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def print_json(value: object) -> None:
    """``value`` as one line of JSON, with escapes where the output's encoding needs them."""
    ascii_only = (sys.stdout.encoding or "ascii").lower().replace("-", "") != "utf8"
    click.echo(json.dumps(value, ensure_ascii=ascii_only))


def print_memories(memories: Sequence[Memory]) -> None:
    """One row per memory, its text cut to the width of the terminal; into a pipe one line each, uncut."""
    if sys.stdout.isatty():
        header = ("id", "type", "decay", "created", "scope", "tags", "content")
        print_table(header, [row for memory in memories for row in _rows(memory)])
        return
    for m in memories:
        columns = (str(m.id), m.type.value, f"{m.decay_score:.2f}", m.scope or "-", ",".join(m.tags) or "-", m.content)
        # Line breaks and tabs would break the columns of the reader.
        click.echo("\t".join(map(_one_line, columns)))
        for neighbour in m.related or ():
            click.echo(f"\t{neighbour.kind} {neighbour.id}\t{_one_line(neighbour.snippet)}")


def _rows(m: Memory) -> Iterator[tuple[str, ...]]:
    decay = f"{m.decay_score:.2f}"
    yield str(m.id), m.type.value, decay, day(m.created_at), m.scope or "", ", ".join(m.tags), m.content
    for neighbour in m.related or ():
        yield "", "", "", "", "", "", f"{neighbour.kind} {neighbour.id}: {neighbour.snippet}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table as wide as the terminal; the last column gives way."""
    # Drawing is the only thing that needs rich.
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    for column in header[:-1]:
        table.add_column(column, no_wrap=True, overflow="ellipsis")
    table.add_column(header[-1], overflow="ellipsis", no_wrap=True, ratio=1)
    for row in rows:
        table.add_row(*(Text(_one_line(cell)) for cell in row))
    Console().print(table)


def print_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """One ``name  value`` line each, the values aligned."""
    width = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        click.echo(f"{name:<{width}}  {value}")


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
    click.echo()
    click.echo(memory.content)


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
