"""The typed memory in the portal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

import agent_memory
from tests.memorizz.portal import stores
from tests.memorizz.portal.conftest import Start, on
from tests.memorizz.portal.stores import WILD
from tests.memorizz.portal.support import Page, Portal
from tests.support.ollama import NOBODY, FakeOllama


@pytest.fixture
def typed(tmp_path: Path) -> Path:
    return stores.typed(tmp_path / "typed.db")


@pytest.fixture
def portal(start: Start, file: Path, typed: Path) -> Iterator[Portal]:
    portal = start(*on(file), "--memory-db", typed)
    yield portal
    assert not any("ERROR" in line for line in portal.stderr), portal.stderr


@pytest.fixture(scope="module")
def seen(start_shared: Start, place: Path) -> Portal:
    """A portal for tests that change nothing."""
    with stores.sqlite(place / "empty.sqlite3"):
        pass
    return start_shared(*on(place / "empty.sqlite3"), "--memory-db", stores.typed(place / "seen.db"))


def listed(page: Page) -> list[int]:
    """The ids of the memories on a page."""
    return [int(found[1]) for link in page.links if (found := re.fullmatch(r"/memories/(\d+)", link))]


def kept(typed: Path, id: int) -> agent_memory.Memory:
    with agent_memory.open(typed, ollama_url=NOBODY) as memory:
        found = memory.get(id)
        assert found is not None
        return found


def test_memories_are_listed_newest_first_and_searched_by_words(seen: Portal) -> None:
    page = seen.page("/memories")
    assert listed(page) == [4, 3, 2, 1]
    assert "4 typed memories" in page.text
    assert "search mode" not in page.text
    found = seen.page("/memories?q=tide+tables")
    assert sorted(listed(found)) == [1, 2]
    assert "search mode keyword (no local embedder answered: by words only)" in found.text
    assert "No memory fits." in seen.page("/memories?q=volcano").text
    assert "typed memories" in seen.page("/").text


def test_a_search_with_a_local_embedder_is_by_words_and_meaning(start: Start, file: Path, typed: Path) -> None:
    with FakeOllama() as ollama:
        portal = start(*on(file), "--memory-db", typed, AGENT_MEMORY_OLLAMA_URL=ollama.url)
        assert "search mode hybrid (words and meaning)" in portal.page("/memories?q=tide").text


@pytest.mark.parametrize(
    "query", ["(", '"', "a AND", "*", "NEAR(", "-", "{{ 1 }}", "\0", "tide OR", "content:tide", "é😀"]
)
def test_no_text_is_a_wrong_search(seen: Portal, query: str) -> None:
    page = seen.page(f"/memories?{urlencode({'q': query})}")
    assert ("q", query) in page.forms[-2].fields or ("q", query) in page.forms[0].fields


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("type=DECISION", [2, 1]),
        ("type=TODO", [3]),
        ("type=", [4, 3, 2, 1]),
        ("tag=storage", [1]),
        ("tag=stor", []),
        ("scope=harbor", [2]),
        ("type=DECISION&scope=harbor&q=tide", [2]),
        ("type=PATTERN", []),
        ("limit=2", [4, 3]),
        ("limit=200", [4, 3, 2, 1]),
    ],
)
def test_memories_can_be_filtered(seen: Portal, query: str, ids: list[int]) -> None:
    assert listed(seen.page(f"/memories?{query}")) == ids


@pytest.mark.parametrize("limit", ["0", "201", "-1", "abc", "1.5", "9" * 30, "000000000001" + "0" * 5000])
def test_a_limit_out_of_bounds_is_refused(seen: Portal, limit: str) -> None:
    assert "limit must be a whole number from 1 to 200" in seen.refused(f"/memories?limit={limit}")


def test_more_than_a_page_of_memories_leads_to_up_to_200(start: Start, file: Path, tmp_path: Path) -> None:
    with agent_memory.open(tmp_path / "many.db", ollama_url=NOBODY) as memory:
        for number in range(60):
            memory.store(f"Fact {number}", "TODO", tags=["a b"])
    portal = start(*on(file), "--memory-db", tmp_path / "many.db")
    page = portal.page("/memories?tag=a+b&type=TODO&q=fact")
    assert len(listed(page)) == 50
    (more,) = [link for link in page.links if "limit=" in link]
    assert more == "/memories?limit=200&q=fact&type=TODO&tag=a%20b"
    assert len(listed(portal.page(more))) == 60


def test_unknown_types_are_refused(seen: Portal) -> None:
    for query in ("type=decision", "type=decision&q=x", "type=%3Cb%3E"):
        assert "invalid memory type" in seen.refused(f"/memories?{query}")


def test_a_memory_is_shown_as_it_is(seen: Portal) -> None:
    page = seen.page("/memories/4")
    content = f"{WILD['markup']}{WILD['template']}"
    assert content in [text for opened, text in page.texts if opened[-1:] == ("div",)]
    assert [text.removeprefix("\n") for opened, text in page.texts if opened[-1:] == ("textarea",)] == [content]
    assert WILD["quotes"] in page.text
    assert ("scope", WILD["markup"]) in [field for form in page.forms for field in form.fields]


def test_a_memory_is_stored_and_its_page_says_so(portal: Portal, typed: Path) -> None:
    form = next(form for form in portal.page("/memories").forms if form.action == "/memories/new")
    assert form.method == "POST"
    given = {"content": " Ebb at nine.\r\nFlood at three. ", "type": "TODO", "tags": " tide, ,ebb,", "scope": " reef "}
    target = portal.done("/memories/new", given)
    assert target == "/memories/5?done=stored"
    assert "Stored." in portal.page(target).text
    memory = kept(typed, 5)
    assert memory.content == "Ebb at nine.\nFlood at three."
    assert (memory.type, memory.tags, memory.scope, memory.source) == ("TODO", ("tide", "ebb"), "reef", "portal")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "content must be a non-empty string"),
        ({"type": "TODO"}, "content must be a non-empty string"),
        ({"type": "TODO", "content": " \r\n\t "}, "content must be a non-empty string"),
        ({"type": "TODO", "content": "\u200b"}, "content must be a non-empty string"),
        ({"content": "x"}, "invalid memory type ''"),
        ({"content": "x", "type": "todo"}, "invalid memory type 'todo'"),
    ],
)
def test_what_cannot_be_kept_is_refused(seen: Portal, fields: dict[str, str], message: str) -> None:
    assert message in seen.not_done("/memories/new", fields)
    assert "4 typed memories" in seen.page("/memories").text


def test_a_form_that_is_none_is_refused(seen: Portal) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for body in (b"content=\xff&type=TODO", b"content=%ff&type=TODO", b"content=%ED%A0%80&type=TODO", b"a=1&" * 300):
        answer = seen.ask("POST", "/memories/new", body, form)
        assert answer.status == 400
    assert seen.submit("/memories/new", {"content": "x" * (1 << 20), "type": "TODO"}).status == 413


def test_an_untouched_form_changes_nothing(portal: Portal, typed: Path) -> None:
    before = kept(typed, 3)
    page = portal.page("/memories/3")
    form = next(form for form in page.forms if form.action == "/memories/3")
    (content,) = [text for opened, text in page.texts if opened[-1:] == ("textarea",)]
    # As a browser sends it: without the line break that opens the area, each other one as two characters.
    sent = content.removeprefix("\n").replace("\n", "\r\n")
    assert portal.done("/memories/3", {**dict(form.fields), "content": sent}) == "/memories/3?done=saved"
    after = kept(typed, 3)
    assert (after.content, after.tags, after.scope) == (before.content, before.tags, before.scope)


def test_a_memory_is_changed_in_place(portal: Portal, typed: Path) -> None:
    target = portal.done("/memories/2", {"content": "Changed", "tags": "a,b", "scope": ""})
    assert "Saved." in portal.page(target).text
    memory = kept(typed, 2)
    assert (memory.content, memory.tags, memory.scope, memory.type) == ("Changed", ("a", "b"), None, "DECISION")
    assert portal.not_done("/memories/2", {"content": " "})
    assert kept(typed, 2).content == "Changed"


def test_links_are_made_and_removed_from_both_ends(portal: Portal) -> None:
    for kind, label in (("relates_to", "relates_to"), ("supersedes", "superseded_by"), ("caused_by", "caused")):
        for here, there in ((3, 4), (4, 3)):
            target = portal.done(f"/memories/{here}/link", {"to_id": f" {there} ", "kind": kind})
            assert target == f"/memories/{here}?done=linked"
            seen_by_both = {here: kind, there: label}
            for end in (here, there):
                portal.done(f"/memories/{here}/link", {"to_id": str(there), "kind": kind})
                page = portal.page(f"/memories/{end}")
                form = next(form for form in page.forms if form.action == f"/memories/{end}/unlink")
                assert dict(form.fields) == {"to_id": str(here + there - end), "kind": seen_by_both[end]}
                target = portal.done(form.action, dict(form.fields))
                assert "Unlinked." in portal.page(target).text
                assert "This memory is linked to no other." in portal.page(f"/memories/{here}").text


def test_a_link_that_cannot_be_is_refused(seen: Portal) -> None:
    assert seen.not_done("/memories/1/link", {"to_id": "99", "kind": "supersedes"}, 404) == "there is no memory 99"
    assert seen.not_done("/memories/99/link", {"to_id": "1", "kind": "supersedes"}, 404) == "there is no memory 99"
    assert "must differ" in seen.not_done("/memories/1/link", {"to_id": "1", "kind": "supersedes"})
    assert "kind must be one of" in seen.not_done("/memories/1/link", {"to_id": "2", "kind": "superseded_by"})
    assert "kind must be one of" in seen.not_done("/memories/1/link", {"to_id": "2"})
    for to_id in ("", "x", "-1", "1.0", "²", "9" * 19, "1 2"):
        said = seen.not_done("/memories/1/link", {"to_id": to_id, "kind": "supersedes"})
        assert "a memory's id is a whole number" in said


def test_a_link_that_is_not_there_cannot_be_removed(seen: Portal) -> None:
    for path, fields in (
        ("/memories/1/unlink", {"to_id": "2", "kind": "relates_to"}),
        ("/memories/1/unlink", {"to_id": "2", "kind": "superseded_by"}),
        ("/memories/1/unlink", {"to_id": "99", "kind": "supersedes"}),
        ("/memories/99/unlink", {"to_id": "1", "kind": "supersedes"}),
    ):
        assert "no such link" in seen.not_done(path, fields, 404)
    assert "kind must be one of" in seen.not_done("/memories/1/unlink", {"to_id": "2", "kind": "x"})
    assert seen.not_done("/memories/1/unlink", {"to_id": "x", "kind": "supersedes"})
    assert "superseded_by" in seen.page("/memories/2").text


def test_a_memory_is_forgotten_only_once_that_is_confirmed(portal: Portal) -> None:
    for fields in ({}, {"confirmed": ""}, {"confirmed": "false"}, {"confirmed": "on"}):
        assert "confirm" in portal.not_done("/memories/1/forget", fields)
    portal.page("/memories/1")
    target = portal.done("/memories/1/forget", {"confirmed": "true"})
    assert "Memory 1 was forgotten." in portal.page(target).text
    assert portal.refused("/memories/1", 404) == "there is no memory 1"
    assert portal.not_done("/memories/1/forget", {"confirmed": "true"}, 404) == "there is no memory 1"
    assert "This memory is linked to no other." in portal.page("/memories/2").text


@pytest.mark.parametrize("id", ["new", "abc", "-1", "1.0", "%C2%B2", "9" * 19, "%00", "1%0A", "+1", "0x1", "%D9%A1"])
def test_an_id_that_is_no_number_is_refused(seen: Portal, id: str) -> None:
    assert "a memory's id is a whole number" in seen.refused(f"/memories/{id}")
    for action in ("link", "unlink", "forget"):
        fields = {"confirmed": "true", "to_id": "1", "kind": "supersedes"}
        assert "a memory's id" in seen.not_done(f"/memories/{id}/{action}", fields)


@pytest.mark.parametrize("id", ["0", "99", "9" * 18])
def test_a_memory_that_is_not_there_is_404(seen: Portal, id: str) -> None:
    assert seen.refused(f"/memories/{id}", 404) == f"there is no memory {id}"
    assert seen.not_done(f"/memories/{id}", {"content": "x"}, 404) == f"there is no memory {id}"


def test_a_page_says_only_of_itself_what_was_done(seen: Portal) -> None:
    for path in ("/memories", "/memories/1"):
        page = seen.page(f"{path}?done=Your+token+has+expired%3A+call+us")
        assert "expired" not in page.text
    assert "Saved." in seen.page("/memories/1?done=saved").text


def test_without_a_file_there_are_no_memories(reference: Portal) -> None:
    assert "/memories" not in reference.page("/").links
    for path in ("/memories", "/memories/1", "/memories?q=x"):
        assert "--memory-db FILE" in reference.refused(path, 404)
    fields = {"content": "x", "type": "TODO", "to_id": "2", "kind": "supersedes", "confirmed": "true"}
    for path in ("/memories/new", "/memories/1", "/memories/1/link", "/memories/1/unlink", "/memories/1/forget"):
        assert "--memory-db FILE" in reference.not_done(path, fields, 404)


def test_a_read_only_portal_shows_memories_and_changes_none(start: Start, file: Path, typed: Path) -> None:
    portal = start(*on(file), "--memory-db", typed, "--read-only")
    for path in ("/memories", "/memories?q=tide", "/memories/1"):
        assert not any(form.method == "POST" for form in portal.page(path).forms)
    fields = {"content": "x", "type": "TODO", "to_id": "2", "kind": "supersedes", "confirmed": "true"}
    for path in ("/memories/new", "/memories/1", "/memories/1/link", "/memories/1/unlink", "/memories/1/forget"):
        assert portal.not_done(path, fields, 403) == "this portal is read-only"
    assert listed(portal.page("/memories")) == [4, 3, 2, 1]
    assert "superseded_by" in portal.page("/memories/2").text
