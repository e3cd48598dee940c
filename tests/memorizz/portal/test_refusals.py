"""Whatever is asked: an answer, never a failure, and one sentence where it is a refusal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorizz.portal.application import ADDRESSES, Address
from tests.memorizz.portal import stores
from tests.memorizz.portal.conftest import Start, on
from tests.memorizz.portal.support import EXPORT, FORM, IMPORT, JSON, Portal, address_of, sentence
from tests.memorizz.support import archive

TEXT = st.text(st.characters(codec="utf-8"), max_size=40)
WORDS = st.sampled_from(
    [
        *("", "0", "1", "-1", "2", "99", "true", "false", "True", "9" * 20, "agent-keel", "odd 1", "natural 1", "p"),
        *("personas", "knowledge-base", "knowledge_base", "supersedes", "TODO", "recall", "settings", "created", "new"),
        *("sqlite", "filesystem", "/", ".", "..", "/proc/self/mem", "1@x", "skip", "preserve", "\0", "%", "%ff", "😀"),
        *stores.WILD.values(),
    ]
)
VALUE = st.one_of(WORDS, TEXT)
NAMES = st.sampled_from(
    [
        *("q", "page", "id", "tab", "limit", "type", "tag", "scope", "done", "cursor", "next", "agent_id", "memory_id"),
        *("memory_types", "include_delegates", "include_history", "memory_type", "action", "actor", "run_id"),
        *("access_token", "backend", "path", "read_only", "content", "tags", "to_id", "kind", "confirmed", "conflict"),
        *("dry_run", "id_strategy", "target_memory_id", "x", ""),
    ]
)
FIELDS = st.lists(st.tuples(NAMES, VALUE), max_size=5)
BYTES = st.one_of(
    st.binary(max_size=60), st.lists(st.sampled_from([b"%", b"&", b"=", b"+", b"\xff", b"a"])).map(b"".join)
)
JSONS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(
                st.sampled_from(
                    ["archive", "format", "version", "stores", "manifest", "dry_run", "conflict", "id_map"]
                ),
                TEXT,
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)
# What makes something new, where a random path would lead anywhere, stays out: boxes are made by a ticked box only.
GETS = [address for address in ADDRESSES if address.get]
POSTS = [address for address in ADDRESSES if address.post and address.path != IMPORT]


@pytest.fixture(scope="module")
def asked(start_shared: Start, place: Path) -> Iterator[Portal]:
    typed = stores.typed(place / "asked.db")
    portal = start_shared(*on(stores.wild(place / "asked.sqlite3")), "--memory-db", typed)
    yield portal
    assert portal.page("/")


def path_of(address: Address, value: str) -> str:
    return address_of(address.path, **dict.fromkeys(("slug", "agent", "id"), quote(value, safe="")))


def expect_an_answer(portal: Portal, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> None:
    answer = portal.ask(method, path, body, headers)
    assert answer.status in (200, 302, 303, 400, 401, 404, 405, 409, 413, 415), (method, path, answer)
    if answer.status == 401:
        assert path.startswith("/login")
    elif answer.status >= 400:
        said = sentence(path, answer)
        assert "Errno" not in said
        assert len(said) < 1000


@settings(max_examples=250)
@given(st.sampled_from(GETS), VALUE, FIELDS)
def test_no_question_fails(asked: Portal, address: Address, value: str, fields: list[tuple[str, str]]) -> None:
    path = f"{path_of(address, value)}?{urlencode(fields)}"
    expect_an_answer(asked, "GET", path, None, {})


@settings(max_examples=100)
@given(st.sampled_from([*GETS, *POSTS]), BYTES, st.sampled_from(["GET", "POST", "PUT"]))
def test_no_bytes_in_an_address_or_a_body_fail(asked: Portal, address: Address, raw: bytes, method: str) -> None:
    encoded = quote(raw, safe="%&=+")
    path = address_of(address.path, **dict.fromkeys(("slug", "agent", "id"), quote(raw, safe="")))
    expect_an_answer(asked, method, f"{path}?{encoded}", raw if method == "POST" else None, FORM)


@settings(max_examples=150)
@given(st.sampled_from(POSTS), VALUE, FIELDS)
def test_no_form_fails(asked: Portal, address: Address, value: str, fields: list[tuple[str, str]]) -> None:
    if address.path == "/connect":
        fields = [(name, value) for name, value in fields if name != "path"]
    expect_an_answer(asked, "POST", path_of(address, value), urlencode(fields).encode(), FORM)


@settings(max_examples=100)
@given(JSONS, FIELDS)
def test_no_json_fails(asked: Portal, body: Any, fields: list[tuple[str, str]]) -> None:
    query = urlencode([field for field in fields if field[0] != "dry_run"])
    expect_an_answer(asked, "POST", f"{IMPORT}?{query}", json.dumps(body).encode(), JSON)


@settings(max_examples=100)
@given(
    st.sampled_from(["agent_plain", "user_ana", "types_kb_conv"]),
    st.lists(
        st.one_of(st.integers(0, 60), st.sampled_from(["data", "id", "manifest", "stores", "agents"])), max_size=6
    ),
    JSONS,
)
def test_no_torn_archive_fails(asked: Portal, name: str, where: list[int | str], value: Any) -> None:
    given = archive(name)
    holder: Any = given
    for step in where:
        inner = list(holder) if isinstance(holder, dict) else range(len(holder))
        if not inner:
            break
        key = step if step in inner else inner[step % len(inner) if isinstance(step, int) else 0]
        if not isinstance(holder[key], dict | list):
            break
        holder = holder[key]
    if isinstance(holder, dict) and holder:
        holder[next(iter(holder))] = value
    elif holder:
        holder[0] = value
    expect_an_answer(asked, "POST", IMPORT, json.dumps({"archive": given}).encode(), JSON)


@settings(max_examples=60)
@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30))
def test_no_path_fails(asked: Portal, path: str) -> None:
    cleaned = path.replace("#", "").replace("?", "")
    expect_an_answer(asked, "GET", f"/{cleaned}", None, {})


@settings(max_examples=60)
@given(st.sampled_from([*GETS, *POSTS]), st.dictionaries(st.sampled_from(
    ["Cookie", "Authorization", "Range", "Accept", "Accept-Encoding", "If-None-Match", "Transfer", "X-Forwarded-Host"]
), st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=30)))  # fmt: skip
def test_no_header_fails(asked: Portal, address: Address, headers: dict[str, str]) -> None:
    method = "GET" if address.get else "POST"
    encoded = {name: value.strip().encode("latin-1") for name, value in headers.items()}
    answer = asked.apart(method, path_of(address, "1"), b"", {**FORM, **encoded})  # type: ignore[dict-item]
    assert answer.status < 500


def test_the_export_stays_what_it_was(asked: Portal) -> None:
    assert asked.ask("GET", EXPORT).status == 200
