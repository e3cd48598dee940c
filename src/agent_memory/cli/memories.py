"""``store``, ``search``, ``list``, ``show``, ``update`` and ``forget``."""

from __future__ import annotations

import sys
from typing import Any

import click
from click.shell_completion import CompletionItem

from agent_memory.cli import render
from agent_memory.cli.root import opened, shared_options
from agent_memory.domain.bounds import DEFAULT_SEARCH_LIMIT
from agent_memory.domain.memory import UNSET, MemoryType
from agent_memory.errors import InvalidArgument


class _TypeName(click.ParamType[str]):
    """A memory type, passed on as it is: the rule and its message are the service's."""

    name = "type"

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:  # noqa: ARG002
        return f"Choose from {_TYPES}."

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        return [CompletionItem(kind.value) for kind in MemoryType if kind.startswith(incomplete.upper())]


_TYPES = ", ".join(MemoryType)
_type_filter = click.option("--type", type=_TypeName(), metavar="TYPE", help=f"One of {_TYPES}.")
_tag_filter = click.option("--tag", metavar="TAG", help="Exactly this tag, case-sensitive.")
_scope_filter = click.option("--scope", metavar="SCOPE", help="Exactly this scope.")
_expand = click.option("--expand-links", is_flag=True, help="Show the linked memories of each result.")


@click.command(
    epilog='Example: agent-memory store "We ship as one wheel." --type DECISION --tag packaging --scope website'
)
@click.argument("content")
@click.option("--type", type=_TypeName(), metavar="TYPE", required=True, help=f"One of {_TYPES}.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag; repeat for more.")
@click.option("--source", metavar="TEXT", help="Where it comes from.")
@click.option("--scope", metavar="SCOPE", help="Project or area; global if omitted.")
@click.option("--ttl-secs", type=int, metavar="SECONDS", help="Expire that long after now; never if omitted.")
@render.as_json
@shared_options
def store(content: str, as_json: bool, **fields: Any) -> int:
    """Keep CONTENT as a new memory and print its id. With - the content is read from standard input."""
    with opened() as memory:
        memory_id = memory.store(_text(content), **fields)
    if as_json:
        render.print_json({"id": memory_id})
    else:
        click.echo(memory_id)
    return 0


@click.command(
    epilog="Examples: agent-memory search \"why did the release fail?\"  ·  agent-memory search 'vec* AND sqlite'"
)
@click.argument("query")
@_type_filter
@_tag_filter
@_scope_filter
@click.option("--limit", type=int, metavar="N", help=f"Most results, 1 to 200; {DEFAULT_SEARCH_LIMIT} if omitted.")
@_expand
@render.as_json
@shared_options
def search(query: str, as_json: bool, **options: Any) -> int:
    """Find memories by keyword and, when Ollama answers, by meaning. Best first.

    QUERY is plain language or FTS5 syntax ("exact phrase", prefix*, AND, OR, NOT). With - it is read from
    standard input.
    """
    with opened() as memory:
        answer = memory.search(_text(query), **options)
    if as_json:
        render.print_json(answer.to_dict())
        return 0
    render.print_memories(answer.results)
    click.echo(f"{len(answer.results)} found, search mode {answer.search_mode}", err=True)
    return 0


@click.command("list", epilog="Example: agent-memory list --type TODO --scope website --limit 20")
@_type_filter
@_tag_filter
@_scope_filter
@click.option("--limit", type=int, metavar="N", help="Most results, 1 to 200; all if omitted.")
@_expand
@render.as_json
@shared_options
def list_(as_json: bool, **options: Any) -> int:
    """List memories, newest first."""
    with opened() as memory:
        results = memory.list(**options)
    if as_json:
        render.print_json([found.to_dict() for found in results])
    else:
        render.print_memories(results)
    return 0


@click.command(epilog="Example: agent-memory show 42")
@click.argument("id", type=int)
@render.as_json
@shared_options
def show(id: int, as_json: bool) -> int:
    """Show everything about the memory ID. It does not count as a use."""
    with opened() as memory:
        found = memory.get(id)
    if found is None:
        missing = {"id": id, "found": False, "reason": "not_found"}
        return render.outcome(False, missing, as_json=as_json, done="", missing=_missing(id))
    if as_json:
        render.print_json(found.to_full_dict())
    else:
        render.print_memory(found)
    return 0


@click.command(
    epilog='Examples: agent-memory update 42 --content "We ship as two wheels."  ·  agent-memory update 42 --clear-ttl'
)
@click.argument("id", type=int)
@click.option("--content", metavar="TEXT", help="New text; - reads it from standard input.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag of the new list; repeat for more.")
@click.option("--clear-tags", is_flag=True, help="Remove all tags.")
@click.option("--scope", metavar="SCOPE", help="New scope.")
@click.option("--clear-scope", is_flag=True, help="Make it global.")
@click.option("--ttl-secs", type=int, metavar="SECONDS", help="Expire that long after now.")
@click.option("--clear-ttl", is_flag=True, help="Never expire.")
@render.as_json
@shared_options
def update(
    id: int,
    content: str | None,
    tags: tuple[str, ...],
    clear_tags: bool,
    scope: str | None,
    clear_scope: bool,
    ttl_secs: int | None,
    clear_ttl: bool,
    as_json: bool,
) -> int:
    """Change the memory ID in place. What is not given stays."""
    patch = {
        "content": UNSET if content is None else _text(content),
        "tags": _either("tag", tags or None, clear_tags, "clear-tags"),
        "scope": _either("scope", scope, clear_scope, "clear-scope"),
        "ttl_secs": _either("ttl-secs", ttl_secs, clear_ttl, "clear-ttl"),
    }
    with opened() as memory:
        result = memory.update(id, **patch)
    return render.outcome(
        result.updated, result.to_dict(), as_json=as_json, done=f"updated memory {id}", missing=_missing(id)
    )


@click.command(epilog="Example: agent-memory forget 42")
@click.argument("id", type=int)
@render.as_json
@shared_options
def forget(id: int, as_json: bool) -> int:
    """Delete the memory ID for good, with all its links."""
    with opened() as memory:
        result = memory.forget(id)
    return render.outcome(
        result.deleted, result.to_dict(), as_json=as_json, done=f"forgot memory {id}", missing=_missing(id)
    )


COMMANDS = {"store": store, "search": search, "list": list_, "show": show, "update": update, "forget": forget}


def _text(argument: str) -> str:
    """The argument itself, or standard input for ``-``, without the line break that ends it."""
    if argument != "-":
        return argument
    data = sys.stdin.buffer.read()
    try:
        return data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise InvalidArgument(
            f"standard input must be UTF-8 text (got byte 0x{data[error.start]:02x} at {error.start})"
        ) from None


def _either(name: str, value: Any, clear: bool, clear_name: str) -> Any:
    if clear and value is not None:
        raise click.UsageError(f"--{name} and --{clear_name} exclude each other")
    if clear:
        return None
    return UNSET if value is None else value


def _missing(id: int) -> str:
    return f"no memory has the id {id}"
