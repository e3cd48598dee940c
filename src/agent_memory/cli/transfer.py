"""``export`` and ``import``."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import BinaryIO, Final

import click

from agent_memory.cli import render
from agent_memory.cli.root import opened, settings, shared_options
from agent_memory.domain.bounds import replace_surrogates
from agent_memory.errors import InvalidSetting
from agent_memory.files import replacing
from agent_memory.service.embedding import BACKFILL_BATCH
from agent_memory.service.transfer import check_jsonl

_FORMATS: Final = ("gsd-state", "jsonl")
# Fewer records than this are done before anybody wonders.
_LONG: Final = 20_000


@click.command(
    epilog="Examples: agent-memory export --output memories.jsonl  ·  agent-memory export | gzip > memories.jsonl.gz"
)
@click.option("--output", type=click.Path(path_type=Path), metavar="PATH", help="Write this private file, atomically.")
@shared_options
def export(output: Path | None) -> int:
    """Write every memory and link to one portable JSONL file.

    Without --output, or with -, it goes to standard output. Vectors are left out: the importing machine makes its own.
    """
    if output is None or str(output) == "-":
        output = None
        if sys.stdout.name == os.devnull:
            raise click.ClickException("standard output is closed; name a file with --output")
    else:
        _check_output(output, settings().db)
    # What is half written should not stay behind.
    signal.signal(signal.SIGTERM, _end)
    with (
        opened(warnings=True) as memory,
        render.progress("exporting", _LONG) as progress,
        _faults("writing", output or "standard output"),
        nullcontext(sys.stdout.buffer) if output is None else replacing(output, "export") as file,
    ):
        report = memory.export_jsonl(file, progress)
        file.flush()
    click.echo(f"exported {report.memories} memories and {report.links} links", err=True)
    return 0


@click.command(
    "import",
    epilog="Examples: agent-memory import --from jsonl memories.jsonl  ·  "
    "agent-memory import --from gsd-state .planning/STATE.md",
)
@click.option("--from", "format", required=True, metavar="FORMAT", help=f"{' or '.join(_FORMATS)}.")
@click.argument("path", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--scope", metavar="SCOPE", help="gsd-state only: scope of the memories; the project's name if omitted.")
@shared_options
def import_(format: str, path: Path, scope: str | None) -> int:
    """Add the memories that the file PATH holds and that are not there yet. With - standard input is read.

    From jsonl, a file of `export`: all of it or, if it has any defect, nothing. From gsd-state, the STATE.md of a
    GSD project: its decisions, concerns and todos.
    """
    if format == "jsonl":
        if scope is not None:
            raise click.UsageError(
                "--scope is not accepted with --from jsonl: every memory in the file carries its own scope"
            )
        return _import_jsonl(path)
    if format == "gsd-state":
        return _import_gsd_state(path, scope)
    raise click.UsageError(f'unsupported --from value "{format}" (supported formats: {", ".join(_FORMATS)})')


COMMANDS = {"export": export, "import": import_}


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise SystemExit(128 + number)


def _import_jsonl(path: Path) -> int:
    with _reading(path) as file:
        start = file.tell()
        # The database must not even be opened for a file with a defect.
        with render.progress("checking", _LONG) as progress:
            check_jsonl(file, progress)
        file.seek(start)
        with opened(warnings=True) as memory, render.progress("importing", _LONG) as progress:
            report = memory.import_jsonl(file, progress)
    click.echo(
        f"imported: {report.imported}, skipped duplicates: {report.skipped_duplicates}, "
        f"skipped expired: {report.skipped_expired}, links imported: {report.links_imported}, "
        f"links skipped duplicates: {report.links_skipped_duplicates}, links dropped: {report.links_dropped}"
    )
    click.echo(
        f"{report.imported} rows pending embedding — the sweep backfills them on the next serve/serve-rest start "
        f"({BACKFILL_BATCH} per tick)"
    )
    return 0


def _import_gsd_state(path: Path, scope: str | None) -> int:
    with _reading(path) as file:
        data = file.read()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise click.ClickException(
            f"reading {_name(path)}: it must be UTF-8 text (byte {error.start + 1} is 0x{data[error.start]:02x})"
        ) from None
    with opened() as memory:
        report = memory.import_gsd_state(text, _project(path) if scope is None else scope)
    click.echo(
        f"imported: {report.imported}, skipped duplicates: {report.skipped_duplicates}, "
        f"malformed lines skipped: {report.malformed}"
    )
    return 0


def _project(path: Path) -> str:
    """The name of the directory that holds the nearest ``.planning`` above ``path``, else of the current one."""
    file = path.resolve()
    homes = [directory.parent for directory in (file, *file.parents) if directory.name == ".planning"]
    return replace_surrogates([*homes, Path.cwd()][0].name) or "default"


def _check_output(output: Path, db: Path) -> None:
    """Refuse to put the export in the place of something that is none."""
    devices = Path(os.devnull).resolve().parent
    if (output.exists() and not output.is_file()) or output.absolute().parent.resolve() == devices:
        raise InvalidSetting(f"--output must name a file (got {str(output)!r})")
    taken = [db, *(db.with_name(f"{db.name}{ending}") for ending in ("-wal", "-shm", "-journal"))]
    if output.resolve() in taken or (output.exists() and db.exists() and output.samefile(db)):
        raise InvalidSetting(f"--output must not be the database itself (got {str(output)!r})")


@contextmanager
def _reading(path: Path) -> Iterator[BinaryIO]:
    """The file, or what is left of standard input for ``-``; it can be read more than once."""
    with (
        _faults("reading", _name(path)),
        nullcontext(sys.stdin.buffer) if str(path) == "-" else open(path, "rb") as given,
    ):
        if given.seekable():
            yield given
            return
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(given, copy)
            copy.seek(0)
            yield copy


def _name(path: Path) -> str:
    return "standard input" if str(path) == "-" else str(path)


@contextmanager
def _faults(doing: str, what: Path | str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise click.ClickException(f"{doing} {what}: {error.strerror or error}") from error
