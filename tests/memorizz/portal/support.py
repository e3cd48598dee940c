"""A started portal, and its pages as a browser reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from html.parser import HTMLParser
from typing import Any, NamedTuple
from urllib.parse import urlencode, urljoin, urlsplit

from memorizz.portal.application import ADDRESSES
from tests.memorizz.served import GraphServer
from tests.support.ollama import NOBODY
from tests.support.rest import Answer, exchange

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}
EXPORT = "/api/memory-transfer/export"
IMPORT = "/api/memory-transfer/import"
EVOLUTION = "/traces/memory-evolution"

_VOID = {"link", "meta", "input", "rect", "br", "hr", "img"}
_TAGS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "link",
        "script",
        "body",
        "header",
        "main",
        "footer",
        "nav",
        "section",
        "details",
    ),
    *(
        "summary",
        "h1",
        "h2",
        "h3",
        "h4",
        "p",
        "div",
        "span",
        "a",
        "strong",
        "code",
        "pre",
        "time",
        "progress",
        "noscript",
    ),
    *("ul", "ol", "li", "dl", "dt", "dd", "table", "caption", "thead", "tbody", "tr", "th", "td", "svg", "rect"),
    *("form", "fieldset", "legend", "label", "input", "select", "option", "textarea", "button"),
}
_SAFETY = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


class Form(NamedTuple):
    """A form: its method, its action and the fields that it would send untouched."""

    method: str
    action: str
    fields: list[tuple[str, str]]


class Page(HTMLParser):
    """A page, which has to be made of nothing but known elements, each closed, and no code of its own."""

    def __init__(self, path: str, answer: Answer) -> None:
        super().__init__(convert_charrefs=True)
        self.path = path
        self.status = answer.status
        self.links: list[str] = []
        self.forms: list[Form] = []
        self.options: dict[str, list[str]] = {}
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self._open: list[str] = []
        self._select = ""
        assert answer.headers["content-type"] == "text/html; charset=utf-8", (path, answer)
        self.source = answer.body.decode()
        self.feed(self.source)
        self.close()
        assert self._open == [], (path, self._open)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert tag in _TAGS, (self.path, tag)
        assert len(given) == len(attrs), (self.path, attrs)
        assert not any(name.startswith("on") or name == "style" for name in given), (self.path, attrs)
        assert tag != "script" or given["src"], self.path
        for name in ("href", "src"):
            value = given.get(name)
            if value is not None and not value.startswith("#"):
                self.links.append(urljoin(self.path, value))
        if tag == "form":
            action = urljoin(self.path, given.get("action") or urlsplit(self.path).path)
            self.forms.append(Form((given.get("method") or "dialog").upper(), action, []))
        elif tag == "input" and given.get("name") and given.get("type") not in ("checkbox", "file"):
            self.forms[-1].fields.append((given["name"] or "", given.get("value") or ""))
        elif tag == "input" and given.get("name") and "checked" in given:
            self.forms[-1].fields.append((given["name"] or "", given.get("value") or "on"))
        elif tag == "select":
            self._select = given.get("name") or ""
        elif tag == "option":
            self.options.setdefault(self._select, []).append(given.get("value") or "")
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in _VOID, (self.path, tag)
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open[-1] == tag, (self.path, tag, self._open)
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self._open), data))

    def within(self, tag: str) -> list[str]:
        """The text of each piece inside elements of that kind."""
        return ["".join(text for opened, text in self.texts if tag in opened)]

    @property
    def text(self) -> str:
        """Everything there is to read."""
        return "".join(text for _, text in self.texts)

    @property
    def problem(self) -> str:
        """The sentence that says what is wrong."""
        start = self.source.index('class="problem"')
        found = self.source[self.source.index(">", start) + 1 : self.source.index("</p>", start)]
        assert found, self.source
        return _unescaped(found)

    def title(self) -> str:
        """The title of the window."""
        return "".join(self.within("title"))


class Portal(GraphServer):
    """`memorizz ui` with arguments, on a free port of this machine. It may never fail without a plan."""

    def __init__(self, *arguments: Any, **variables: str) -> None:
        super().__init__("ui", *map(str, arguments), **{"AGENT_MEMORY_OLLAMA_URL": NOBODY, **variables})

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request; whatever answers it, the headers that keep browsers safe are there."""
        answer = self.apart(method, path, body, headers or {})
        assert answer.status < 500, (method, path, answer)
        for name, value in _SAFETY.items():
            assert answer.headers.get(name) == value, (method, path, answer)
        if not path.startswith("/static/"):
            assert answer.headers["cache-control"] == "no-store", (method, path, answer)
        assert "server" not in answer.headers
        return answer

    def page(self, path: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Page:
        """A page, which has to have that status."""
        answer = self.ask("GET", path, None, headers)
        assert answer.status == status, (path, answer)
        return Page(path, answer)

    def refused(self, path: str, status: int = 400, headers: Mapping[str, str] | None = None) -> str:
        """Why a GET is refused: one sentence, on a page or as JSON."""
        return sentence(path, self.ask("GET", path, None, headers), status)

    def submit(
        self,
        path: str,
        fields: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """A form, posted."""
        pairs = list(fields.items()) if isinstance(fields, Mapping) else list(fields)
        return self.ask("POST", path, urlencode(pairs).encode(), {**FORM, **(headers or {})})

    def done(self, path: str, fields: Mapping[str, str], headers: Mapping[str, str] | None = None) -> str:
        """Where a posted form leads to, which has to have worked."""
        answer = self.submit(path, fields, headers)
        assert answer.status == 303, (path, answer)
        return answer.headers["location"]

    def not_done(self, path: str, fields: Mapping[str, str], status: int = 400) -> str:
        """Why a posted form is refused."""
        return sentence(path, self.submit(path, fields), status)

    def restore(self, archive: Any, query: str = "", headers: Mapping[str, str] | None = None) -> Answer:
        """The answer to an import; ``archive`` is bytes as they are, or a value to be written as JSON."""
        body = archive if isinstance(archive, bytes) else json.dumps(archive, ensure_ascii=False).encode()
        return self.ask("POST", IMPORT + (query and f"?{query}"), body, {**JSON, **(headers or {})})

    def not_restored(self, archive: Any, query: str = "", status: int = 400) -> str:
        """Why an import is refused."""
        return sentence(IMPORT, self.restore(archive, query), status)

    def apart(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Answer:
        """A request on a connection of its own: the server ends those that are idle for a while."""
        connection = self.connect()
        try:
            return exchange(connection, method, path, body, headers, raw=True)
        finally:
            connection.close()

    def close(self) -> int:
        code = super().close()
        assert not any("Traceback" in line for line in self.stderr), self.stderr
        return code


def sentence(path: str, answer: Answer, status: int | None = None) -> str:
    """What a refusal says: JSON with ``detail`` below /api/, a page elsewhere."""
    assert 400 <= answer.status < 500, (path, answer)
    assert status is None or answer.status == status, (path, answer)
    if path.startswith("/api/"):
        assert list(answer.json) == ["detail"], (path, answer)
        said: str = answer.json["detail"]
    else:
        said = Page(path, answer).problem
    assert said.strip(), (path, answer)
    assert "Traceback" not in said
    return said


def address_of(path: str, **values: str) -> str:
    """An address with its parts filled in."""
    assert any(path == address.path for address in ADDRESSES)
    for name, value in values.items():
        path = path.replace(f"{{{name}:text}}", value).replace(f"{{{name}}}", value)
    return path


def _unescaped(text: str) -> str:
    parser = _Text(convert_charrefs=True)
    parser.feed(text)
    parser.close()
    return parser.found


class _Text(HTMLParser):
    found = ""

    def handle_data(self, data: str) -> None:
        self.found += data
