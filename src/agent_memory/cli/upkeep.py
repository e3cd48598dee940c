"""``stats``, ``sweep``, ``embed`` and ``doctor``."""

from __future__ import annotations

import re
from dataclasses import asdict

import click

from agent_memory import doctor as examiner
from agent_memory.cli import render
from agent_memory.cli.root import opened, settings, shared_options
from agent_memory.config import ENVIRONMENT
from agent_memory.errors import EmbedderUnreachable, EmbeddingRejected

_SIGNS = {"ok": "ok", "warning": "warn", "problem": "FAIL"}


@click.command(epilog="Example: agent-memory stats --json")
@render.as_json
@shared_options
def stats(as_json: bool) -> int:
    """Count what the memory holds."""
    with opened() as memory:
        counted = memory.statistics()
        path = memory.path
    if as_json:
        render.print_json({"path": str(path), **counted.to_dict()})
        return 0
    pairs = [
        ("file", f"{path} ({counted.file_bytes:,} bytes, schema {counted.schema_version})"),
        ("memories", f"{counted.memories:,}"),
        *((f"  {kind}", f"{number:,}") for kind, number in counted.by_type.items()),
        ("scopes", f"{len(counted.by_scope):,}"),
        *((f"  {scope or '(global)'}", f"{number:,}") for scope, number in counted.by_scope.items()),
        ("links", f"{counted.links:,}"),
        ("expired, not yet swept", f"{counted.expired:,}"),
        ("embedded", f"{counted.embedded:,} ({counted.embedding_model}, {counted.embedding_dim} dimensions)"),
        ("pending embedding", f"{counted.pending:,}"),
        ("oldest", "-" if counted.oldest is None else render.moment(counted.oldest)),
        ("newest", "-" if counted.newest is None else render.moment(counted.newest)),
    ]
    render.print_pairs(pairs)
    return 0


@click.command(epilog="Example: agent-memory sweep")
@render.as_json
@shared_options
def sweep(as_json: bool) -> int:
    """Do now what servers do hourly.

    Deletes expired memories, writes decay scores and embeds up to 128 pending memories. Needed only where no server
    ever runs.
    """
    with opened() as memory:
        report = memory.sweep()
    if as_json:
        render.print_json(report._asdict())
    else:
        click.echo(f"expired: {report.expired}, rescored: {report.rescored}, embedded: {report.backfilled}")
    return 0


@click.command(epilog="Example: agent-memory embed")
@shared_options
def embed() -> int:
    """Embed every pending memory now, instead of 128 an hour.

    Runs beside servers. Interrupted, it keeps what it has done; run it again to go on.
    """
    with opened() as memory:
        pending = memory.count_pending()
        if not pending:
            click.echo("nothing is pending")
            return 0
        try:
            with render.progress("embedding") as progress:
                written = memory.embed_pending(progress)
        except EmbedderUnreachable as error:
            raise EmbedderUnreachable(
                f"{error} — start Ollama, or set {ENVIRONMENT['ollama_url']} to where it is"
            ) from error
        except EmbeddingRejected as error:
            raise EmbeddingRejected(f"{error} — if the model is missing, run `ollama pull nomic-embed-text`") from error
        left = memory.count_pending()
    click.echo(f"embedded: {written}, still pending: {left}")
    return 0 if left == 0 else 1


@click.command(
    epilog="Examples: agent-memory doctor  ·  agent-memory doctor --fix  ·  agent-memory doctor --stress 8x100"
)
@click.option("--fix", is_flag=True, help="Rebuild indexes and write the log back.")
@click.option("--stress", metavar="PxN", help="Let P processes store N memories each into a scratch file beside it.")
@render.as_json
@shared_options
def doctor(fix: bool, stress: str | None, as_json: bool) -> int:
    """Check the file and say what to do.

    Looks at the file, its indexes and its surroundings. Exit code 1 when something is wrong.
    """
    if stress is not None:
        return _stress(stress, as_json=as_json)
    resolved = settings()
    done = examiner.repair(resolved) if fix else []
    findings = examiner.examine(resolved)
    if as_json:
        render.print_json({"fixed": done, "findings": [asdict(finding) for finding in findings]})
    else:
        for line in done:
            click.echo(f"fixed  {line}")
        for finding in findings:
            click.echo(f"{_SIGNS[finding.status]:<5}  {finding.check}: {finding.message}")
            if finding.advice:
                click.echo(f"       -> {finding.advice}")
    return 1 if any(finding.status == "problem" for finding in findings) else 0


COMMANDS = {"stats": stats, "sweep": sweep, "embed": embed, "doctor": doctor}


def _stress(size: str, *, as_json: bool) -> int:
    match = re.fullmatch(r"(\d{1,3})x(\d{1,6})", size)
    if match is None or not 1 <= int(match[1]) <= 64 or not 1 <= int(match[2]) <= 100_000:
        raise click.UsageError(
            f"--stress must be PxN with 1 to 64 processes and 1 to 100000 memories each, such as 8x100 (got {size!r})"
        )
    report = examiner.stress(settings(), int(match[1]), int(match[2]))
    if as_json:
        render.print_json({**asdict(report), "passed": report.passed})
    else:
        click.echo(
            f"{report.processes} processes x {report.stores_each} stores: {report.acknowledged} acknowledged, "
            f"{report.kept} kept, {report.seconds:.2f} s"
        )
        for failure in report.failures:
            click.echo(f"FAIL  {failure}")
        click.echo("passed" if report.passed else "FAILED")
    return 0 if report.passed else 1
