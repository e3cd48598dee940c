"""``memorizz memory timeline``."""

from __future__ import annotations

from typing import Any

import click

from agent_memory.cli import render
from memorizz.cli import options
from memorizz.cli.root import given, opened, provider_options
from memorizz.timeline import ACTIONS, DEFAULT_LIMIT, MAX_LIMIT
from memorizz.timeline import timeline as read_timeline


@click.command(epilog="Example: memorizz memory timeline --agent-id AGENT_ID --action updated --limit 20")
@click.option("--agent-id", callback=given, metavar="ID", help="Only changes of this agent's records.")
@click.option("--memory-id", callback=given, metavar="ID", help="Only changes in this namespace.")
@click.option("--run-id", callback=given, metavar="ID", help="Only changes made by this run.")
@click.option("--type", "memory_type", metavar="STORE", help="Only changes of this store.")
@click.option("--actor", callback=given, metavar="NAME", help="Only changes by this actor.")
@click.option("--action", type=click.Choice(ACTIONS), help="Only changes of this kind.")
@options.scope
@click.option("--limit", type=int, default=DEFAULT_LIMIT, show_default=True, help=f"Most changes, 1 to {MAX_LIMIT}.")
@click.option("--cursor", metavar="CURSOR", help="Go on where the page that printed CURSOR ended.")
@options.as_json
@provider_options
def timeline(user_id: str | None, anonymous: bool, memory_type: str | None, as_json: bool, **filters: Any) -> int:
    """Show recorded changes, newest first: what was done to which record, when and by whom.

    Old values are never recorded.
    """
    filters |= options.tenant(user_id, anonymous)
    filters["memory_type"] = None if memory_type is None else options.store(memory_type)
    with opened() as provider:
        page = read_timeline(provider, **filters)
    if options.wants_json(as_json):
        render.print_json({"changes": page.changes, "cursor": page.cursor})
        return 0
    for change in page.changes:
        line = (
            f"{change.get('timestamp') or '-':<32}  {change.get('action') or '-':<7}  "
            f"{change.get('memory_type') or '-'} {change.get('target_record_id') or '-'}  "
            f"{change.get('actor') or '-'}  {change.get('label') or ''}"
        )
        render.echo(" ".join(line.splitlines()))
    if page.cursor is not None:
        click.echo(f"more with --cursor {page.cursor!r}", err=True)
    return 0


COMMANDS = {"timeline": timeline}
