"""A small real HTTP server that speaks the part of Notion that the memory graph uses, with its limits."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "ntn_secret_of_the_tests"
API_VERSION = "2026-03-11"
LONGEST_TEXT = 2_000
MOST_PIECES = 100
MOST_BYTES = 500_000
MOST_ROWS = 100
CUT_PIECES = 25
"""So many pieces of rich text an answer holds; the others are behind the property's own address."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it arrived."""

    method: str
    path: str
    body: Any
    headers: dict[str, str]

    @property
    def writes(self) -> bool:
        return self.method != "GET" and not self.path.endswith("/query")


class Refused(Exception):
    def __init__(self, status: int, code: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class HangUp(Exception):
    """The connection ends without an answer."""


@dataclass
class Source:
    """A data source: its properties by name, and its pages by id."""

    id: str
    properties: dict[str, dict[str, Any]]
    pages: dict[str, dict[str, Any]] = field(default_factory=dict)
    made: int = 0
    """So many properties were ever added."""
    unseen: int = 0
    """So many of the newest pages a query does not bring yet."""


Fault = Callable[[Request], Exception | None]


@dataclass
class FakeNotion:
    """``with FakeNotion() as notion: ... notion.url``. Faults, limits and the clock can be changed at any time."""

    sources: dict[str, Source] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    keeps_requests: bool = True
    before: Fault | None = None
    """What to answer in place of doing a request."""
    after: Fault | None = None
    """What to answer in place of the result of one that was done."""
    most_results: int = 10_000
    """So many rows a query brings, over all its pages."""
    cursors_end: bool = False
    """Whether the rest of a query can no longer be asked for."""
    now: datetime = datetime(2026, 12, 1, 12, 0, 30, tzinfo=UTC)
    step: timedelta = timedelta()
    """How long it is from one new page to the next."""
    pages_to_share: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.notion = self
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> FakeNotion:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._server.hang_up()

    def add_source(self) -> Source:
        """An empty data source with the one property that each has."""
        source = Source(str(uuid.uuid4()), {"Name": {"id": "title", "name": "Name", "type": "title", "title": {}}})
        self.sources[source.id] = source
        return source

    def log(self) -> list[str]:
        """The requests since the last call, as texts; ids are left out."""
        with self._lock:
            done, self.requests = self.requests, []
        return [f"{request.method} {_shape(request.path)}" for request in done]

    def answer(self, request: Request) -> dict[str, Any]:
        """Do a request."""
        with self._lock:
            if self.keeps_requests:
                self.requests.append(request)
            _fail(self.before, request)
            _check_headers(request)
            done = self._done(request)
            _fail(self.after, request)
            return done

    def _done(self, request: Request) -> dict[str, Any]:
        parts = urlsplit(request.path)
        match (request.method, *parts.path.removeprefix("/v1/").split("/")):
            case ("GET", "data_sources", id):
                return self._shown_source(self._source(id))
            case ("PATCH", "data_sources", id):
                source = self._source(id)
                _add_properties(source, request.body["properties"])
                return self._shown_source(source)
            case ("POST", "data_sources", id, "query"):
                return self._query(self._source(id), request.body)
            case ("POST", "pages"):
                return self._create(request.body)
            case ("GET", "pages", id):
                source, page = self._page(id)
                return _cut(_shown(source, page))
            case ("PATCH", "pages", id):
                return self._change(*self._page(id), request.body)
            case ("GET", "pages", id, "properties", name):
                return self._property(*self._page(id), name, parse_qs(parts.query))
            case ("POST", "databases"):
                return self._create_database(request.body)
        raise Refused(400, "invalid_request_url", "Invalid request URL.")

    def _source(self, id: str) -> Source:
        if id not in self.sources:
            raise Refused(404, "object_not_found", f"Could not find data source with ID: {id}.")
        return self.sources[id]

    def _page(self, id: str) -> tuple[Source, dict[str, Any]]:
        for source in self.sources.values():
            if id in source.pages:
                return source, source.pages[id]
        raise Refused(404, "object_not_found", f"Could not find page with ID: {id}.")

    def _shown_source(self, source: Source) -> dict[str, Any]:
        return {"object": "data_source", "id": source.id, "properties": source.properties}

    def _create(self, body: dict[str, Any]) -> dict[str, Any]:
        source = self._source(body["parent"]["data_source_id"])
        page = {
            "id": str(uuid.uuid4()),
            "created_time": self.now.replace(second=0).strftime("%Y-%m-%dT%H:%M:00.000Z"),
            "in_trash": False,
            "values": _values(source, body["properties"]),
        }
        self.now += self.step
        source.pages[page["id"]] = page
        return _cut(_shown(source, page))

    def _change(self, source: Source, page: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        if page["in_trash"]:
            raise Refused(400, "validation_error", "Can't edit block that is archived. You must unarchive it before.")
        page["values"] = {**page["values"], **_values(source, body.get("properties", {}))}
        page["in_trash"] = body.get("in_trash", False)
        return _cut(_shown(source, page))

    def _property(self, source: Source, page: dict[str, Any], name: str, query: dict[str, list[str]]) -> dict[str, Any]:
        texts = _shown(source, page)["properties"][_property_name(source, name)]["rich_text"]
        start, size = int(query.get("start_cursor", ["0"])[0]), int(query["page_size"][0])
        _at_most(size, MOST_ROWS, "page_size")
        more = start + size < len(texts)
        results = [{"type": "rich_text", "rich_text": text} for text in texts[start : start + size]]
        return {"results": results, "has_more": more, "next_cursor": str(start + size) if more else None}

    def _query(self, source: Source, body: dict[str, Any]) -> dict[str, Any]:
        size = body.get("page_size", MOST_ROWS)
        _at_most(size, MOST_ROWS, "page_size")
        assert body.get("sorts", []) in ([], [{"timestamp": "created_time", "direction": "ascending"}])
        pages = sorted(list(source.pages.values())[: len(source.pages) - source.unseen], key=_created)
        rows = [page for page in pages if not page["in_trash"] and _fits(source, page, body.get("filter"))]
        is_cut = len(rows) > self.most_results
        rows = rows[: self.most_results]
        cursor = body.get("start_cursor")
        if cursor is not None:
            if self.cursors_end:
                raise Refused(400, "validation_error", "The start_cursor provided is invalid.")
            # Its page may be in the trash by now.
            places = {page["id"]: number for number, page in enumerate(pages)}
            rows = [page for page in rows if places[page["id"]] >= places[cursor]]
        more = len(rows) > size
        answer = {
            "object": "list",
            "results": [_cut(_shown(source, page)) for page in rows[:size]],
            "has_more": more,
            "next_cursor": rows[size]["id"] if more else None,
        }
        if is_cut and not more:
            answer["request_status"] = {"type": "incomplete", "incomplete_reason": "query_result_limit_reached"}
        return answer

    def _create_database(self, body: dict[str, Any]) -> dict[str, Any]:
        if body["parent"]["page_id"] not in self.pages_to_share:
            raise Refused(404, "object_not_found", "Could not find page. Is it shared with the integration?")
        source = self.add_source()
        wanted = body["initial_data_source"]["properties"]
        _add_properties(source, {name: value for name, value in wanted.items() if "title" not in value})
        id = str(uuid.uuid4())
        return {"id": id, "url": f"https://notion.example/{id}", "data_sources": [{"id": source.id}]}


def _created(page: dict[str, Any]) -> str:
    return str(page["created_time"])


def _shape(path: str) -> str:
    parts = urlsplit(path).path.removeprefix("/v1/").split("/")
    return "/".join([parts[0], *("*" if len(part) == 36 else part for part in parts[1:])])


def _fail(fault: Fault | None, request: Request) -> None:
    error = None if fault is None else fault(request)
    if error is not None:
        raise error


def _check_headers(request: Request) -> None:
    if request.headers.get("authorization") != f"Bearer {TOKEN}":
        raise Refused(401, "unauthorized", "API token is invalid.")
    if request.headers.get("notion-version") != API_VERSION:
        raise Refused(400, "missing_version", "Notion-Version header failed validation.")
    if request.body is not None and int(request.headers["content-length"]) > MOST_BYTES:
        raise Refused(413, "validation_error", "The request body is too large.")


def _at_most(value: int, most: int, name: str) -> None:
    if value > most:
        raise Refused(
            400, "validation_error", f"body failed validation: {name} should be <= {most}, instead was {value}."
        )


def _add_properties(source: Source, wanted: dict[str, Any]) -> None:
    for name, value in wanted.items():
        (kind,) = value
        if name not in source.properties:
            source.made += 1
            id = f"%3A{source.made:02d}"
            source.properties[name] = {"id": id, "name": name, "type": kind, kind: value[kind]}


def _property_name(source: Source, key: str) -> str:
    """The name of a property that is spoken of by name or id."""
    for name, value in source.properties.items():
        if key in (name, value["id"]):
            return name
    raise Refused(400, "validation_error", f"Could not find property with name or id: {key}")


def _values(source: Source, wanted: dict[str, Any]) -> dict[str, Any]:
    """The values by the ids of their properties, if they are valid."""
    made = {}
    for key, value in wanted.items():
        known = source.properties[_property_name(source, key)]
        kind = known["type"]
        if kind not in value:
            raise Refused(400, "validation_error", f"{key} is expected to be {kind}.")
        if kind in ("title", "rich_text"):
            _check_text(key, value[kind])
        made[known["id"]] = value[kind]
    return made


def _check_text(key: str, texts: list[dict[str, Any]]) -> None:
    _at_most(len(texts), MOST_PIECES, f"body.properties.{key}.length")
    for piece in texts:
        content = piece["text"]["content"]
        _at_most(len(content.encode("utf-16-le")) // 2, LONGEST_TEXT, f"body.properties.{key}.text.content.length")
        if "\0" in content:
            raise Refused(400, "validation_error", f"{key} holds a character that cannot be stored.")


def _shown(source: Source, page: dict[str, Any]) -> dict[str, Any]:
    properties = {}
    for name, known in source.properties.items():
        kind = known["type"]
        value = page["values"].get(known["id"], [] if kind in ("title", "rich_text") else None)
        if kind in ("title", "rich_text"):
            value = [{**piece, "plain_text": piece["text"]["content"]} for piece in value]
        properties[name] = {"id": known["id"], "type": kind, kind: value}
    return {
        "object": "page",
        "id": page["id"],
        "created_time": page["created_time"],
        "in_trash": page["in_trash"],
        "parent": {"type": "data_source_id", "data_source_id": source.id},
        "properties": properties,
    }


def _cut(page: dict[str, Any]) -> dict[str, Any]:
    for value in page["properties"].values():
        if "rich_text" in value:
            value["rich_text"] = value["rich_text"][:CUT_PIECES]
    return page


def _fits(source: Source, page: dict[str, Any], condition: dict[str, Any] | None) -> bool:
    if condition is None:
        return True
    for word, combined in (("and", all), ("or", any)):
        if word in condition:
            _at_most(len(condition[word]), MOST_ROWS, f"filter.{word}.length")
            return combined(_fits(source, page, inner) for inner in condition[word])
    if "created_time" in condition:
        return bool(page["created_time"] >= condition["created_time"]["on_or_after"])
    known = source.properties[_property_name(source, condition["property"])]
    value = page["values"].get(known["id"])
    if "select" in condition:
        return (value or {}).get("name") == condition["select"]["equals"]
    # Notion's own comparison of texts is not the exact one.
    return (
        "".join(piece["text"]["content"] for piece in value or []).casefold()
        == condition["rich_text"]["equals"].casefold()
    )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    notion: FakeNotion

    def __init__(self, *arguments: Any) -> None:
        self.open: set[Any] = set()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        for request in list(self.open):
            super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is nobody's concern."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    disable_nagle_algorithm = True
    server: _Server

    def _handle(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        headers = {name.lower(): value for name, value in self.headers.items()}
        more: dict[str, str] = {}
        try:
            status, answer = 200, self.server.notion.answer(Request(self.command, self.path, body, headers))
        except Refused as refused:
            status, more = refused.status, refused.headers
            answer = {"object": "error", "status": status, "code": refused.code, "message": str(refused)}
        except HangUp:
            self.close_connection = True
            return
        data = json.dumps(answer, ensure_ascii=False).encode()
        self.send_response(status)
        for name, value in more.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    do_GET = do_POST = do_PATCH = _handle  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@contextmanager
def failing(notion: FakeNotion, *, before: Fault | None = None, after: Fault | None = None) -> Iterator[None]:
    """A block in which requests fail."""
    notion.before, notion.after = before, after
    try:
        yield
    finally:
        notion.before = notion.after = None


_shared: list[FakeNotion] = []


def shared() -> FakeNotion:
    """One server for all tests of this process that do not look at requests."""
    if not _shared:
        _shared.append(FakeNotion(keeps_requests=False).__enter__())
    return _shared[0]


def options(notion: FakeNotion, directory: Path) -> dict[str, Any]:
    """The options of a provider with a data source of its own, and with its journal in that directory."""
    return {
        "data_source_id": notion.add_source().id,
        "token": TOKEN,
        "state_path": str(directory / "notion.sqlite3"),
        "base_url": notion.url,
        "requests_per_second": 1_000_000,
    }


class Clock:
    """A clock that stands still until somebody waits."""

    def __init__(self) -> None:
        self.seconds = 1_800_000_000.0
        self.waits: list[float] = []

    def time(self) -> float:
        return self.seconds

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.seconds += seconds
