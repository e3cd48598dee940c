"""The page at ``/docs``: the OpenAPI document for people, one file that asks nobody for anything."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from starlette.responses import HTMLResponse, Response

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE: Final = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
code, pre { font: 0.9em/1.5 ui-monospace, monospace }
pre { overflow-x: auto; padding: 0.75rem; border: 1px solid; border-radius: 4px }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.75rem 0.25rem 0; border-bottom: 1px solid #8886 }
caption { text-align: left; font-weight: bold }
section { margin-top: 3rem }
"""
_EXAMPLES: Final[Mapping[str, Any]] = {
    "storeMemory": {"content": "We chose SQLite.", "type": "DECISION", "tags": ["storage"]},
    "searchMemories": {"query": "which database did we choose?", "limit": 10},
    "updateMemory": {"tags": ["storage", "sqlite"], "ttl_secs": None},
    "linkMemories": {"from_id": 57, "to_id": 42, "kind": "supersedes"},
}
_VALUES: Final = {"{id}": "42", "{from_id}": "57", "{to_id}": "42", "{kind}": "supersedes"}


def page(document: Mapping[str, Any]) -> Response:
    """The page that shows ``document``."""
    sections = [
        _section(method.upper(), path, operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]
    title = f"{document['info']['title']} {document['info']['version']}"
    html = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
        f"<h1>{escape(title)}</h1><p>{escape(document['info']['summary'])} "
        'The same for programs: <a href="/openapi.json">openapi.json</a> (OpenAPI 3.1). '
        "There is no authentication: keep this address to yourself.</p>"
        f"<nav><ul>{''.join(link for link, _ in sections)}</ul></nav>{''.join(body for _, body in sections)}"
        "</body></html>"
    )
    return HTMLResponse(html, headers={"Content-Security-Policy": _POLICY})


def _section(method: str, path: str, operation: Mapping[str, Any]) -> tuple[str, str]:
    name = f"{method} {path}"
    anchor = escape(operation["operationId"])
    parameters = [
        (parameter["name"], parameter["in"], parameter["schema"], parameter.get("description", ""))
        for parameter in operation.get("parameters", [])
    ]
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        parameters += [
            (member, "body, required" if member in schema["required"] else "body", rule, rule["description"])
            for member, rule in schema["properties"].items()
        ]
    rows = [(f"<code>{escape(n)}</code>", escape(w), escape(_kind(r)), escape(d)) for n, w, r, d in parameters]
    statuses = [
        (f"<code>{status}</code>", escape(", ".join(answer["content"])), escape(answer["description"]))
        for status, answer in operation["responses"].items()
    ]
    body = (
        f'<section id="{anchor}"><h2><code>{escape(name)}</code></h2><p>{escape(operation["summary"])}</p>'
        + _table("Parameters", ("name", "in", "type", "description"), rows)
        + _table("Answers", ("status", "body", "meaning"), statuses)
        + f"<pre>{escape(_curl(method, path, operation['operationId']))}</pre></section>"
    )
    return f'<li><a href="#{anchor}"><code>{escape(name)}</code></a> {escape(operation["summary"])}</li>', body


def _table(caption: str, header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{cell}</th>' for cell in header)
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def _kind(rule: Mapping[str, Any]) -> str:
    kinds = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
    text = " or ".join(kinds)
    if "enum" in rule:
        text += ": " + ", ".join(str(value) for value in rule["enum"] if value is not None)
    if "maximum" in rule and rule["maximum"] < 2**62:
        text += f", {rule['minimum']} to {rule['maximum']}"
    return text


def _curl(method: str, path: str, operation_id: str) -> str:
    for name, value in _VALUES.items():
        path = path.replace(name, value)
    command = f"curl http://127.0.0.1:7437{path}"
    if method != "GET":
        command = f"curl -X {method} http://127.0.0.1:7437{path}"
    if operation_id in _EXAMPLES:
        example = json.dumps(_EXAMPLES[operation_id])
        command += f" \\\n  -H 'Content-Type: application/json' \\\n  -d '{example}'"
    return command
