"""``link`` and ``unlink``."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from agent_memory.cli import render
from agent_memory.cli.root import opened, shared_options
from agent_memory.domain.links import LinkKind


def _complete_kind(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    return [CompletionItem(kind.value) for kind in LinkKind if kind.startswith(incomplete)]


_kind = click.argument("kind", shell_complete=_complete_kind)


@click.command(epilog="Example: agent-memory link 57 42 supersedes")
@click.argument("from_id", type=int)
@click.argument("to_id", type=int)
@_kind
@render.as_json
@shared_options
def link(from_id: int, to_id: int, kind: str, as_json: bool) -> int:
    """Relate two memories.

    KIND is relates_to, supersedes (FROM_ID replaces TO_ID) or caused_by (FROM_ID was caused by TO_ID).
    """
    with opened() as memory:
        result = memory.link(from_id, to_id, kind)
    return render.outcome(
        result.linked,
        result.to_dict(),
        as_json=as_json,
        done=f"{from_id} {kind} {to_id}",
        missing=f"no memory has the id {result.missing_id}",
    )


@click.command(epilog="Example: agent-memory unlink 57 42 supersedes")
@click.argument("from_id", type=int)
@click.argument("to_id", type=int)
@_kind
@render.as_json
@shared_options
def unlink(from_id: int, to_id: int, kind: str, as_json: bool) -> int:
    """Remove a relation between two memories.

    KIND and direction must match, but relates_to is removed from either end.
    """
    with opened() as memory:
        result = memory.unlink(from_id, to_id, kind)
    return render.outcome(
        result.unlinked,
        result.to_dict(),
        as_json=as_json,
        done=f"removed {from_id} {kind} {to_id}",
        missing=f"there is no relation {from_id} {kind} {to_id}",
    )


COMMANDS = {"link": link, "unlink": unlink}
