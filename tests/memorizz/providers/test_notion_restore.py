"""Exporting from Notion and restoring into it: in how many requests, and what a failure on the way leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from memorizz import (
    FileSystemConfig,
    FileSystemProvider,
    MemoryArchive,
    MemoryArchiveError,
    MemoryHistory,
    MemoryType,
    NotionConfig,
    NotionProvider,
    SQLiteConfig,
    SQLiteProvider,
)
from tests.memorizz.support import VALID, archive
from tests.memorizz.transfer.test_import import agent, fact, small, stored
from tests.memorizz.transfer.test_property import comparable
from tests.support.notion import Clock, FakeNotion, HangUp, Refused, Request, failing, options, shared

Open: TypeAlias = Callable[..., NotionProvider]

DELEGATES = ("agent-keel", "agent-plover")
QUERY = "POST data_sources/*/query"
CREATE = "POST pages"
CHANGE = "PATCH pages/*"


@pytest.fixture
def notion() -> Iterator[FakeNotion]:
    with FakeNotion() as notion:
        yield notion


@pytest.fixture
def provider(notion: FakeNotion, tmp_path: Path) -> Iterator[NotionProvider]:
    with NotionProvider(NotionConfig(**options(notion, tmp_path)), Clock()) as provider:
        notion.log()
        yield provider


def restored(provider: Any, made: dict[str, Any], **more: Any) -> dict[str, Any]:
    return MemoryArchive(provider).import_archive(made, dry_run=False, **more)


def kept_by_a_file(name: str, directory: Path) -> dict[str, Any]:
    """What a SQLite file holds that the same archive was restored into."""
    with SQLiteProvider(SQLiteConfig(directory / "expected.sqlite3")) as provider:
        assert restored(provider, archive(name))["ok"]
        return stored(provider)


@pytest.mark.parametrize("name", [path.name.removesuffix(".memorizz.json") for path in VALID])
def test_an_archive_goes_through_a_folder_notion_and_a_file_and_stays_the_same(tmp_path: Path, name: str) -> None:
    with (
        FileSystemProvider(FileSystemConfig(tmp_path / "folder")) as folder,
        NotionProvider(NotionConfig(**options(shared(), tmp_path))) as notion,
        SQLiteProvider(SQLiteConfig(tmp_path / "file.sqlite3")) as file,
    ):
        for provider in (folder, notion, file):
            # Delegates that these archives refer to without holding them.
            provider.put(MemoryType.MEMAGENT, [(id, agent(id, automations_enabled=False)) for id in DELEGATES])
        made = archive(name)
        for source, target in ((None, folder), (folder, notion), (notion, file)):
            if source is not None:
                made = MemoryArchive(source).export(include_embeddings=True)
            assert restored(target, made, conflict="replace")["ok"]
        assert stored(file) == stored(notion) == stored(folder)
        assert comparable(MemoryArchive(file).export()) == comparable(MemoryArchive(folder).export())
        assert notion.problems() == []


def test_a_restore_of_25_records_needs_27_requests_and_an_export_one(
    provider: NotionProvider, notion: FakeNotion
) -> None:
    made = archive("agent_plain")
    assert MemoryArchive(provider).import_archive(made)["ok"]
    assert notion.log() == [QUERY]
    assert restored(provider, made)["imported"] == 25
    assert notion.log() == [QUERY, QUERY, *[CREATE] * 25]
    assert MemoryArchive(provider).export()["manifest"]["record_count"] == 25
    assert notion.log() == [QUERY]
    assert restored(provider, made, conflict="skip")["skipped"] == 25
    assert notion.log() == [QUERY]
    assert restored(provider, made, conflict="replace")["imported"] == 25
    assert notion.log() == [QUERY, *[CHANGE] * 25]
    assert restored(provider, made, id_strategy="new")["imported"] == 25
    assert notion.log() == [QUERY, QUERY, *[CREATE] * 25]


def test_restored_records_can_be_read_at_once_and_are_pending_until_repair(
    provider: NotionProvider, notion: FakeNotion
) -> None:
    assert restored(provider, archive("agent_plain"))["ok"]
    assert provider.retrieve_memagent("agent-keel") is not None
    status = provider.index_status()
    assert (status["tracked_records"], status["pending"], status["unresolved"]) == (25, 21, 0)
    notion.log()
    report = provider.repair_index()
    assert (report["repaired"], report["pending"]) == (21, 0)
    assert notion.log() == ["GET data_sources/*", QUERY]


def test_what_no_page_can_hold_is_found_by_the_preview(provider: NotionProvider, notion: FakeNotion) -> None:
    made = small(knowledge_base=[fact("a"), fact("b", content="x" * 200_000), fact("c\0")])
    for dry_run in (True, False):
        with pytest.raises(
            MemoryArchiveError, match=r"'b': Content would have more.*'c\\x00': the id must hold no control"
        ):
            MemoryArchive(provider).import_archive(made, dry_run=dry_run)
    assert not any(request.writes for request in notion.requests)


def test_reading_only_previews_and_exports(provider: NotionProvider, notion: FakeNotion) -> None:
    restored(provider, archive("agent_plain"))
    notion.log()
    with NotionProvider(provider.config._replace(read_only=True), Clock()) as reader:
        report = MemoryArchive(reader).import_archive(archive("agent_plain"), conflict="skip")
        assert (report["ok"], report["skipped"]) == (False, 25)
        assert "opened for reading only" in report["warnings"][-1]
        assert MemoryArchive(reader).export()["manifest"]["record_count"] == 25
    assert not any(request.writes for request in notion.requests)


class Dying:
    """Takes so many writes; those after that are lost, or done without an answer, until it is alive again."""

    def __init__(self, writes: int) -> None:
        self.left = writes

    def fault(self, request: Request) -> HangUp | None:
        if request.writes:
            self.left -= 1
        return HangUp() if self.left < 0 else None


@pytest.mark.parametrize("writes", [0, 1, 7, 24])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_restore_that_notion_left_in_the_middle_goes_on_with_conflict_skip(
    provider: NotionProvider, notion: FakeNotion, tmp_path: Path, writes: int, when: str
) -> None:
    made = archive("agent_plain")
    with failing(notion, **{when: Dying(writes).fault}):
        report = restored(provider, made)
    assert report["ok"] is False
    # Notion is away: what was written cannot be taken back, and that is said.
    assert report["imported"] >= writes
    assert report["errors"][0]["error_type"] in ("ProviderFault", "NotionUnsure")
    left = sum(provider.count(store) for store in MemoryType)
    assert left == writes + (when == "after")
    assert provider.index_status()["unresolved"] == 1
    again = restored(provider, made, conflict="skip")
    assert (again["ok"], again["skipped"], again["imported"]) == (True, left, 25 - left)
    assert stored(provider) == kept_by_a_file("agent_plain", tmp_path)
    assert provider.repair_index()["unresolved"] == 0
    assert provider.problems() == []
    assert sum(len(source.pages) for source in notion.sources.values()) == 25


def test_a_restore_that_fails_while_notion_is_there_is_taken_back(provider: NotionProvider, notion: FakeNotion) -> None:
    provider.put(MemoryType.PERSONAS, [("kept", {"persona_id": "kept"})])
    before = stored(provider)

    def fault(request: Request) -> HangUp | None:
        return HangUp() if request.path.endswith("/pages") and b"agent-keel" in repr(request.body).encode() else None

    with failing(notion, before=fault):
        report = restored(provider, archive("agent_plain"))
    assert (report["ok"], report["imported"]) == (False, 0)
    assert report["warnings"][-1].startswith("nothing of the import is kept")
    assert stored(provider) == before
    assert provider.repair_index()["unresolved"] == 0


def test_a_busy_notion_only_makes_a_restore_slower(
    provider: NotionProvider, notion: FakeNotion, tmp_path: Path
) -> None:
    count = iter(range(10_000))

    def sometimes(_: Request) -> Refused | None:
        number = next(count)
        if number % 3 == 0:
            return Refused(429, "rate_limited", "Slow down.", Retry_After="2")
        return Refused(502, "bad_gateway", "") if number % 7 == 0 else None

    with failing(notion, before=sometimes):
        assert restored(provider, archive("agent_coordinator"))["imported"] == 52
    assert stored(provider) == kept_by_a_file("agent_coordinator", tmp_path)
    assert sum(len(source.pages) for source in notion.sources.values()) == 52


def test_history_is_kept_of_a_restore_into_notion(provider: NotionProvider) -> None:
    MemoryHistory(provider, record_changes=True)
    assert restored(provider, small(knowledge_base=[fact("a"), fact("b")]))["ok"]
    journal = [row for row in provider.scan(MemoryType.SHARED_MEMORY) if row["record_type"] == "memory_history_change"]
    assert len(journal) == 2
