"""``memorizz memory import``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from agent_memory.cli import render
from memorizz.archive.files import load_archive, read_archive, write_text
from memorizz.cli import options
from memorizz.cli.root import destination, provider_options
from memorizz.memory_archive import MemoryArchive

_SHOWN = 10


@click.command(
    "import",
    epilog="Examples: memorizz memory import harbor.memorizz.json  ·  "
    "memorizz memory import harbor.memorizz.json --new-ids --apply",
)
@click.argument("archive", type=click.Path(allow_dash=True))
@click.option("--apply", is_flag=True, help="Write; without it the import is only previewed.")
@click.option(
    "--conflict",
    type=click.Choice(["error", "skip", "replace"]),
    default="error",
    show_default=True,
    help="What becomes of records that are there already.",
)
@click.option("--new-ids", is_flag=True, help="Make an independent copy, with new ids and namespaces.")
@click.option("--target-memory-id", metavar="ID", help="Namespace to restore into.")
@options.types
@options.scope
@options.application_id
@click.option("--reembed", is_flag=True, help="Embed what is written, with the destination's model.")
@click.option("--id-map", type=click.Path(path_type=Path), metavar="FILE", help="Write the map of ids to this file.")
@options.max_bytes
@options.max_records
@options.as_json
@provider_options
def import_(
    archive: str,
    apply: bool,
    new_ids: bool,
    types: str | None,
    user_id: str | None,
    anonymous: bool,
    id_map: Path | None,
    as_json: bool,
    **chosen: Any,
) -> int:
    """Restore the memory in ARCHIVE, or preview it. With - the archive is read from standard input.

    Exit code 1 when records are there already and no policy was chosen, or when the restore was not completed.
    """
    limits = {"max_bytes": chosen["max_bytes"], "max_records": chosen["max_records"]}
    chosen |= options.tenant(user_id, anonymous)
    with render.busy("reading"):
        read = load_archive(sys.stdin.buffer, **limits) if archive == "-" else read_archive(archive, **limits)
    with destination(apply=apply) as provider, render.busy("importing" if apply else "looking"):
        report = MemoryArchive(provider).import_archive(
            read,
            dry_run=not apply,
            id_strategy="new" if new_ids else "preserve",
            allowed_types=options.stores(types),
            **chosen,
        )
    if id_map is not None:
        write_text(json.dumps(report["id_map"], ensure_ascii=False, indent=2) + "\n", id_map, overwrite=True)
    if options.wants_json(as_json):
        render.print_json(report)
    else:
        _show(report)
    return 0 if report["ok"] else 1


COMMANDS = {"import": import_}


def _show(report: dict[str, Any]) -> None:
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
