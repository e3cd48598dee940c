"""The eight routes: what each takes and answers, for the router, the OpenAPI document and the pages made of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from agent_memory.errors import MalformedParameters, shorten
from agent_memory.operations import arguments, schemas
from agent_memory.operations.arguments import Arguments
from agent_memory.rest import answers, requests
from agent_memory.rest.requests import Rejection
from agent_memory.service.memory import AgentMemory

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

PATCH: Final = {
    **schemas.UPDATE,
    "properties": {name: rule for name, rule in schemas.UPDATE["properties"].items() if name != "id"},
    "required": [],
}
"""The parameters of an update, but for the id, which the path has."""
_MOST_NAMED: Final = 10


class Operation(NamedTuple):
    """One method on one path. ``answers`` says for each status beside the common ones what its body is."""

    method: str
    path: str
    id: str
    summary: str
    endpoint: Endpoint
    answers: Mapping[int, str]
    body: Mapping[str, Any] | None = None
    query: Mapping[str, Any] | None = None
    plain_rejections: bool = False

    @property
    def ignores_unknown(self) -> bool:
        """Whether parameters that it does not know are only warned of."""
        return (self.body is not None and self.body is not PATCH) or self.query is not None


def operations(memory: AgentMemory) -> list[Operation]:
    """The operations over ``memory``, in the order of the documentation."""
    return [
        Operation(
            "POST", "/api/memories", "storeMemory", "Store a memory.", _store(memory),
            {201: "Stored"}, body=schemas.STORE, plain_rejections=True,
        ),
        Operation(
            "GET", "/api/memories", "listMemories", "List memories, newest first.", _list(memory),
            {200: "Memories"}, query=schemas.LIST,
        ),
        Operation(
            "POST", "/api/search", "searchMemories", "Find memories by keyword and meaning, best first.",
            _search(memory), {200: "SearchAnswer"}, body=schemas.SEARCH, plain_rejections=True,
        ),
        Operation(
            "PATCH", "/api/memories/{id}", "updateMemory",
            "Change a memory in place: members that are sent are replaced, null clears, the rest stays.",
            _update(memory), {200: "UpdatedMemory", 404: "NotUpdated"}, body=PATCH,
        ),
        Operation(
            "DELETE", "/api/memories/{id}", "forgetMemory", "Delete a memory with its links.", _forget(memory),
            {200: "Deleted", 404: "NotDeleted"},
        ),
        Operation(
            "POST", "/api/links", "linkMemories", "Relate two memories; again changes nothing.", _link(memory),
            {200: "Linked", 404: "NotLinked"}, body=schemas.EDGE,
        ),
        Operation(
            "DELETE", "/api/links/{from_id}/{to_id}/{kind}", "unlinkMemories", "Remove a relation.", _unlink(memory),
            {200: "Unlinked", 404: "NotUnlinked"},
        ),
        Operation(
            "GET", "/health", "checkHealth", "Whether the memory can be read and the embedder answers.",
            _health(memory), {200: "Health"},
        ),
    ]  # fmt: skip


def _store(memory: AgentMemory) -> Endpoint:
    async def store(request: Request) -> Response:
        given = await requests.body(request, schemas.STORE)
        memory_id = await run_in_threadpool(memory.store, **given.values)
        return answers.result({"id": memory_id}, 201, _warning(schemas.STORE, given))

    return _with_plain_rejections(store)


def _list(memory: AgentMemory) -> Endpoint:
    async def list_(request: Request) -> Response:
        given = requests.query(request, schemas.LIST)
        return await run_in_threadpool(
            lambda: answers.result(
                [found.to_dict() for found in memory.list(**given.values)], warning=_warning(schemas.LIST, given)
            )
        )

    return list_


def _search(memory: AgentMemory) -> Endpoint:
    async def search(request: Request) -> Response:
        given = await requests.body(request, schemas.SEARCH)
        return await run_in_threadpool(
            lambda: answers.result(memory.search(**given.values).to_dict(), warning=_warning(schemas.SEARCH, given))
        )

    return _with_plain_rejections(search)


def _update(memory: AgentMemory) -> Endpoint:
    async def update(request: Request) -> Response:
        memory_id = requests.integer(request, "id")
        given = await requests.body(request, PATCH, patch=True)
        outcome = await run_in_threadpool(memory.update, memory_id, **given.values)
        return answers.result(outcome.to_dict(), 200 if outcome.updated else 404)

    return update


def _forget(memory: AgentMemory) -> Endpoint:
    async def forget(request: Request) -> Response:
        outcome = await run_in_threadpool(memory.forget, requests.integer(request, "id"))
        return answers.result(outcome.to_dict(), 200 if outcome.deleted else 404)

    return forget


def _link(memory: AgentMemory) -> Endpoint:
    async def link(request: Request) -> Response:
        given = await requests.body(request, schemas.EDGE)
        outcome = await run_in_threadpool(memory.link, **given.values)
        return answers.result(outcome.to_dict(), 200 if outcome.linked else 404, _warning(schemas.EDGE, given))

    return link


def _unlink(memory: AgentMemory) -> Endpoint:
    async def unlink(request: Request) -> Response:
        ends = requests.integer(request, "from_id"), requests.integer(request, "to_id")
        outcome = await run_in_threadpool(memory.unlink, *ends, request.path_params["kind"])
        return answers.result(outcome.to_dict(), 200 if outcome.unlinked else 404)

    return unlink


def _health(memory: AgentMemory) -> Endpoint:
    async def health(request: Request) -> Response:  # noqa: ARG001
        return answers.result({"status": "ok", "embedder": await run_in_threadpool(memory.check_health)})

    return health


def _with_plain_rejections(endpoint: Endpoint) -> Endpoint:
    """The endpoint, its body refused as bare text, and with 422 for another shape."""

    async def answering(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Rejection as rejection:
            return answers.plain(rejection.status, rejection.message)
        except MalformedParameters as error:
            return answers.plain(422, str(error))

    return answering


def _warning(schema: Mapping[str, Any], given: Arguments) -> str | None:
    # Looking for the nearest known name takes time, and a header holds no more than a few.
    named = [shorten(name) for name in given.unknown[:_MOST_NAMED]]
    return arguments.warning(schema, named) if named else None
