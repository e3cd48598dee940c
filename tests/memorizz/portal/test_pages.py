"""What the pages show: everything that is stored, as text and never as markup, and links that lead somewhere."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import pytest

from memorizz.portal.reading import STORES
from memorizz.taxonomy import MemoryType
from tests.memorizz.portal import stores
from tests.memorizz.portal.conftest import Start, on
from tests.memorizz.portal.stores import WILD, wild_id
from tests.memorizz.portal.support import EVOLUTION, EXPORT, Page, Portal


def crawl(portal: Portal, *, exports: bool = True) -> dict[str, Page]:
    """Every page that links and forms lead to from the first one."""
    pages: dict[str, Page] = {}
    waiting = ["/"]
    asked, posts = set(), set()
    while waiting:
        address = waiting.pop()
        if address in asked or (not exports and address.startswith("/api/")):
            continue
        asked.add(address)
        answer = portal.ask("GET", address)
        assert answer.status == 200, (address, answer)
        if address.startswith(("/static/", "/api/")):
            continue
        page = pages[address] = Page(address, answer)
        for form in page.forms:
            if form.method == "GET":
                waiting.append(f"{urlsplit(form.action).path}?{urlencode(form.fields)}")
            elif form.method == "POST":
                posts.add(form.action)
        waiting += page.links
    for action in posts:
        answer = portal.ask("PUT", action)
        assert (answer.status, "POST" in answer.headers["allow"]) == (405, True), (action, answer)
    return pages


def test_every_link_and_form_of_every_page_leads_to_a_page(wild: Portal) -> None:
    pages = crawl(wild)
    paths = {urlsplit(address).path for address in pages}
    assert {"/", "/agents", "/memory", "/memory-transfer", EVOLUTION, "/memories", "/connect"} <= paths
    assert {f"/memory/{store.slug}" for store in STORES} <= paths
    for name in WILD:
        for tab in ("", "?tab=memory", "?tab=recall", "?tab=settings"):
            assert f"/agents/{quote(wild_id(name), safe='')}/playground{tab}" in pages
    assert sum(address.startswith("/memory/") and "/record?id=" in address for address in pages) > 13 * len(WILD)
    assert not any(stores.SECRET in page.source for page in pages.values())


def test_every_link_of_a_memory_of_the_reference_program_leads_to_a_page(reference: Portal) -> None:
    pages = crawl(reference)
    assert "/agents/agent-keel/playground" in pages
    assert "/memory/workflow-memory/record?id=wf-gale" in pages
    assert sum("/record?id=" in address for address in pages) > 50


@pytest.mark.parametrize("name", WILD)
def test_a_record_is_shown_as_it_is_in_every_store(wild: Portal, name: str) -> None:
    text = WILD[name]
    for store in STORES:
        page = wild.page(f"/memory/{store.slug}/record?id={quote(wild_id(name), safe='')}")
        shown = [data for opened, data in page.texts if opened[-1:] == ("div",)]
        assert text in shown, (store, shown)
        assert "".join(page.within("h1")) == " ".join(text.split())[:200]
        assert f"field {text[:200]}" in [data for opened, data in page.texts if opened[-1:] == ("dt",)]
        listed = wild.page(f"/memory/{store.slug}?{urlencode({'q': wild_id(name)})}")
        assert " ".join(text.split())[:200] in [data for opened, data in listed.texts if opened[-1:] == ("a",)]


@pytest.mark.parametrize("name", WILD)
def test_an_agent_of_any_name_has_a_playground(wild: Portal, name: str) -> None:
    address = f"/agents/{quote(wild_id(name), safe='')}/playground"
    page = wild.page(address)
    assert "".join(page.within("h1")) == WILD[name]
    export = next(link for link in page.links if link.startswith("/memory-transfer?agent_id="))
    chosen = wild.page(export)
    assert wild_id(name) in chosen.options["agent_id"]
    found = wild.page(f"{address}?{urlencode({'tab': 'recall', 'q': 'addresses word one nul'})}")
    assert found.forms[-1].fields[-1] == ("q", "addresses word one nul")


@pytest.mark.parametrize("name", WILD)
def test_what_was_asked_for_is_shown_as_text(wild: Portal, name: str) -> None:
    text = WILD[name][:300]
    given = urlencode({"q": text})
    for path in ("/memory/personas", "/memories", f"/agents/{quote(wild_id('emoji'))}/playground"):
        page = wild.page(f"{path}?{given}&tab=recall" if path.startswith("/agents") else f"{path}?{given}")
        assert ("q", text.strip()) in [field for form in page.forms for field in form.fields], path
    for asked in (
        f"/memory/{quote(text, safe='')}",
        f"/memory/personas/record?id={quote(text)}",
        f"/agents/{quote(text, safe='')}/playground",
        f"/agents/{quote(wild_id('emoji'))}/playground?tab={quote(text)}",
        f"/{quote(text)}",
    ):
        assert wild.refused(asked, 404), asked
    for asked in (f"{EVOLUTION}?memory_type={quote(text)}", f"{EVOLUTION}?action={quote(text)}"):
        assert wild.refused(asked, 400), asked
    filtered = wild.page(f"{EVOLUTION}?{urlencode({'actor': text, 'memory_id': text, 'run_id': text})}")
    assert ("actor", text.strip()) in filtered.forms[0].fields
    chosen = wild.page(f"/memory-transfer?{urlencode({'agent_id': text, 'memory_id': text})}")
    assert text.strip() in chosen.options["agent_id"]


def test_fields_of_any_kind_are_shown(wild: Portal) -> None:
    for store in STORES:
        for number in range(len(stores.CONTENTS)):
            wild.page(f"/memory/{store.slug}/record?id=odd+{number}")
    vector = wild.page(f"/memory/personas/record?id=odd+{len(stores.CONTENTS) - 1}").text
    assert "a vector of 20 numbers" in vector
    assert str(10**30) in wild.page("/memory/personas/record?id=odd+3").text


def test_an_agent_is_found_by_its_own_id_and_by_that_of_its_record(wild: Portal) -> None:
    for id in ("natural 1", "odd 1"):
        page = wild.page(f"/agents/{quote(id)}/playground")
        assert "/memory-transfer?agent_id=natural%201" in page.links
    assert "/agents/odd%201/playground" in wild.page("/memory/agents/record?id=odd+1").links


def test_a_torn_history_is_shown_all_the_same(wild: Portal) -> None:
    page = wild.page(EVOLUTION)
    for name, text in WILD.items():
        assert any(f"“{text}”" in data for _, data in page.texts), name
    assert page.source.count("<li class=") == len(stores.JOURNAL) + len(WILD)


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_at_the_end_of_the_calendar_breaks_no_page(start: Start, file: Path, time: str) -> None:
    with stores.sqlite(file) as provider:
        provider.put(MemoryType.SHARED_MEMORY, [stores.entry("a", {"timestamp": time})])
    start(*on(file)).page(EVOLUTION)


def test_a_folder_that_holds_what_no_page_can_show_breaks_none(start: Start, tmp_path: Path) -> None:
    place = tmp_path / "folder"
    with stores.folder(place) as provider:
        provider.put(MemoryType.PERSONAS, [("p", {"name": "SURROGATE"})])
        provider.put(MemoryType.MEMAGENT, [("a", {"name": "SURROGATE", "agent_id": "a"})])
        torn = {"label": "\ud800", "actor": "\udfff", "record_id": "\udc00", "memory_id": "\ud800"}
        provider.put(MemoryType.SHARED_MEMORY, [stores.entry(f"e{number}", torn) for number in range(60)])
    for file in (place / "personas" / "p.json", place / "agents" / "a.json"):
        file.write_text(file.read_text().replace("SURROGATE", r"half \ud83d of it"))
    (place / "personas" / "torn.json").write_text('{"name": "<b>torn')
    portal = start(*on(place))
    assert "half ? of it" in portal.page("/memory/personas/record?id=p").text
    home = portal.page("/")
    assert "Needs a look" in home.text
    assert "personas torn" in home.text
    crawl(portal, exports=False)
    assert "lone surrogate U+D83D" in portal.refused(EXPORT)


def test_credentials_are_named_and_not_shown(wild: Portal) -> None:
    agent = quote(wild_id("emoji"), safe="")
    for address, name in (
        (f"/agents/{agent}/playground?tab=settings", "agents.llm_config.api_key"),
        (f"/memory/agents/record?id={agent}", "agents.llm_config.api_key"),
        (f"/memory/tool-log/record?id={agent}", "tool_log.password"),
        (f"/memory/knowledge-base/record?id={agent}", "knowledge_base.note.token"),
    ):
        page = wild.page(address)
        assert "Credentials are not shown" in page.text
        assert name in page.text
        assert stores.SECRET not in page.source


@pytest.fixture(scope="module")
def numbered(start_shared: Start, place: Path) -> Portal:
    return start_shared(*on(stores.numbered(place / "numbered.sqlite3", 120)))


def facts(page: Page) -> list[str]:
    return [data for opened, data in page.texts if opened[-1:] == ("a",) and data.startswith("Fact ")]


def test_an_explorer_shows_fifty_records_a_page(numbered: Portal) -> None:
    pages = [numbered.page(f"/memory/knowledge-base?page={number}") for number in (1, 2, 3)]
    assert [len(facts(page)) for page in pages] == [50, 50, 20]
    assert len({fact for page in pages for fact in facts(page)}) == 120
    assert facts(numbered.page("/memory/knowledge-base")) == facts(pages[0])
    assert [page.text.count("120 records") for page in pages] == [1, 1, 1]
    assert "101 to 120" in pages[2].text
    assert "Page 2 of 3" in pages[1].text
    for page, neighbours in zip(pages, (["?page=2"], ["?page=1", "?page=3"], ["?page=2"]), strict=True):
        assert [link for link in page.links if "page=" in link] == [f"/memory/knowledge-base{n}" for n in neighbours]


def test_a_search_finds_records_with_all_of_its_words_in_any_case(numbered: Portal) -> None:
    page = numbered.page("/memory/knowledge-base?q=STERNBOARD++harbor&page=2")
    assert facts(page) == [f"Fact {number:03} of the harbor" for number in range(100, 120, 2)]
    assert "/memory/knowledge-base?page=1&q=STERNBOARD%20%20harbor" in page.links
    assert facts(numbered.page("/memory/knowledge-base?q=fact+007")) == ["Fact 007 of the harbor"]
    assert "Nothing here holds all of these words" in numbered.page("/memory/knowledge-base?q=fact+reef").text
    assert len(facts(numbered.page("/memory/knowledge-base?q=+"))) == 50


@pytest.mark.parametrize(
    ("page", "status"),
    [
        *(("0", 400), ("-1", 400), ("abc", 400), ("1.0", 400), ("%C2%B2", 400), ("1000001", 400), ("9" * 30, 400)),
        *(("9" * 5000, 400), ("000000000001" + "0" * 5000, 400), ("4", 404), ("99", 404), ("1000000", 404)),
    ],
)
def test_a_page_that_is_not_there_is_refused(numbered: Portal, page: str, status: int) -> None:
    said = numbered.refused(f"/memory/knowledge-base?page={page}", status)
    assert said.startswith("page ")
    assert len(said) < 200


def test_an_empty_page_number_is_the_first(numbered: Portal) -> None:
    assert len(facts(numbered.page("/memory/knowledge-base?page="))) == 50


@pytest.mark.parametrize("id", ["", "nothing", "%00", "..%2Fagents%2Fa", "a" * 5000, "%F0%9F%91%A9" * 300, "%ff", "."])
def test_a_record_that_is_not_there_is_refused(wild: Portal, reference: Portal, id: str) -> None:
    for portal in (wild, reference):
        assert "has no record" in portal.refused(f"/memory/personas/record?id={id}", 404)
    assert "has no record" in wild.refused("/memory/personas/record", 404)


def test_home_counts_what_is_there(numbered: Portal, reference: Portal) -> None:
    assert "120 records in sqlite" in numbered.page("/").text
    assert "There are no agents in this memory." in numbered.page("/").text
    assert "There are no agents in this memory." in numbered.page("/agents").text
    home = reference.page("/")
    assert "in filesystem" in home.text
    assert "/agents/agent-keel/playground" in home.links


def test_an_empty_memory_has_pages_too(start: Start, file: Path) -> None:
    portal = start(*on(file))
    assert "Nothing is stored here yet." in portal.page("/").text
    assert "No change is recorded." in portal.page(EVOLUTION).text
    assert "Nothing is stored here yet." in portal.page("/memory/tool-log").text
    crawl(portal)


def test_recall_ranks_records_by_the_words_they_share_with_the_question(start: Start, file: Path) -> None:
    said = {
        "best": "The harbor opens at six. The harbor master says when.",
        "good": "A harbor is a place for ships.",
        "long": "A harbor, " + "and much more of what is about something else, " * 40,
        "none": "Gulls sleep on piers.",
    }
    with stores.sqlite(file) as provider:
        provider.put(MemoryType.MEMAGENT, [("keel", {"agent_id": "keel", "name": "Harbor harbor opens when"})])
        provider.put(
            MemoryType.KNOWLEDGE_BASE,
            [(id, {"agent_id": "keel", "content": content, "embedding": [6.0] * 30}) for id, content in said.items()],
        )
        provider.put(MemoryType.KNOWLEDGE_BASE, [("other", {"agent_id": "plover", "content": "When harbor opens"})])
    portal = start(*on(file))
    page = portal.page("/agents/keel/playground?tab=recall&q=When+does+the+HARBOR+open")
    ids = [link.rpartition("=")[2] for link in page.links if "/record?id=" in link]
    assert ids[:2] == ["best", "good"]
    assert set(ids) == {"best", "good", "long"}
    scores = [float(text.split()[1]) for _, text in page.texts if text.startswith("score ")]
    assert scores == sorted(scores, reverse=True)
    assert "No record of this agent shares a word" in portal.page("/agents/keel/playground?tab=recall&q=6.0").text
    assert portal.refused("/agents/keel/playground?tab=chat", 404)
    assert portal.refused("/agents/plover/playground", 404)


@pytest.fixture(scope="module")
def history(start_shared: Start, place: Path) -> Portal:
    return start_shared(*on(stores.changed(place / "history.sqlite3", 60)))


def changes(page: Page) -> list[str]:
    """The ids of the changed records, newest first."""
    return [data for opened, data in page.texts if opened[-1:] == ("code",) and "li" in opened]


def test_the_history_is_paged_without_gap_or_repetition(history: Portal) -> None:
    page = history.page(EVOLUTION)
    assert len(changes(page)) == 50
    found, seen = changes(page), 1
    while further := [link for link in page.links if "cursor=" in link]:
        page = history.page(further[0])
        found += changes(page)
        seen += 1
    assert seen == 2
    assert len(found) == 2 + 60 + 12
    assert "Secret title 59" in history.page(EVOLUTION).text
    assert "Secret still" not in history.page(EVOLUTION).source


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ({"agent_id": "keel"}, 1 + 30 + 6),
        ({"memory_id": "ns-plover"}, 36),
        ({"run_id": "run-5"}, 2),
        ({"actor": "actor-ana"}, 36),
        ({"action": "updated"}, 12),
        ({"action": "updated", "actor": "actor-ben"}, 6),
        ({"memory_type": "agents"}, 2),
        ({"memory_type": "long_term_memory", "action": "deleted"}, 0),
        ({"actor": "nobody"}, 0),
    ],
)
def test_the_history_can_be_filtered(history: Portal, filters: dict[str, str], count: int) -> None:
    page = history.page(f"{EVOLUTION}?{urlencode(filters)}")
    assert len(changes(page)) == count
    assert ("No change fits these filters." in page.text) == (count == 0)
    assert EVOLUTION in page.links


@pytest.mark.parametrize("cursor", ["x", "@", "1@", "@a", "1.5@a", "--1@a", "9" * 21 + "@a", "%00@%00", "x" * 5000])
def test_a_cursor_that_no_page_gave_is_refused(history: Portal, cursor: str) -> None:
    assert "cursor must be one" in history.refused(f"{EVOLUTION}?cursor={cursor}")


@pytest.mark.parametrize("cursor", ["1@x", "9" * 20 + "@x", "-" + "9" * 20 + "@%F0%9F%91%A9"])
def test_a_cursor_of_elsewhere_is_one(history: Portal, cursor: str) -> None:
    history.page(f"{EVOLUTION}?cursor={cursor}")


def test_unknown_kinds_of_changes_are_refused(history: Portal) -> None:
    assert "expected one of personas" in history.refused(f"{EVOLUTION}?memory_type=dreams")
    assert "created, updated, deleted" in history.refused(f"{EVOLUTION}?action=Created")


def test_a_search_finds_no_credential_that_is_not_shown(start: Start, file: Path) -> None:
    with stores.sqlite(file) as provider:
        provider.put(
            MemoryType.KNOWLEDGE_BASE, [("k", {"content": "tides", "api_key": "sk-hidden-value", "agent_id": "a"})]
        )
        provider.store_memagent({"agent_id": "a", "name": "Keel", "llm_config": {"api_key": "sk-hidden-value"}})
    portal = start(*on(file))
    for path in ("/memory/knowledge-base", "/memory/agents"):
        assert "Nothing here holds all of these words" in portal.page(f"{path}?q=sk-hidden").text
    assert "shares a word" in portal.page("/agents/a/playground?tab=recall&q=sk-hidden-value").text
    assert "k" in portal.page("/memory/knowledge-base?q=tides").text
