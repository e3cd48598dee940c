"""Downloading and restoring memories in the portal, as the contract tells it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from memorizz import SQLiteConfig, SQLiteProvider
from memorizz.memory_archive import MemoryArchive, archive_json, read_archive, seal_archive, validate_archive
from tests.memorizz.browser.conftest import Open, Portal
from tests.memorizz.support import DATA, archive

KEEL = DATA / "agent_coordinator.memorizz.json"


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """The path of a memory that is not there yet."""
    return tmp_path / "empty.sqlite3"


def choose(page: Page, file: Path = KEEL) -> None:
    page.get_by_label("Archive file").set_input_files(file)


def preview(page: Page, file: Path = KEEL) -> None:
    choose(page, file)
    page.get_by_role("button", name="Preview import").click()
    expect(page.locator("#report")).to_be_visible()


def apply_button(page: Page) -> Any:
    return page.get_by_role("button", name="Import reviewed archive")


def downloaded(page: Page, button: str) -> Any:
    with page.expect_download() as waiting:
        page.get_by_role("button", name=button).click()
    return waiting.value


@pytest.mark.parametrize(
    ("start", "link"),
    [
        ("/", "Export & import"),
        ("/memory", "Export & import"),
        ("/memory/conversations", "Export & import memory"),
        ("/memory/skillbox", "Export & import memory"),
        ("/traces/memory-evolution", "Export & import memory"),
        ("/agents/agent-keel/playground", "Export & import memory"),
    ],
)
def test_the_page_is_reached_from_where_memories_are_seen(
    portal: Portal, open_page: Open, start: str, link: str
) -> None:
    server, page = portal(), open_page()
    page.goto(server.url + start)
    page.get_by_role("main" if "memory" in link else "navigation").get_by_role("link", name=link, exact=True).click()
    expect(page.get_by_role("heading", name="Export & import memory")).to_be_visible()
    expect(page).to_have_url(
        f"{server.url}/memory-transfer" + ("?agent_id=agent-keel" if "playground" in start else "")
    )


def test_the_playground_chooses_its_agent(portal: Portal, open_page: Open) -> None:
    page = open_page()
    page.goto(f"{portal().url}/agents/agent-keel/playground")
    page.get_by_role("link", name="Export & import memory").click()
    expect(page.get_by_label("Agent", exact=True)).to_have_value("agent-keel")


def test_an_agent_with_some_types_is_downloaded(portal: Portal, open_page: Open, tmp_path: Path) -> None:
    page = open_page()
    page.goto(f"{portal().url}/memory-transfer")
    page.get_by_label("Agent", exact=True).select_option("agent-keel")
    page.get_by_role("button", name="none").click()
    page.get_by_label("Knowledge base").check()
    page.get_by_label("Agents", exact=True).check()
    page.get_by_label("Delegates and their private memories").uncheck()
    download = downloaded(page, "Download archive")
    assert download.suggested_filename.endswith(".memorizz.json")
    download.save_as(tmp_path / "a.memorizz.json")
    made = read_archive(tmp_path / "a.memorizz.json")
    assert [row["id"] for row in made["stores"]["agents"]] == ["agent-keel"]
    assert made["manifest"]["includes"] == {"delegates": False, "history": True, "context": True, "embeddings": False}
    assert {store for store, rows in made["stores"].items() if rows} == {"agents", "knowledge_base"}
    expect(page.locator("#export-status")).to_have_text(f"Downloaded {made['manifest']['record_count']} records.")


def test_a_download_without_any_type_says_what_to_do(portal: Portal, open_page: Open) -> None:
    page = open_page()
    page.goto(f"{portal().url}/memory-transfer")
    page.get_by_role("button", name="none").click()
    page.get_by_role("button", name="Download archive").click()
    expect(page.locator("#export-status")).to_have_text("Choose at least one memory type.")


def test_an_archive_is_previewed_reviewed_and_imported(portal: Portal, open_page: Open, empty: Path) -> None:
    page = open_page()
    page.goto(f"{portal(store=empty).url}/memory-transfer")
    expect(apply_button(page)).to_be_disabled()
    preview(page)
    expect(page.get_by_role("heading", name="Preview: nothing was written")).to_be_visible()
    expect(page.locator("#planned")).to_have_text("52")
    expect(page.locator("#imported")).to_have_text("0")
    expect(page.get_by_role("row", name="conversation_memory")).to_be_visible()
    expect(page.locator("#warning-list li").first).to_be_visible()
    with SQLiteProvider(SQLiteConfig(path=empty, read_only=True)) as provider:
        assert list(provider.list_memagents()) == []
    apply_button(page).click()
    expect(page.get_by_role("heading", name="Result", exact=True)).to_be_visible()
    expect(page.locator("#imported")).to_have_text("52")
    expect(page.locator("#import-status")).to_have_text("Imported 52 records.")
    expect(apply_button(page)).to_be_disabled()
    with SQLiteProvider(SQLiteConfig(path=empty, read_only=True)) as provider:
        stored = MemoryArchive(provider).export()["manifest"]["record_count"]
    assert stored == 52


@pytest.mark.parametrize("change", ["Record identities", "Existing records", "Target namespace", "file"])
def test_a_change_of_file_or_options_invalidates_the_preview(
    portal: Portal, open_page: Open, empty: Path, change: str
) -> None:
    page = open_page()
    page.goto(f"{portal(store=empty).url}/memory-transfer")
    preview(page)
    expect(apply_button(page)).to_be_enabled()
    if change == "file":
        choose(page, DATA / "anonymous.memorizz.json")
    elif change == "Target namespace":
        page.get_by_label(change).fill("x")
    else:
        page.get_by_label(change).select_option(index=1)
    expect(apply_button(page)).to_be_disabled()
    expect(page.locator("#report")).to_be_hidden()
    expect(page.locator("#import-status")).to_have_text("The file or an option changed: preview again.")


def test_existing_records_stop_are_skipped_or_replaced(portal: Portal, open_page: Open) -> None:
    page = open_page()
    page.goto(f"{portal().url}/memory-transfer")
    preview(page)
    expect(page.locator("#conflicts")).to_have_text("52")
    expect(page.locator("#conflict-list li").first).to_contain_text("personas")
    expect(page.locator("#conflict-list li").last).to_have_text("and 2 more; the report has them all")
    expect(page.locator("#import-status")).to_contain_text("choose Skip, Replace or New IDs")
    expect(apply_button(page)).to_be_disabled()
    page.get_by_label("Existing records").select_option("skip")
    page.get_by_role("button", name="Preview import").click()
    expect(page.locator("#skipped")).to_have_text("52")
    expect(page.locator("#import-status")).to_have_text("There is nothing to import.")
    page.get_by_label("Existing records").select_option("replace")
    page.get_by_role("button", name="Preview import").click()
    expect(page.locator("#planned")).to_have_text("52")
    apply_button(page).click()
    expect(page.locator("#import-status")).to_have_text("Imported 52 records.")


def test_a_copy_gets_new_ids_and_its_map_can_be_kept(portal: Portal, open_page: Open, tmp_path: Path) -> None:
    page = open_page()
    page.goto(f"{portal().url}/memory-transfer")
    page.get_by_label("Record identities").select_option("new")
    preview(page)
    expect(page.get_by_role("button", name="Download ID map (illustrative)")).to_be_enabled()
    apply_button(page).click()
    expect(page.locator("#import-status")).to_have_text("Imported 52 records.")
    downloaded(page, "Download ID map").save_as(tmp_path / "ids.json")
    ids = json.loads((tmp_path / "ids.json").read_text())
    downloaded(page, "Download report").save_as(tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text())["id_map"] == ids
    page.goto(f"{page.url.partition('/memory-transfer')[0]}/agents/{ids['agent-keel']}/playground")
    expect(page.get_by_role("heading", name="Keel")).to_be_visible()


def test_a_project_goes_into_another_namespace(portal: Portal, open_page: Open, empty: Path) -> None:
    page = open_page()
    page.goto(f"{portal(store=empty).url}/memory-transfer")
    page.get_by_label("Target namespace").fill("new-home")
    preview(page, DATA / "project_ns_plover.memorizz.json")
    apply_button(page).click()
    expect(page.locator("#import-status")).to_contain_text("Imported")
    with SQLiteProvider(SQLiteConfig(path=empty, read_only=True)) as provider:
        assert MemoryArchive(provider).export(memory_id="new-home")["manifest"]["record_count"] > 0


def test_numbers_travel_as_the_command_line_reads_them(
    portal: Portal, open_page: Open, empty: Path, tmp_path: Path
) -> None:
    given = archive("types_kb_conv")
    numbers = {"large": 2**63 + 1, "whole": 1.0, "tiny": 5e-324, "negative": -0.0}
    given["stores"]["knowledge_base"][0]["data"]["metadata"] = numbers
    file = tmp_path / "numbers.memorizz.json"
    file.write_text(archive_json(seal_archive(given)))
    page = open_page()
    page.goto(f"{portal(store=empty).url}/memory-transfer")
    preview(page, file)
    apply_button(page).click()
    expect(page.locator("#import-status")).to_contain_text("Imported")
    with SQLiteProvider(SQLiteConfig(path=empty, read_only=True)) as provider:
        made = MemoryArchive(provider).export()
    validate_archive(made)
    found = [row["data"].get("metadata") for row in made["stores"]["knowledge_base"]]
    assert json.dumps(numbers) in map(json.dumps, found)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not valid JSON: "),
        (b"[]", "the file is no archive"),
        (b'{"format": "other"}', "format must be"),
        (KEEL.read_bytes().replace(b"Keel", b"Kiel"), "digest"),
    ],
)
def test_a_file_that_is_no_sound_archive_is_refused_in_words(
    portal: Portal, open_page: Open, empty: Path, tmp_path: Path, content: bytes, message: str
) -> None:
    file = tmp_path / "bad.json"
    file.write_bytes(content)
    page = open_page()
    page.goto(f"{portal(store=empty).url}/memory-transfer")
    choose(page, file)
    page.get_by_role("button", name="Preview import").click()
    expect(page.locator("#import-status")).to_contain_text(message)
    expect(apply_button(page)).to_be_disabled()


def test_a_read_only_portal_exports_and_previews(portal: Portal, open_page: Open) -> None:
    page = open_page()
    page.goto(f"{portal('--read-only').url}/memory-transfer")
    expect(page.get_by_text("This memory can only be read")).to_be_visible()
    downloaded(page, "Download archive")
    page.get_by_label("Record identities").select_option("new")
    preview(page)
    expect(page.locator("#planned")).to_have_text("52")
    expect(apply_button(page)).to_be_disabled()


def test_a_server_that_is_gone_is_said_in_words(portal: Portal, open_page: Open) -> None:
    server, page = portal(), open_page()
    page.goto(f"{server.url}/memory-transfer")
    server.close()
    choose(page)
    page.get_by_role("button", name="Preview import").click()
    expect(page.locator("#import-status")).to_have_text("The server did not answer. Is it still running?")
    page.get_by_role("button", name="Download archive").click()
    expect(page.locator("#export-status")).to_have_text("The server did not answer. Is it still running?")
