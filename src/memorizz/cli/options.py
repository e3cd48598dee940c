"""Options that several commands share, and how results are shown."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from agent_memory.cli import render
from memorizz.archive.envelope import MAX_BYTES, MAX_RECORDS
from memorizz.taxonomy import MemoryType

Command = TypeVar("Command", bound=Callable[..., Any])

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON; so does a pipe.")
max_bytes = click.option(
    "--max-bytes", type=click.IntRange(min=1), default=MAX_BYTES, show_default=True, help="Largest archive."
)
max_records = click.option(
    "--max-records", type=click.IntRange(min=0), default=MAX_RECORDS, show_default=True, help="Most records."
)
types = click.option("--types", metavar="A,B,...", help="Only these stores, separated by commas.")
application_id = click.option("--application-id", metavar="ID", help="Only records of this application.")


def scope(function: Command) -> Command:
    """Accept ``--user-id`` and ``--anonymous``, for :func:`tenant`."""
    for option in (
        click.option("--anonymous", is_flag=True, help="Only records without a user."),
        click.option("--user-id", metavar="NAME", help="Only records of exactly this user."),
    ):
        function = option(function)
    return function


def tenant(user_id: str | None, anonymous: bool) -> dict[str, Any]:
    """The scope that the options say, as arguments of an archive's methods: none for the administrator.

    Raises:
        click.UsageError: Both are given.
    """
    if anonymous and user_id is not None:
        raise click.UsageError("--user-id and --anonymous exclude each other")
    return {"user_id": user_id} if anonymous or user_id is not None else {}


def stores(names: str | None) -> list[MemoryType] | None:
    """The stores of a list separated by commas, ``None`` for all.

    Raises:
        click.UsageError: One is unknown.
    """
    if names is None:
        return None
    try:
        return [MemoryType.parse(name.strip()) for name in names.split(",") if name.strip()]
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def wants_json(as_json: bool) -> bool:
    """Whether a program reads the output, not a person."""
    return as_json or not sys.stdout.isatty()


def print_counts(counts: dict[str, int]) -> None:
    """The stores that hold something, one a line."""
    render.print_pairs([(f"  {store}", f"{count:,}") for store, count in counts.items() if count])
