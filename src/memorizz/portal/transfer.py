"""The page Export & import, and the two addresses behind it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from memorizz.archive.files import parse
from memorizz.archive.redaction import redact
from memorizz.memory_archive import MAX_BYTES, MemoryArchive, archive_json
from memorizz.portal.reading import STORES
from memorizz.portal.web import Call, Refused
from memorizz.providers.base import MemoryProvider
from memorizz.taxonomy import MemoryType

# A body of 50 MiB takes twenty times as much while it is read.
_ONE_AT_A_TIME: Final = threading.Lock()
_LARGE: Final = 1 << 20
# An archive may stand alone, or in an object beside its options.
LARGEST_BODY: Final = MAX_BYTES + 65_536
_EXPORT: Final = (
    *("agent_id", "memory_id", "memory_types", "include_delegates", "include_history", "include_context"),
)
_OPTIONS: Final = ("dry_run", "conflict", "id_strategy", "target_memory_id")


def agents_of_choice(provider: MemoryProvider) -> list[tuple[str, str]]:
    """Ids and labels of the agents, for a list to choose from."""
    rows = (redact(MemoryType.MEMAGENT, row).record for row in provider.list_memagents())
    found = [(str(row.get("agent_id") or row["_id"]), str(row.get("name") or "")) for row in rows]
    return sorted(
        ((id, f"{name} ({id[:8]})" if name else id) for id, name in found), key=lambda item: item[1].casefold()
    )


def show(call: Call) -> Response:
    """The two forms; an agent or a namespace may be chosen by the address."""
    with call.portal.connection.provider() as provider:
        agents = agents_of_choice(provider)
        atomic, locked = provider.capabilities.atomic, provider.capabilities.read_only
    return call.render(
        "transfer.html",
        agents=agents,
        agent_id=call.query("agent_id"),
        memory_id=call.query("memory_id") or "",
        stores_of_archive=STORES,
        atomic=atomic,
        may_write=not (locked or call.portal.settings.read_only),
        largest=MAX_BYTES,
        connection=call.portal.connection.identity,
    )


def export(call: Call) -> Response:
    """An archive as a download."""
    _refuse_unknown(call.request.query_params, _EXPORT)
    chosen: dict[str, Any] = {
        "agent_id": call.query("agent_id"),
        "memory_id": call.query("memory_id"),
        "memory_types": _types(call),
        **{name: call.flag(name, True) for name in ("include_delegates", "include_history", "include_context")},
    }
    with call.portal.connection.provider() as provider:
        archive = MemoryArchive(provider).export(**chosen)
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S")
    return Response(
        archive_json(archive),
        media_type="application/json",
        headers={
            "Content-Disposition": f'attachment; filename="memory-{moment}.memorizz.json"',
            "X-Memorizz-Records": str(archive["manifest"]["record_count"]),
        },
    )


def restore(call: Call) -> Response:
    """The report of an import, or of its preview.

    The body is the file as it is, the options stand in the address; or an object with the archive and its options.
    """
    reviewed = call.request.headers.get("x-memorizz-connection")
    if reviewed is not None and reviewed != call.portal.connection.identity:
        raise Refused("another memory has been connected since this page was opened: reload it and preview again", 409)
    if len(call.body) > _LARGE and call.body[:64].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        raise Refused("the file is no archive: it must be a JSON object")
    with _ONE_AT_A_TIME:
        return _restored(call)


def _restored(call: Call) -> Response:
    given = parse(call.body)
    wrapped = isinstance(given, dict) and "archive" in given and "format" not in given
    archive, options = _wrapped(given) if wrapped else (given, _from_address(call))
    dry_run = options.pop("dry_run", True)
    if not isinstance(dry_run, bool):
        raise Refused(f"dry_run must be true or false (got {dry_run!r:.80})")
    if not dry_run and call.portal.settings.read_only:
        raise Refused("this portal is read-only: an import can be previewed, not applied", 403)
    if not isinstance(archive, dict):
        raise Refused("the file is no archive: it must be a JSON object")
    with call.portal.connection.provider() as provider:
        if provider.capabilities.read_only and not dry_run:
            raise Refused("the connected memory is read-only: an import can be previewed, not applied", 403)
        return JSONResponse(MemoryArchive(provider).import_archive(archive, dry_run=dry_run, **options))


def _types(call: Call) -> list[MemoryType] | None:
    values = call.request.query_params.getlist("memory_types")
    if not values:
        return None
    names = [name.strip() for value in values for name in value.split(",") if name.strip()]
    if not names:
        raise Refused("memory_types must not be empty: choose at least one memory type")
    try:
        return [MemoryType.parse(name) for name in names]
    except ValueError as error:
        raise Refused(str(error)) from None


def _refuse_unknown(given: Iterable[str], known: Sequence[str]) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise Refused(f"there is no option {unknown[0]!r:.80}; they are {', '.join(known)}")


def _from_address(call: Call) -> dict[str, Any]:
    _refuse_unknown(call.request.query_params, _OPTIONS)
    options: dict[str, Any] = {name: value for name in _OPTIONS[1:] if (value := call.query(name)) is not None}
    return {**options, "dry_run": call.flag("dry_run", True)}


def _wrapped(given: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    _refuse_unknown(given, ("archive", *_OPTIONS))
    options = {name: value for name, value in given.items() if name != "archive" and value is not None}
    for name in _OPTIONS[1:]:
        if name in options and not isinstance(options[name], str):
            raise Refused(f"{name} must be a text (got {options[name]!r:.80})")
    return given["archive"], options
