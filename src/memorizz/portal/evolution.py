"""The page Memory evolution: the history of changes, which holds no memory values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from memorizz.portal.reading import STORES
from memorizz.portal.transfer import agents_of_choice
from memorizz.portal.web import Call, Refused
from memorizz.records import Record
from memorizz.taxonomy import MemoryType
from memorizz.timeline import ACTIONS, timeline

PAGE_SIZE: Final = 50
_FILTERS: Final = ("agent_id", "memory_id", "run_id", "memory_type", "actor", "action")


def show(call: Call) -> Response:
    """One page of changes, newest first."""
    given = {name: value for name in _FILTERS if (value := call.query(name)) is not None}
    chosen: dict[str, Any] = dict(given)
    if "memory_type" in chosen:
        try:
            chosen["memory_type"] = MemoryType.parse(chosen["memory_type"])
        except ValueError as error:
            raise Refused(str(error)) from None
    account = call.account
    if account.user_id is not None:
        chosen["user_id"] = account.user_id
    if account.application_id is not None:
        chosen["application_id"] = account.application_id
    with call.portal.connection.provider() as provider:
        page = timeline(provider, **chosen, limit=PAGE_SIZE, cursor=call.query("cursor"))
        # A name of an agent is a memory value too.
        agents = [] if account.restricted else agents_of_choice(provider)
    following = None if page.cursor is None else f"?{urlencode({**given, 'cursor': page.cursor}, errors='replace')}"
    return call.render(
        "evolution.html",
        changes=[_shown(change) for change in page.changes],
        following=following,
        given=given,
        agents=agents,
        actions=ACTIONS,
        further=call.query("cursor") is not None,
        slugs={store.type.value: store.slug for store in STORES},
    )


def _shown(change: Record) -> Record:
    """A change as the page takes it: anybody may have written the archive that it came from."""
    parents, names = change.get("parents"), change.get("changed_fields")
    has_version = isinstance(change.get("after_hash"), str) or change.get("action") == "deleted"
    return {
        **change,
        "memory_type": _text(change.get("memory_type")),
        "target_record_id": _text(change.get("target_record_id")),
        # A record that is not there has no version, just as an entry without one.
        "current": change["current"] and has_version,
        "parents": [
            {"relation": _text(parent.get("relation")), "record_id": _text(parent.get("record_id"))}
            for parent in (parents if isinstance(parents, list) else ())
            if isinstance(parent, Mapping)
        ],
        "changed_fields": names if isinstance(names, list) else [],
    }


def _text(value: object) -> str:
    return "" if value is None else str(value)
