"""What people see: every page in both themes and at two widths, without serious findings for accessibility."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from memorizz import SQLiteConfig, SQLiteProvider
from tests.memorizz.browser.conftest import Open, Portal
from tests.memorizz.support import DATA

PAGES = {
    "home": "/",
    "memory types": "/memory",
    "an explorer": "/memory/knowledge-base",
    "a search without results": "/memory/personas?q=nothing-like-it",
    "a record": "/memory/entity/record?id=ent-gauge",
    "agents": "/agents",
    "a playground": "/agents/agent-keel/playground",
    "recall": "/agents/agent-keel/playground?tab=recall&q=high water",
    "settings of an agent": "/agents/agent-keel/playground?tab=settings",
    "memory evolution": "/traces/memory-evolution",
    "export and import": "/memory-transfer",
    "memories": "/memories",
    "a memory": "/memories/1",
    "connection": "/connect",
    "a page that is not there": "/nowhere",
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_every_page_is_accessible_and_fits(
    portal: Portal, open_page: Open, typed: Path, scheme: str, width: int
) -> None:
    server, page = portal("--memory-db", str(typed)), open_page(width=width, scheme=scheme)
    for name, path in PAGES.items():
        page.goto(server.url + path)
        check(page, name)
    page.goto(f"{server.url}/memory-transfer")
    page.get_by_label("Archive file").set_input_files(DATA / "agent_coordinator.memorizz.json")
    page.get_by_role("button", name="Preview import").click()
    expect(page.locator("#report")).to_be_visible()
    check(page, "a report")


def check(page: Page, name: str) -> None:
    found = Axe().run(page).response["violations"]
    assert [(one["id"], one["impact"], one["nodes"][0]["html"]) for one in found] == [], name
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, f"{name} is wider than the window"


def test_the_login_page_is_accessible_and_remembers(portal: Portal, open_page: Open) -> None:
    token = "a-token-of-the-test"
    server, page = portal(MEMORIZZ_UI_AUTH_TOKEN=token), open_page(width=400)
    page.goto(f"{server.url}/memory/summaries")
    expect(page).to_have_url(f"{server.url}/login?next=/memory/summaries")
    check(page, "login")
    page.get_by_label("Access token").fill("nonsense-nonsense")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("This token opens nothing here")
    check(page, "a wrong token")
    page.get_by_label("Access token").fill(token)
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{server.url}/memory/summaries")
    page.get_by_role("button", name="Sign out").click()
    page.goto(server.url)
    expect(page.get_by_label("Access token")).to_be_visible()


def test_the_theme_is_chosen_and_kept(portal: Portal, open_page: Open) -> None:
    page = open_page()
    url = portal().url
    page.goto(url)
    light = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    page.get_by_role("button", name="Colour theme").click()
    page.get_by_role("button", name="Colour theme: light").click()
    expect(page.get_by_role("button", name="Colour theme: dark")).to_be_visible()
    page.goto(f"{url}/memory")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != light


def test_everything_is_reached_by_the_keyboard(portal: Portal, open_page: Open) -> None:
    page = open_page(width=400)
    page.goto(f"{portal().url}/memory-transfer")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.get_by_text("Menu").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Memory evolution")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Home")).to_be_focused()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_values_are_shown_and_never_run(portal: Portal, open_page: Open, tmp_path: Path) -> None:
    hostile = "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\">"
    place = tmp_path / "hostile.sqlite3"
    with SQLiteProvider(SQLiteConfig(path=place)) as provider:
        provider.store({"_id": hostile, "content": hostile, "memory_id": hostile}, "knowledge_base")
        provider.store_memagent({"agent_id": hostile, "name": hostile, "instruction": hostile})
    server, page = portal(store=place), open_page()
    page.goto(f"{server.url}/memory/knowledge-base")
    page.get_by_role("main").get_by_role("link", name=hostile).click()
    expect(page.get_by_role("heading", name=hostile)).to_be_visible()
    for path in ("/", "/agents", "/memory-transfer", "/memory/agents"):
        page.goto(server.url + path)
        expect(page.get_by_role("main")).to_contain_text("<script>")
        assert "run" not in page.title()
    page.goto(f"{server.url}/agents")
    page.get_by_role("main").get_by_role("link", name=hostile).click()
    expect(page.get_by_role("link", name="Recall")).to_be_visible()


def test_a_person_looks_from_an_agent_to_what_a_question_recalls(portal: Portal, open_page: Open) -> None:
    page = open_page()
    page.goto(portal().url)
    page.get_by_role("main").get_by_role("link", name="Keel").click()
    expect(page.get_by_role("heading", name="Conversations")).to_be_visible()
    page.get_by_role("link", name="Recall").click()
    page.get_by_label("Question").fill("When is high water?")
    page.get_by_role("main").get_by_role("button", name="Recall").click()
    first = page.locator("ol.rows li").first
    expect(first).to_contain_text("when is high water")
    page.locator("ol.rows").get_by_role("link", name="High water is at 06:10.").click()
    expect(page.get_by_role("heading", name="High water is at 06:10.")).to_be_visible()
    page.goto(f"{page.url.partition('/memory/')[0]}/agents/agent-keel/playground?tab=settings")
    expect(page.get_by_text("Credentials are not shown")).to_be_visible()
    assert "sk-not-a-real-key" not in page.content()


def test_the_timeline_is_filtered(portal: Portal, open_page: Open) -> None:
    page = open_page()
    page.goto(f"{portal().url}/traces/memory-evolution")
    page.get_by_label("Memory type").select_option(label="Knowledge base")
    page.get_by_label("Action").select_option("updated")
    page.get_by_role("button", name="Filter").click()
    entries = page.locator(".timeline li")
    assert entries.count() > 0
    for entry in entries.all():
        expect(entry).to_contain_text("updated knowledge_base")
    page.get_by_label("Actor").fill("nobody-at-all")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("No change fits these filters.")).to_be_visible()


def test_typed_memories_are_searched_changed_linked_and_forgotten(portal: Portal, open_page: Open, typed: Path) -> None:
    page = open_page()
    page.goto(f"{portal('--memory-db', str(typed)).url}/memories")
    expect(page.get_by_role("img", name="decay score 1.00 of 1")).to_have_count(3)
    page.get_by_label("Search").fill("tide tables")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("search mode keyword")).to_be_visible()
    page.get_by_role("link", name="We keep the tide tables in SQLite.").click()
    expect(page.get_by_role("listitem").filter(has_text="supersedes").filter(has_text="CSV")).to_be_visible()
    page.get_by_label("Content").fill("We keep the tide tables in SQLite, one file.")
    page.get_by_label("Tags").fill("storage, tides")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text("Saved.")
    expect(page.get_by_text("storage, tides")).to_be_visible()
    page.get_by_label("memory number").fill("3")
    page.get_by_role("button", name="Link", exact=True).click()
    expect(page.get_by_role("listitem").filter(has_text="Check the gauge")).to_be_visible()
    page.get_by_role("button", name="Remove the link to memory 3").click()
    expect(page.get_by_role("listitem").filter(has_text="Check the gauge")).to_have_count(0)
    page.get_by_label("Delete memory 1 for good").check()
    page.get_by_role("button", name="Forget").click()
    expect(page.get_by_role("status")).to_have_text("Memory 1 was forgotten.")
    page.get_by_text("Store a memory").click()
    page.get_by_label("Content").fill("The gauge is read at noon.")
    page.get_by_role("button", name="Store").click()
    expect(page.get_by_role("status")).to_have_text("Stored.")


def test_a_portal_without_a_memory_asks_for_one(portal: Portal, open_page: Open, tmp_path: Path) -> None:
    page = open_page()
    page.goto(portal("--no-connect").url)
    expect(page.get_by_text("No memory is connected")).to_be_visible()
    check(page, "no connection")
    page.get_by_label("Backend").select_option("sqlite")
    page.get_by_label("Folder or file").fill(str(tmp_path / "fresh.sqlite3"))
    page.get_by_role("button", name="Connect").click()
    expect(page.get_by_role("alert")).to_contain_text("tick the box to make a new memory there")
    page.get_by_label("Make a new memory if there is none").check()
    page.get_by_role("button", name="Connect").click()
    expect(page.get_by_role("status")).to_have_text("Connected.")
    page.get_by_role("link", name="Home").click()
    expect(page.get_by_text("Nothing is stored here yet.")).to_be_visible()
    check(page, "an empty memory")
