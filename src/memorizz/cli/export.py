"""``memorizz memory export``."""

from __future__ import annotations

import sys
from typing import Any

import click

from agent_memory.cli import render
from memorizz.cli import options
from memorizz.cli.root import given, opened, provider_options
from memorizz.memory_archive import MemoryArchive, archive_json


@click.command(
    "export",
    epilog="Examples: memorizz memory export harbor.memorizz.json --agent-id AGENT_ID  ·  "
    "memorizz memory export - --memory-id PROJECT_ID | gzip > project.memorizz.json.gz",
)
@click.argument("output", callback=options.file_name)
@click.option("--agent-id", callback=given, metavar="ID", help="Only this agent, with its delegates.")
@click.option("--memory-id", callback=given, metavar="ID", help="Only this namespace.")
@options.types
@click.option("--delegates/--no-delegates", "include_delegates", default=True, help="With delegates; the default.")
@click.option("--history/--no-history", "include_history", default=True, help="With recorded changes; the default.")
@click.option("--context/--no-context", "include_context", default=True, help="With captured context; the default.")
@click.option("--embeddings/--no-embeddings", "include_embeddings", default=False, help="With vectors; not by default.")
@options.scope
@options.application_id
@options.max_bytes
@options.max_records
@click.option("--overwrite", is_flag=True, help="Replace OUTPUT if it exists.")
@options.as_json
@provider_options
def export(
    output: str, types: str | None, user_id: str | None, anonymous: bool, overwrite: bool, as_json: bool, **chosen: Any
) -> int:
    """Write an archive of the memory, or of a part of it, to the private file OUTPUT.

    With - it goes to standard output, and the report to standard error.
    """
    chosen |= options.tenant(user_id, anonymous)
    chosen["memory_types"] = options.stores(types)
    if output != "-":
        options.refuse_in_the_way(output, overwrite=overwrite, remedy="--overwrite replaces it")
    with opened() as provider, render.busy("exporting"):
        archive = MemoryArchive(provider)
        if output == "-":
            made = archive.export(**chosen)
            sys.stdout.buffer.write(archive_json(made, max_bytes=chosen["max_bytes"]).encode())
            sys.stdout.buffer.flush()
            manifest = made["manifest"]
        else:
            with options.naming(output, "written"):
                manifest = archive.export_file(output, overwrite=overwrite, **chosen)
    if output == "-":
        click.echo(f"exported {manifest['record_count']:,} records", err=True)
    elif options.wants_json(as_json):
        render.print_json({"path": output, "manifest": manifest})
    else:
        click.echo(f"exported {manifest['record_count']:,} records to {output}")
        options.print_counts(manifest["counts"])
        for warning in manifest["warnings"]:
            render.echo(f"note: {warning}")
    return 0


COMMANDS = {"export": export}
