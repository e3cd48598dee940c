"""`memorizz notion`, and the other commands over a data source of Notion."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.memorizz.cli.conftest import Run
from tests.memorizz.support import DATA
from tests.support.notion import TOKEN, FakeNotion, Refused, failing

PARENT = "11111111-2222-3333-4444-555555555555"


@pytest.fixture
def notion() -> Iterator[FakeNotion]:
    with FakeNotion(pages_to_share={PARENT}) as notion:
        yield notion


@pytest.fixture
def notion_run(run: Run, environment: dict[str, str], notion: FakeNotion) -> Run:
    """Runs `memorizz` with a token, and without waiting."""
    environment.update(
        NOTION_TOKEN=TOKEN,
        MEMORIZZ_NOTION_BASE_URL=notion.url,
        MEMORIZZ_NOTION_REQUESTS_PER_SECOND="1000000",
    )

    def command(*arguments: Any, **more: Any) -> Any:
        done = run(*arguments, **more)
        assert TOKEN not in done.stdout + done.stderr
        return done

    return command


def test_from_a_page_to_a_restored_memory(notion_run: Run, notion: FakeNotion, tmp_path: Path) -> None:
    made = json.loads(notion_run("notion", "init", "--parent-page-id", PARENT).stdout)
    assert made.keys() == {"root_page_id", "database_id", "data_source_id", "url"}
    connected = json.loads(notion_run("notion", "connect", "--data-source-id", made["data_source_id"]).stdout)
    settings = tmp_path / "home" / ".memorizz" / ".env"
    assert connected == {
        "backend": "notion", "data_source_id": made["data_source_id"], "remembered_in": str(settings),
    }  # fmt: skip
    assert TOKEN not in settings.read_text()
    assert notion_run("connect").stdout.startswith(f"notion at {made['data_source_id']}")
    archive = DATA / "agent_plain.memorizz.json"
    assert notion_run("memory", "import", archive, "--apply").returncode == 0
    status = json.loads(notion_run("notion", "status").stdout)
    assert (status["tracked_records"], status["pending"]) == (25, 21)
    synced = json.loads(notion_run("notion", "sync", "--memory-type", "knowledge_base").stdout)
    assert (synced["refreshed"], synced["memory_types"]) == (
        status["tracked_by_memory_type"]["knowledge_base"],
        ["knowledge_base"],
    )
    repaired = notion_run("notion", "repair")
    assert (repaired.returncode, json.loads(repaired.stdout)["pending"]) == (0, 0)
    assert notion_run("memory", "export", "out.memorizz.json").returncode == 0
    assert json.loads((tmp_path / "out.memorizz.json").read_text())["manifest"]["source_provider"] == "NotionProvider"


def test_status_asks_notion_nothing_and_makes_no_journal(run: Run, notion: FakeNotion, tmp_path: Path) -> None:
    id = notion.add_source().id
    done = run("notion", "status", "--data-source-id", id)
    status = json.loads(done.stdout)
    assert (status["data_source_id"], status["tracked_records"], status["counts"]) == (id, 0, {})
    assert done.stdout.startswith('{\n  "data_source_id"')
    assert notion.requests == [] and not (tmp_path / "home").exists()


def test_repair_says_by_its_exit_code_that_something_is_left(notion_run: Run, notion: FakeNotion) -> None:
    source = notion.add_source()
    chosen = ("--data-source-id", source.id)
    assert notion_run("notion", "connect", *chosen).returncode == 0
    assert notion_run("memory", "import", DATA / "types_kb_conv.memorizz.json", "--apply").returncode == 0
    (page, *_) = source.pages.values()
    content = source.properties["Content"]["id"]
    source.pages["2" * 36] = {**page, "id": "2" * 36, "values": {**page["values"], content: []}}
    repaired = notion_run("notion", "repair")
    assert (repaired.returncode, json.loads(repaired.stdout)["unresolved"]) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("repair",), "needs --data-source-id or MEMORIZZ_NOTION_DATA_SOURCE_ID"),
        (("status", "--data-source-id", "tides"), "must be the UUID of a Notion data source"),
        (("sync", "--data-source-id", PARENT), "there is no Notion data source"),
        (("sync", "--data-source-id", PARENT, "--memory-type", "tides"), "unknown memory type 'tides'"),
        (("init", "--parent-page-id", "elsewhere"), "Is it shared with the integration"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_2(
    notion_run: Run, arguments: tuple[str, ...], message: str
) -> None:
    done = notion_run("notion", *arguments)
    assert done.stdout == "" and message in done.stderr
    assert done.returncode == 2


def test_without_a_token_nothing_is_asked(run: Run, notion: FakeNotion) -> None:
    done = run("notion", "repair", "--data-source-id", notion.add_source().id, NOTION_TOKEN="")
    assert (done.returncode, done.stdout) == (2, "")
    assert "in the variable NOTION_TOKEN" in done.stderr and notion.requests == []


def test_a_busy_notion_is_waited_for_and_an_absent_one_is_named(notion_run: Run, notion: FakeNotion) -> None:
    source = notion.add_source()
    limits = iter([Refused(429, "rate_limited", "Slow down.", Retry_After="0")] * 3)
    with failing(notion, before=lambda _: next(limits, None)):
        assert notion_run("notion", "connect", "--data-source-id", source.id).returncode == 0
    forever = Refused(429, "rate_limited", "Slow down.", Retry_After="0")
    with failing(notion, before=lambda _: forever):
        done = notion_run("notion", "repair", "--data-source-id", source.id)
    assert (done.returncode, done.stdout) == (1, "")
    assert "answered 429 rate_limited to GET" in done.stderr
