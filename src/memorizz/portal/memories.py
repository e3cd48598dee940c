"""The page Memories: the typed memory, over the same operations as every other door."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import RedirectResponse, Response

from agent_memory.domain.links import LinkKind
from agent_memory.domain.memory import MemoryType
from agent_memory.service.memory import AgentMemory
from memorizz.portal.web import Call, Refused

SHOWN: Final = 50
_DONE: Final = re.compile(r"stored|saved|linked|unlinked|memory [0-9]+ was forgotten")


def show(call: Call) -> Response:
    """The newest memories, or those that a search finds."""
    memory = _memory(call)
    query, kind = call.query("q"), call.query("type")
    filters: dict[str, Any] = {"type": kind, "tag": call.query("tag"), "scope": call.query("scope")}
    limit = call.number("limit", least=1, most=200) if call.query("limit") else SHOWN
    mode = None
    if query is None:
        rows = tuple(memory.list(**filters, limit=limit))
    else:
        mode, rows = memory.search(query, **filters, limit=limit)
    return call.render(
        "memories.html", rows=rows, mode=mode, query=query or "", filters=filters, types=list(MemoryType),
        limit=limit, full=len(rows) == limit, total=memory.statistics().memories, path_of=memory.path,
        done=_done(call),
    )  # fmt: skip


def store(call: Call) -> Response:
    """Keep a new memory."""
    given = call.form()
    id = _memory(call).store(
        given.get("content", ""),
        given.get("type", ""),
        tags=_tags(given.get("tags", "")),
        scope=given.get("scope") or None,
        source="portal",
    )
    return _back(id, "stored")


def show_one(call: Call) -> Response:
    """One memory with its links, and the forms that change it."""
    found = _memory(call).get(_id(call))
    if found is None:
        raise Refused(f"there is no memory {_id(call)}", 404)
    return call.render("memory.html", memory=found, kinds=list(LinkKind), done=_done(call))


def update(call: Call) -> Response:
    """Change content, tags and scope in place."""
    given, id = call.form(), _id(call)
    result = _memory(call).update(
        id, content=given.get("content", ""), tags=_tags(given.get("tags", "")), scope=given.get("scope") or None
    )
    if not result.updated:
        raise Refused(f"there is no memory {id}", 404)
    return _back(id, "saved")


def link(call: Call) -> Response:
    """Relate a memory to another."""
    given, id = call.form(), _id(call)
    result = _memory(call).link(id, _number(given.get("to_id", "")), given.get("kind", ""))
    if result.missing_id is not None:
        raise Refused(f"there is no memory {result.missing_id}", 404)
    return _back(id, "linked")


def unlink(call: Call) -> Response:
    """Remove a relation; the kinds are those that the memory's page shows, seen from either end."""
    given, id = call.form(), _id(call)
    other, kind = _number(given.get("to_id", "")), given.get("kind", "")
    passive = {"superseded_by": "supersedes", "caused": "caused_by"}
    if kind in passive:
        result = _memory(call).unlink(other, id, passive[kind])
    else:
        result = _memory(call).unlink(id, other, kind)
    if not result.unlinked:
        raise Refused(f"memory {id} has no such link to memory {other}", 404)
    return _back(id, "unlinked")


def forget(call: Call) -> Response:
    """Delete a memory, once that was confirmed."""
    id = _id(call)
    if call.form().get("confirmed") != "true":
        raise Refused("tick the box to confirm: a forgotten memory is gone for good")
    if not _memory(call).forget(id).deleted:
        raise Refused(f"there is no memory {id}", 404)
    return RedirectResponse(f"/memories?done={quote(f'memory {id} was forgotten')}", 303)


def _memory(call: Call) -> AgentMemory:
    if call.portal.memory is None:
        raise Refused("no typed memory is configured: start the portal with --memory-db FILE", 404)
    return call.portal.memory


def _id(call: Call) -> int:
    return _number(call.request.path_params["id"])


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise Refused(f"a memory's id is a whole number (got {text!r:.80})")
    return int(text)


def _tags(text: str) -> list[str]:
    return [tag for part in text.split(",") if (tag := part.strip())]


def _done(call: Call) -> str | None:
    """What was done, to be said on the page; an address may come from anywhere, and says nothing else."""
    done = call.query("done")
    return None if done is None or _DONE.fullmatch(done) is None else done


def _back(id: int, done: str) -> Response:
    return RedirectResponse(f"/memories/{id}?done={done}", 303)
