"""``memorizz notion``: ``init``, ``connect``, ``status``, ``sync`` and ``repair``."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

from memorizz.cli.options import store
from memorizz.cli.root import given
from memorizz.config import Settings
from memorizz.providers.notion import NotionConfig, NotionProvider, journal_status, make_client
from memorizz.providers.notion_area import init_database

Command = TypeVar("Command", bound=Callable[..., Any])

_NONE_YET = "00000000-0000-0000-0000-000000000000"


@click.group(epilog="The token of an integration is read from the variable NOTION_TOKEN.")
def notion() -> None:
    """A memory in a data source of Notion."""


def _source(function: Command) -> Command:
    return click.option(
        "--data-source-id", callback=given, metavar="ID", help="Data source [env MEMORIZZ_NOTION_DATA_SOURCE_ID]."
    )(function)


@notion.command()
@click.option("--parent-page-id", required=True, callback=given, metavar="ID", help="Page to make the database in.")
@click.option("--title", default="Memorizz memory", show_default=True, callback=given, help="Name of the database.")
def init(parent_page_id: str, title: str) -> int:
    """Make a database for a memory below a page that is shared with the integration."""
    client = make_client(NotionConfig(**_settings(_NONE_YET).options))
    try:
        made = init_database(client, parent_page_id, title)
    finally:
        client.close()
    _show(made)
    return 0


@notion.command()
@_source
def connect(data_source_id: str | None) -> int:
    """Remember a data source as the memory the commands work on; the token is not remembered."""
    chosen = _settings(data_source_id)
    chosen.check_storable()
    with _opened(chosen) as provider:
        status = provider.index_status()
    file = chosen.save()
    _show({"backend": "notion", "data_source_id": status["data_source_id"], "remembered_in": str(file)})
    return 0


@notion.command()
@_source
def status(data_source_id: str | None) -> int:
    """Show what the journal of this machine says; nothing is asked of Notion."""
    _show(journal_status(NotionConfig(**_settings(data_source_id).options)))
    return 0


@notion.command()
@_source
@click.option("--memory-type", callback=given, metavar="STORE", help="Only this store.")
@click.option("--force", is_flag=True, help="Read again what was confirmed before.")
def sync(data_source_id: str | None, memory_type: str | None, force: bool) -> int:
    """Bring the journal up to what is in Notion, and confirm pending records."""
    chosen = None if memory_type is None else store(memory_type)
    with _opened(_settings(data_source_id)) as provider:
        _show(provider.sync(chosen, force=force))
    return 0


@notion.command(epilog="Exit codes: 0 nothing is left open, 1 something is, 2 refused.")
@_source
def repair(data_source_id: str | None) -> int:
    """Find out what became of writes that were cut off, and confirm pending records."""
    with _opened(_settings(data_source_id)) as provider:
        report = provider.repair_index()
    _show(report)
    return 1 if report["unresolved"] else 0


def _settings(data_source_id: str | None) -> Settings:
    return Settings.resolve(backend="notion", flags={"data-source-id": data_source_id})


def _opened(settings: Settings) -> NotionProvider:
    return NotionProvider(NotionConfig(**settings.options))


def _show(value: dict[str, Any]) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


COMMANDS = {"notion": notion}
