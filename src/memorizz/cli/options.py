"""Options that several commands share, and how results are shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from agent_memory.cli import render
from memorizz.archive.envelope import MAX_BYTES, MAX_RECORDS
from memorizz.archive.files import load_archive, read_archive
from memorizz.cli.root import given
from memorizz.taxonomy import MemoryType

Command = TypeVar("Command", bound=Callable[..., Any])


class Refused(click.ClickException):
    """Nothing was written."""

    exit_code = 2


def file_name(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Refuse what cannot be the path of a file; ``~`` in it stands for a home as in the shell."""
    try:
        Path(given(ctx, param, value) or "-").expanduser()
    except RuntimeError:
        raise click.BadParameter(f"{value!r} is in the home of a user who has none", ctx, param) from None
    return value


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON; so does a pipe.")
max_bytes = click.option(
    "--max-bytes", type=click.IntRange(min=1), default=MAX_BYTES, show_default=True, help="Largest archive."
)
max_records = click.option(
    "--max-records", type=click.IntRange(min=0), default=MAX_RECORDS, show_default=True, help="Most records."
)
apply = click.option("--apply", is_flag=True, help="Write; without it the import is only previewed.")
conflict = click.option(
    "--conflict",
    type=click.Choice(["error", "skip", "replace"]),
    default="error",
    show_default=True,
    help="What becomes of records that are there already.",
)
types = click.option("--types", metavar="A,B,...", help="Only these stores, separated by commas.")
application_id = click.option(
    "--application-id", callback=given, metavar="ID", help="Only records of this application."
)


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
        click.UsageError: One is unknown, or there is none.
    """
    if names is None:
        return None
    chosen = [store(name) for name in names.split(",") if name.strip()]
    if not chosen:
        raise click.UsageError("--types names no store")
    return chosen


def store(name: str) -> MemoryType:
    """The store of that name.

    Raises:
        click.UsageError: There is none.
    """
    try:
        return MemoryType.parse(name.strip())
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def read(archive: str, **limits: int) -> dict[str, Any]:
    """The valid archive in the file of that name, or for ``-`` on standard input.

    Raises:
        Refused: It cannot be read.
        MemoryArchiveError: It is not valid, or over a limit.
    """
    if archive == "-":
        return load_archive(sys.stdin.buffer, **limits)
    with naming(archive, "read"):
        return read_archive(archive, **limits)


@contextmanager
def naming(file: str, done: str) -> Iterator[None]:
    """Turn what the system says into a sentence about ``file``, which cannot be ``done``.

    Raises:
        Refused: The system refused something.
    """
    try:
        yield
    except OSError as error:
        raise Refused(system_message(file, done, error)) from None


def system_message(file: str, done: str, error: OSError) -> str:
    """Why ``file`` cannot be ``done``. The temporary file beside it is nobody's concern."""
    about = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
    own = not about or Path(about).name.startswith(Path(file).name)
    reason = error.strerror or str(error)
    return f"{file} cannot be {done}: {reason}" if own else f"{file} cannot be {done}: {about}: {reason}"


def refuse_in_the_way(file: str, *, remedy: str, overwrite: bool = False) -> None:
    """Refuse to write over a file that is there, and over what is no file even when that was asked for.

    Raises:
        Refused: Something is in the way; ``remedy`` says what can be done about a file.
    """
    target = Path(file).expanduser()
    with naming(file, "written"):
        if not os.path.lexists(target):
            return
        if target.exists() and not target.is_file():
            raise Refused(f"{file} cannot be written: it is no regular file")
        if not overwrite:
            raise Refused(f"{file} is there already; {remedy}")


def wants_json(as_json: bool) -> bool:
    """Whether a program reads the output, not a person."""
    return as_json or not sys.stdout.isatty()


def print_counts(counts: dict[str, int]) -> None:
    """The stores that hold something, one a line."""
    render.print_pairs([(f"  {store}", f"{count:,}") for store, count in counts.items() if count])
