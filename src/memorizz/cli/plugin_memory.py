"""``memorizz plugin export-memory``, ``import-memory`` and ``memory-id``."""

from __future__ import annotations

from typing import Any

import click

from agent_memory.cli import render
from memorizz import config
from memorizz.archive import remap
from memorizz.archive.selection import Request, select
from memorizz.cli import options
from memorizz.cli.restore import rehearse, restore, show_report
from memorizz.cli.root import given, opened
from memorizz.config import PluginSettings, Settings
from memorizz.mcp.access import check_principal
from memorizz.memory_archive import MemoryArchive, seal_archive, write_archive
from memorizz.plugins.remote import Remote
from memorizz.plugins.workspace import Workspace
from memorizz.taxonomy import MemoryType

_workspace = click.option(
    "--workspace", default=".", callback=given, metavar="DIR", help="A folder of the project; the current one."
)


@click.command("memory-id", epilog="Example: memorizz plugin memory-id ~/work/harbor")
@click.argument("path", default=".", callback=given)
@options.as_json
def memory_id(path: str, as_json: bool) -> int:
    """Print the namespace of the project that the folder PATH is in."""
    workspace = Workspace.of(path)
    if as_json:
        render.print_json({"memory_id": workspace.memory_id, "root": str(workspace.root)})
    else:
        click.echo(workspace.memory_id)
    return 0


@click.command("export-memory", epilog="Example: memorizz plugin export-memory harbor.memorizz.json")
@click.argument("output", callback=options.file_name)
@_workspace
@click.option("--overwrite", is_flag=True, help="Replace OUTPUT if it exists.")
@options.as_json
def export_memory(output: str, workspace: str, overwrite: bool, as_json: bool) -> int:
    """Write an archive of the project's memory to the private file OUTPUT.

    It holds what belongs to the configured user, or without one to nobody.
    """
    if output == "-":
        raise click.UsageError("OUTPUT must be a file; `memorizz memory export -` writes to standard output")
    project = Workspace.of(workspace)
    settings = PluginSettings.resolve()
    remote = Remote.of(settings)
    options.refuse_in_the_way(output, overwrite=overwrite, remedy="--overwrite replaces it")
    with render.busy("exporting"):
        archive = _exported(project, _user(settings)) if remote is None else remote.export(project.memory_id)
    with options.naming(output, "written"):
        write_archive(archive, output, overwrite=overwrite)
    manifest = archive["manifest"]
    if options.wants_json(as_json):
        render.print_json({"path": output, "manifest": manifest})
        return 0
    click.echo(f"exported {manifest['record_count']:,} records of {project.memory_id} to {output}")
    options.print_counts(manifest["counts"])
    for warning in manifest["warnings"]:
        render.echo(f"note: {warning}")
    return 0


@click.command(
    "import-memory",
    epilog="Examples: memorizz plugin import-memory harbor.memorizz.json  ·  "
    "memorizz plugin import-memory harbor.memorizz.json --apply",
)
@click.argument("archive", callback=options.file_name)
@_workspace
@options.apply
@options.conflict
@click.option("--new-ids", is_flag=True, help="Make an independent copy, with new ids.")
@click.option("--preserve-namespace", is_flag=True, help="Restore into the namespaces of the archive.")
@options.as_json
def import_memory(
    archive: str, workspace: str, apply: bool, conflict: str, new_ids: bool, preserve_namespace: bool, as_json: bool
) -> int:
    """Restore the memory in ARCHIVE into this project, or preview it. With - the archive is read from standard input.

    Exit code 1 when records are there already and no policy was chosen, or when the restore was not completed.
    """
    project = Workspace.of(workspace)
    settings = PluginSettings.resolve()
    remote = Remote.of(settings)
    with render.busy("reading"):
        read = options.read(archive)
    if not preserve_namespace:
        _refuse_several(archive, read)
    chosen = {
        "conflict": conflict,
        "id_strategy": "new" if new_ids else "preserve",
        "target_memory_id": None if preserve_namespace else project.memory_id,
    }
    if remote is None:
        report = _restored(read, apply=apply, user_id=_user(settings), **chosen)
    else:
        with render.busy("importing" if apply else "looking"):
            # Conflicts are in the report of a preview; an import that meets them is only refused.
            report = remote.restore(read, dry_run=True, **chosen)
            if apply and report["ok"]:
                report = remote.restore(read, dry_run=False, **chosen)
    if options.wants_json(as_json):
        render.print_json(report)
    else:
        show_report(report)
    return 0 if report["ok"] else 1


COMMANDS = {"export-memory": export_memory, "import-memory": import_memory, "memory-id": memory_id}


def _user(settings: PluginSettings) -> str | None:
    return None if settings.principal is None else check_principal(settings.principal, config.PRINCIPAL)


def _exported(project: Workspace, user_id: str | None) -> dict[str, Any]:
    """The archive of the project's records of exactly this user; its manifest says what that leaves out."""
    click.get_current_context().obj = Settings.resolve()
    with opened() as provider:
        archive = MemoryArchive(provider).export(memory_id=project.memory_id, user_id=user_id)
        with provider.snapshot():
            everybody = select(provider, Request(memory_id=project.memory_id)).records
    left_out = sum(map(len, everybody.values())) - archive["manifest"]["record_count"]
    if left_out > 0:
        whose = "nobody" if user_id is None else f"{user_id!r}"
        archive["manifest"]["warnings"].append(
            f"{left_out:,} records of this project are not here, because they belong to other users than {whose}; "
            f"{config.PRINCIPAL} says whose are exported, and `memorizz memory export` takes everybody's"
        )
        archive = seal_archive(archive)
    return archive


def _restored(archive: dict[str, Any], *, apply: bool, **chosen: Any) -> dict[str, Any]:
    click.get_current_context().obj = Settings.resolve()
    if apply:
        rehearse(archive, **chosen)
    return restore(archive, dry_run=not apply, **chosen)


def _refuse_several(file: str, archive: dict[str, Any]) -> None:
    """Refuse an archive whose records would be mixed in one namespace.

    Raises:
        options.Refused: It has several.
    """
    found = remap.namespaces(
        {MemoryType(s): [row["data"] | {"_id": row["id"]} for row in rows] for s, rows in archive["stores"].items()}
    )
    if len(found) > 1:
        raise options.Refused(
            f"{file} holds {len(found)} namespaces ({', '.join(sorted(found)[:5])}), which would be mixed in this "
            "project's; restore it with `memorizz memory import`"
        )
