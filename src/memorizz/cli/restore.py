"""``memorizz memory import``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from agent_memory.cli import render
from memorizz import config
from memorizz.archive.files import write_text
from memorizz.cli import options
from memorizz.cli.root import destination, given, has_destination, provider_options
from memorizz.memory_archive import MemoryArchive

_SHOWN = 10


@click.command(
    "import",
    epilog="Examples: memorizz memory import harbor.memorizz.json  ·  "
    "memorizz memory import harbor.memorizz.json --new-ids --apply",
)
@click.argument("archive", callback=options.file_name)
@options.apply
@options.conflict
@click.option("--new-ids", is_flag=True, help="Make an independent copy, with new ids and namespaces.")
@click.option("--target-memory-id", callback=given, metavar="ID", help="Namespace to restore into.")
@options.types
@options.scope
@options.application_id
@click.option("--reembed", is_flag=True, help="Embed what is written, with the destination's model.")
@click.option("--id-map", callback=options.file_name, metavar="FILE", help="Write the map of ids to this file.")
@options.max_bytes
@options.max_records
@click.option("--yes", is_flag=True, help="Do not ask before texts are embedded.")
@options.as_json
@provider_options
def import_(
    archive: str,
    apply: bool,
    new_ids: bool,
    types: str | None,
    user_id: str | None,
    anonymous: bool,
    id_map: str | None,
    yes: bool,
    as_json: bool,
    **chosen: Any,
) -> int:
    """Restore the memory in ARCHIVE, or preview it. With - the archive is read from standard input.

    Exit code 1 when records are there already and no policy was chosen, or when the restore was not completed.
    """
    chosen |= options.tenant(user_id, anonymous)
    chosen |= {"id_strategy": "new" if new_ids else "preserve", "allowed_types": options.stores(types)}
    if id_map == "-":
        raise click.UsageError("--id-map needs a file; a report in JSON has the map of ids too")
    if id_map is not None:
        options.refuse_in_the_way(id_map, remedy="name another file for the map of ids")
    with render.busy("reading"):
        read = options.read(archive, max_bytes=chosen["max_bytes"], max_records=chosen["max_records"])

    if apply and chosen["reembed"] and not yes and sys.stdin.isatty():
        _confirm(restore(read, dry_run=True, **chosen)["to_embed"])
    elif apply:
        rehearse(read, **chosen)
    report, fault = _with_map(lambda: restore(read, dry_run=not apply, **chosen), id_map)
    try:
        if options.wants_json(as_json):
            render.print_json(report)
        else:
            show_report(report)
    except BrokenPipeError:
        raise
    except OSError as error:
        fault = fault or options.system_message("the report", "written", error)
    if fault is not None:
        # Not 2, which says that nothing was written.
        done = f"{report['imported']:,} records were imported, but " if apply else ""
        click.echo(f"Error: {done}{fault}", err=True)
        return 1 if apply else 2
    return 0 if report["ok"] else 1


COMMANDS = {"import": import_}


def restore(archive: dict[str, Any], *, dry_run: bool, **chosen: Any) -> dict[str, Any]:
    """Restore an archive into the memory of the running command, or preview that, and return the report."""
    with destination(make=not dry_run) as provider, render.busy("looking" if dry_run else "importing"):
        return MemoryArchive(provider).import_archive(archive, dry_run=dry_run, **chosen)


def rehearse(archive: dict[str, Any], **chosen: Any) -> None:
    """Preview first where there is no memory yet: an archive that is refused must not leave an empty one behind."""
    if not has_destination():
        restore(archive, dry_run=True, **chosen)


def _confirm(texts: int) -> None:
    # It brings an HTTP client, which other imports do not need.
    from memorizz import embedding

    embedder = embedding.configured(config.variables())
    model = "the configured model" if embedder is None else embedder.describe
    click.confirm(f"{texts:,} texts are sent to {model}, which may cost money. Go on?", abort=True, err=True)


def _with_map(restore: Callable[[], dict[str, Any]], id_map: str | None) -> tuple[dict[str, Any], str | None]:
    """The report of ``restore``, and why its map of ids could not be written.

    Raises:
        options.Refused: The file of the map cannot be made, and nothing was restored.
    """
    if id_map is None:
        return restore(), None
    with options.naming(id_map, "written"):
        # Its place is taken first: a copy whose map cannot be kept should not be made.
        write_text("{}\n", id_map, overwrite=False)
    try:
        report = restore()
    except BaseException:
        Path(id_map).expanduser().unlink(missing_ok=True)
        raise
    try:
        write_text(json.dumps(report["id_map"], ensure_ascii=False, indent=2) + "\n", id_map, overwrite=True)
    except OSError as error:
        return report, options.system_message(id_map, "written", error)
    return report, None


def show_report(report: dict[str, Any]) -> None:
    """A summary for a person; the map of ids is for programs."""
    if report["dry_run"]:
        click.echo(f"preview: {report['planned']:,} records would be written, {report['skipped']:,} skipped")
    else:
        click.echo(f"imported {report['imported']:,} of {report['planned']:,} records, skipped {report['skipped']:,}")
    options.print_counts(report["counts"])
    conflicts = report["conflicts"]
    if conflicts:
        click.echo(f"{len(conflicts):,} records are there already:")
        for conflict in conflicts[:_SHOWN]:
            render.echo(f"  {conflict['memory_type']} {conflict['id']}")
        if len(conflicts) > _SHOWN:
            click.echo(f"  and {len(conflicts) - _SHOWN:,} more")
    for warning in report["warnings"]:
        render.echo(f"note: {warning}")
    for error in report["errors"]:
        render.echo(f"FAIL: {error['memory_type']} {error['id']}: {error['error_type']}: {error['message']}")
    if report["dry_run"] and report["ok"]:
        click.echo("nothing was written; add --apply to import")
