"""``memorizz memory inspect`` and ``verify``: looking at an archive without any memory."""

from __future__ import annotations

import click

from agent_memory.cli import render
from memorizz.archive.envelope import canonical_size
from memorizz.cli import options


@click.command(epilog="Example: memorizz memory inspect harbor.memorizz.json")
@click.argument("archive", callback=options.file_name)
@options.max_bytes
@options.max_records
@options.as_json
def inspect(archive: str, max_bytes: int, max_records: int, as_json: bool) -> int:
    """Show what ARCHIVE holds, without the memories themselves."""
    read = options.read(archive, max_bytes=max_bytes, max_records=max_records)
    manifest = read["manifest"]
    agents = [(row["id"], row["data"].get("name")) for row in read["stores"]["agents"]]
    if options.wants_json(as_json):
        named = [{"id": agent_id, "name": name} for agent_id, name in agents]
        render.print_json({"manifest": manifest, "agents": named, "bytes": canonical_size(read)})
        return 0
    scope = manifest["scope"] if isinstance(manifest["scope"], dict) else {}
    render.print_pairs(
        [
            ("made", f"{manifest['created_at']} by version {manifest['memorizz_version']}"),
            ("from", str(manifest["source_provider"])),
            ("scope", ", ".join(f"{name} {value}" for name, value in scope.items() if value) or "everything"),
            ("records", f"{manifest['record_count']:,}"),
        ]
    )
    options.print_counts(manifest["counts"])
    for agent_id, name in agents:
        render.echo(f"agent {agent_id}  {name or ''}")
    for what in ("omitted_fields", "external_references"):
        if manifest.get(what):
            render.echo(f"{what.replace('_', ' ')}: {', '.join(manifest[what])}")
    for warning in manifest["warnings"]:
        render.echo(f"note: {warning}")
    return 0


@click.command(epilog="Example: memorizz memory verify harbor.memorizz.json && echo sound")
@click.argument("archive", callback=options.file_name)
@options.max_bytes
@options.max_records
@options.as_json
def verify(archive: str, max_bytes: int, max_records: int, as_json: bool) -> int:
    """Check that ARCHIVE is whole and keeps every rule of the format. Exit code 2 when it is not."""
    read = options.read(archive, max_bytes=max_bytes, max_records=max_records)
    result = {
        "ok": True,
        "records": read["manifest"]["record_count"],
        "bytes": canonical_size(read),
        "digest": read["integrity"]["digest"],
    }
    if options.wants_json(as_json):
        render.print_json(result)
    else:
        click.echo(f"sound: {result['records']:,} records, {result['bytes']:,} bytes, sha256 {result['digest']}")
    return 0


COMMANDS = {"inspect": inspect, "verify": verify}
