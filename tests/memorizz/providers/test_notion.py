"""The Notion provider: what it asks of Notion, and what becomes of what people and accidents do there."""

from __future__ import annotations

import stat
import tempfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorizz import NotionConfig, NotionProvider
from memorizz.errors import ConfigurationError, ProviderFault, ReadOnlyProvider, RecordExists
from memorizz.taxonomy import MemoryType
from tests.support.notion import (
    MOST_ROWS,
    TOKEN,
    Clock,
    FakeNotion,
    HangUp,
    Refused,
    Request,
    Source,
    failing,
    options,
    shared,
)

KB = MemoryType.KNOWLEDGE_BASE
PERSONAS = MemoryType.PERSONAS
QUERY = "POST data_sources/*/query"
CREATE = "POST pages"
GET = "GET pages/*"
CHANGE = "PATCH pages/*"

Open: TypeAlias = Callable[..., NotionProvider]


@pytest.fixture
def notion() -> Iterator[FakeNotion]:
    with FakeNotion() as notion:
        yield notion


@pytest.fixture
def chosen(notion: FakeNotion, tmp_path: Path) -> dict[str, Any]:
    """The options of a provider, whose clock does not wait."""
    return options(notion, tmp_path)


@pytest.fixture
def opened(chosen: dict[str, Any]) -> Iterator[Open]:
    """Opens providers of that data source, and closes them."""
    made = []

    def open_one(**more: Any) -> NotionProvider:
        made.append(NotionProvider(NotionConfig(**{**chosen, **more}), Clock()))
        return made[-1]

    yield open_one
    for provider in made:
        provider.close()


@pytest.fixture
def provider(opened: Open, notion: FakeNotion) -> NotionProvider:
    made = opened()
    notion.log()
    return made


@pytest.fixture
def source(notion: FakeNotion, chosen: dict[str, Any]) -> Source:
    return notion.sources[chosen["data_source_id"]]


def ids(provider: NotionProvider, store: MemoryType = KB) -> list[str]:
    return [record["_id"] for record in provider.scan(store)]


def messages(provider: NotionProvider) -> list[tuple[str, str, str]]:
    return [(problem.store.value, problem.id, problem.message.partition(": ")[2]) for problem in provider.problems()]


def only_page(source: Source) -> dict[str, Any]:
    (page,) = source.pages.values()
    return page


def edit(source: Source, page: dict[str, Any], name: str, text: str) -> None:
    """What a person does who writes into a column."""
    page["values"][source.properties[name]["id"]] = [{"type": "text", "text": {"content": text}}] if text else []


# What is asked of Notion


def test_opening_prepares_an_empty_data_source_once(opened: Open, notion: FakeNotion, source: Source) -> None:
    opened()
    assert notion.log() == ["GET data_sources/*", QUERY, "PATCH data_sources/*", "GET data_sources/*"]
    assert len(source.properties) == 17
    opened()
    assert notion.log() == []


def test_each_method_needs_few_requests(provider: NotionProvider, notion: FakeNotion) -> None:
    provider.put(KB, [("a", {"n": 1})])
    assert notion.log() == [QUERY, CREATE]
    assert provider.get(KB, "a") == {"n": 1, "_id": "a", "id": "a"}
    assert notion.log() == [GET]
    provider.put(KB, [("a", {"n": 2})], replace=True)
    assert notion.log() == [CHANGE]
    assert provider.update_by_id("a", {"n": 3}, KB)
    assert notion.log() == [GET, CHANGE]
    assert provider.get(KB, "b") is None
    assert provider.find(KB, ["a", "b", "c"]) == {"a": "a"}
    assert (ids(provider), provider.count(KB), provider.problems()) == (["a"], 1, [])
    assert notion.log() == [QUERY] * 5
    assert provider.delete(KB, ["a", "b"]) == 1
    assert notion.log() == [QUERY, CHANGE]
    assert provider.index_status()["counts"] == {"deleted": 1}
    assert notion.log() == []


def test_a_block_reads_a_small_data_source_once(provider: NotionProvider, notion: FakeNotion) -> None:
    provider.put(KB, [(f"r{n}", {}) for n in range(10)])
    provider.put(PERSONAS, [("p", {"persona_id": "natural"})])
    notion.log()
    with provider.snapshot():
        for store in MemoryType:
            provider.count(store)
        assert provider.find(PERSONAS, ["natural"]) == {"natural": "p"}
        assert provider.get(KB, "r3") is not None and provider.get(KB, "r99") is None
        assert provider.problems() == []
    assert notion.log() == [QUERY]
    with provider.transaction():
        provider.put(KB, [("a", {}), ("b", {})])
        provider.put(KB, [("b", {"n": 1}), ("r3", {"n": 1})], replace=True)
        provider.delete(KB, ["r4"])
        assert provider.get(KB, "b") == {"n": 1, "_id": "b", "id": "b"}
        assert provider.get(KB, "r4") is None
    assert notion.log() == [QUERY, CREATE, CREATE, CHANGE, CHANGE, CHANGE]


def test_a_block_reads_of_a_large_one_what_it_needs(provider: NotionProvider, notion: FakeNotion) -> None:
    provider.put(KB, [(f"r{n}", {}) for n in range(250)])
    provider.put(PERSONAS, [("p", {})])
    notion.log()
    with provider.snapshot():
        assert len(provider.find(KB, [f"r{n}" for n in range(101)])) == 101
        assert notion.log() == [QUERY] * 3  # a look, and one for each hundred ids
        assert provider.find(KB, ["r7", "r99"]) == {"r7": "r7", "r99": "r99"}
        assert provider.get(KB, "r5") is not None
        assert notion.log() == []
        assert ids(provider, PERSONAS) == ["p"]
        assert notion.log() == [QUERY]
        assert len(provider.problems()) == 0
        assert notion.log() == [QUERY] * 3
        assert provider.count(KB) == 250
        assert notion.log() == []


def test_what_another_program_writes_between_two_blocks_is_seen(opened: Open) -> None:
    one, other = opened(), opened()
    with one.snapshot():
        assert one.count(KB) == 0
        other.put(KB, [("a", {})])
        with pytest.raises(RecordExists):
            one.put(KB, [("a", {})])
        with one.transaction():
            assert ids(one) == ["a"]


def test_no_request_is_bigger_than_notion_takes(provider: NotionProvider, notion: FakeNotion) -> None:
    record = {"content": "x" * 180_000, "rest": "é" * 100_000}
    provider.put(KB, [("big", record), *((f"{'i' * 500}{n}", {}) for n in range(230))])
    with provider.snapshot():
        assert provider.get(KB, "big") == {**record, "_id": "big", "id": "big"}
        assert provider.count(KB) == 231
    assert all(request.body["page_size"] <= MOST_ROWS for request in notion.requests if request.path.endswith("query"))


def test_long_texts_that_an_answer_cuts_are_fetched_whole(
    provider: NotionProvider, notion: FakeNotion, source: Source
) -> None:
    provider.put(KB, [("exact", {"content": "x" * 50_000}), ("long", {"content": "y" * 170_001})])
    notion.log()
    assert [len(record["content"]) for record in provider.scan(KB)] == [50_000, 170_001]
    content = source.properties["Content"]["id"]
    assert notion.log() == [QUERY, *[f"GET pages/*/properties/{content}"] * 2]


@pytest.mark.parametrize("limit", [{}, {"most_results": 150}, {"cursors_end": True}])
def test_more_rows_than_one_query_brings_are_read_in_windows(
    opened: Open, notion: FakeNotion, limit: dict[str, Any]
) -> None:
    notion.step = timedelta(seconds=1)
    for name, value in limit.items():
        setattr(notion, name, value)
    provider = opened(max_query_pages=2)
    expected = [f"r{n}" for n in range(530)]
    provider.put(KB, [(id, {}) for id in expected])
    assert ids(provider) == expected
    with provider.snapshot():
        assert provider.find(KB, expected[::5]) == {id: id for id in expected[::5]}
        assert provider.problems() == []


def test_rows_that_no_window_reaches_are_an_error_and_not_left_out(opened: Open) -> None:
    provider = opened(max_query_pages=2)
    provider.put(KB, [(f"r{n}", {}) for n in range(201)])
    with pytest.raises(
        ProviderFault, match=r"more pages made within one minute \(2026-12-01T12:00.*cannot all be read"
    ):
        ids(provider)


def test_a_record_can_be_read_before_a_query_shows_it(provider: NotionProvider, source: Source) -> None:
    provider.put(KB, [("a", {}), ("b", {})])
    source.unseen = 2
    assert ids(provider) == ["a", "b"]
    assert provider.find(KB, ["a", "b"]) == {"a": "a", "b": "b"}
    with pytest.raises(RecordExists):
        provider.put(KB, [("b", {}), ("c", {})])
    assert provider.delete(KB, ["a"]) == 1
    assert ids(provider) == ["b"]


def test_ids_that_notion_takes_for_the_same_are_two_records(provider: NotionProvider) -> None:
    provider.put(KB, [("Tide", {"n": 1})])
    provider.put(KB, [("tide", {"n": 2})])
    assert provider.find(KB, ["tide", "TIDE"]) == {"tide": "tide"}
    assert provider.delete(KB, ["TIDE"]) == 0
    assert ids(provider) == ["Tide", "tide"]


# What people do in Notion


def test_properties_that_were_renamed_are_known_by_their_id(opened: Open, source: Source, tmp_path: Path) -> None:
    provider = opened()
    provider.put(KB, [("a", {"content": "x"})])
    source.properties = {f"Unser {name}": value for name, value in source.properties.items()}
    assert provider.get(KB, "a") == {"content": "x", "_id": "a", "id": "a"}
    opened().put(KB, [("b", {})])
    assert ids(opened(read_only=True)) == ["a", "b"]
    with pytest.raises(ConfigurationError, match="no property 'Memory type'"):
        opened(read_only=True, state_path=tmp_path / "elsewhere")


def test_a_property_that_was_removed_is_named_and_repair_adds_it_again(
    provider: NotionProvider, source: Source
) -> None:
    provider.put(KB, [("a", {"session_id": "s"}), ("b", {})])
    del source.properties["Session ID"]
    assert ids(provider) == ["b"]
    assert messages(provider) == [
        ("knowledge_base", "a", "its column Session ID was changed in Notion: it says '', its record 's'")
    ]
    with pytest.raises(ProviderFault, match=r"'Session ID' was removed from .* `memorizz notion repair` adds it again"):
        provider.put(KB, [("c", {})])
    provider.repair_index()
    provider.put(KB, [("c", {}), ("a", {"session_id": "s"})], replace=True)
    assert (ids(provider), provider.problems()) == (["a", "b", "c"], [])


def test_pages_that_people_added_are_left_alone_and_named(provider: NotionProvider, source: Source) -> None:
    provider.put(KB, [("a", {})])
    foreign = {**only_page(source), "id": "f" * 36, "values": {"title": [{"text": {"content": "Shopping"}}]}}
    source.pages["f" * 36] = foreign
    assert ids(provider) == ["a"]
    assert messages(provider) == [("knowledge_base", "f" * 36, "was not written by this program")]
    provider.delete_all(KB)
    assert not foreign["in_trash"]


def test_a_copy_of_a_page_is_no_second_record(provider: NotionProvider, source: Source) -> None:
    provider.put(KB, [("a", {"content": "ours"})])
    copy = {**only_page(source), "id": "0" * 36, "created_time": "2020-01-01T00:00:00.000Z"}
    source.pages["0" * 36] = copy = {**copy, "values": dict(copy["values"])}
    edit(source, copy, "Content", "theirs")
    assert [record["content"] for record in provider.scan(KB)] == ["ours"]
    assert messages(provider) == [("knowledge_base", "a", "is a second page of this record")]
    assert provider.delete(KB, ["a"]) == 1
    assert all(page["in_trash"] for page in source.pages.values())


def test_a_changed_scope_makes_a_record_unreadable_until_it_is_replaced(
    provider: NotionProvider, source: Source
) -> None:
    provider.put(KB, [("a", {"user_id": "ana"}), ("b", {"user_id": "ana"})])
    edit(source, next(iter(source.pages.values())), "User ID", "ben")
    assert ids(provider) == ["b"]
    assert provider.count(KB) == 1
    said = "its column User ID was changed in Notion: it says 'ben', its record 'ana'"
    assert messages(provider) == [("knowledge_base", "a", said)]
    with pytest.raises(ProviderFault, match=rf"knowledge_base 'a': Notion page .*: {said}"):
        provider.get(KB, "a")
    with pytest.raises(RecordExists):
        provider.put(KB, [("a", {})])
    provider.put(KB, [("a", {"user_id": "ana"})], replace=True)
    assert (ids(provider), provider.problems()) == (["a", "b"], [])


def test_a_page_moved_to_another_store_is_a_record_of_neither(provider: NotionProvider, source: Source) -> None:
    provider.put(KB, [("a", {})])
    only_page(source)["values"][source.properties["Memory type"]["id"]] = {"name": "personas"}
    assert (ids(provider), ids(provider, PERSONAS)) == ([], [])
    with pytest.raises(ProviderFault, match="its column Memory type was changed"):
        provider.get(KB, "a")
    said = "its column Memory type was changed in Notion: it says 'personas', its record 'knowledge_base'"
    assert messages(provider) == [("knowledge_base", "a", said)]


def test_a_text_that_was_corrected_in_notion_is_read_and_named(provider: NotionProvider, source: Source) -> None:
    provider.put(KB, [("a", {"content": "High water is at 6"})])
    edit(source, only_page(source), "Content", "High water is at 7")
    assert provider.get(KB, "a") == {"content": "High water is at 7", "_id": "a", "id": "a"}
    assert messages(provider) == [
        ("knowledge_base", "a", "Content was changed in Notion and is read as it stands there")
    ]
    provider.update_by_id("a", {}, KB)
    assert provider.problems() == []


def test_a_page_in_the_trash_is_no_record_and_can_be_taken_out_again(provider: NotionProvider, source: Source) -> None:
    provider.put(KB, [("a", {"n": 1})])
    page = only_page(source)
    page["in_trash"] = True
    assert (provider.get(KB, "a"), ids(provider), provider.delete(KB, ["a"])) == (None, [], 0)
    page["in_trash"] = False
    assert (ids(provider), provider.count(KB)) == (["a"], 1)
    page["in_trash"] = True
    provider.put(KB, [("a", {"n": 2})], replace=True)
    assert provider.get(KB, "a") == {"n": 2, "_id": "a", "id": "a"}
    assert len(source.pages) == 2


def test_replacing_a_page_that_was_thrown_away_meanwhile_makes_a_fresh_one(
    provider: NotionProvider, notion: FakeNotion, source: Source
) -> None:
    provider.put(KB, [("a", {"n": 1}), ("b", {})])
    notion.log()
    next(iter(source.pages.values()))["in_trash"] = True
    provider.put(KB, [("a", {"n": 2})], replace=True)
    assert notion.log() == [CHANGE, QUERY, CREATE]
    assert ids(provider) == ["b", "a"]


def test_an_unknown_journal_finds_what_another_machine_wrote(opened: Open, tmp_path: Path) -> None:
    opened().put(PERSONAS, [("a", {"persona_id": "p"}), ("b", {})])
    other = opened(state_path=tmp_path / "another" / "machine.sqlite3")
    assert other.find(PERSONAS, ["p"]) == {"p": "a"}
    other.put(PERSONAS, [("a", {"n": 1}), ("c", {})], replace=True)
    assert ids(opened(), PERSONAS) == ["a", "b", "c"]
    assert other.sync()["refreshed"] == 3
    assert other.index_status()["tracked_records"] == 3


# What accidents do


def test_a_page_whose_answer_was_lost_is_not_made_twice(
    provider: NotionProvider, notion: FakeNotion, source: Source
) -> None:
    lost = iter([HangUp(), None, Refused(502, "bad_gateway", "")])
    with failing(notion, after=lambda request: next(lost, None) if request.path.endswith("/pages") else None):
        provider.put(KB, [("a", {}), ("b", {}), ("c", {})])
    assert notion.log() == [QUERY, CREATE, QUERY, CREATE, CREATE, QUERY]
    assert (ids(provider), len(source.pages)) == (["a", "b", "c"], 3)


def test_a_request_that_was_lost_on_its_way_is_sent_again(provider: NotionProvider, notion: FakeNotion) -> None:
    lost = iter([HangUp(), Refused(502, "bad_gateway", "")])
    with failing(notion, before=lambda request: next(lost, None) if request.path.endswith("/pages") else None):
        provider.put(KB, [("a", {})])
    assert notion.log() == [QUERY, CREATE, QUERY, CREATE, QUERY, CREATE]
    assert ids(provider) == ["a"]


def dies_after(count: int) -> Callable[[Request], Exception | None]:
    """Does so many writes, and then nothing."""
    left = [count]

    def fault(request: Request) -> Exception | None:
        left[0] -= request.writes
        return None if left[0] >= 0 else HangUp()

    return fault


def test_the_journal_knows_what_a_failed_put_has_written(provider: NotionProvider, notion: FakeNotion) -> None:
    with (
        failing(notion, before=dies_after(2)),
        pytest.raises(ProviderFault, match="gave no answer"),
    ):
        provider.put(KB, [(id, {}) for id in "abcd"])
    assert provider.index_status()["counts"] == {"pending": 2, "uncertain": 1}
    assert (ids(provider), provider.problems()) == (["a", "b"], [])
    report = provider.repair_index()
    assert report["counts"] == {"indexed": 2, "not_created": 1}
    assert (report["repaired"], report["unresolved"], report["pending"]) == (3, 0, 0)


def test_repair_takes_up_a_page_that_was_made_all_the_same(provider: NotionProvider, notion: FakeNotion) -> None:
    with failing(notion, after=dies_after(0)), pytest.raises(ProviderFault):
        provider.put(KB, [("a", {})])
    assert provider.index_status()["counts"] == {"uncertain": 1}
    assert ids(provider) == ["a"]
    assert provider.repair_index()["counts"] == {"indexed": 1}


def test_repair_finishes_a_delete(provider: NotionProvider, notion: FakeNotion, source: Source) -> None:
    provider.put(KB, [("a", {}), ("b", {})])
    with failing(notion, before=dies_after(0)), pytest.raises(ProviderFault):
        provider.delete(KB, ["a"])
    assert provider.index_status()["counts"] == {"delete_uncertain": 1, "pending": 1}
    assert ids(provider) == ["a", "b"]
    assert provider.repair_index()["counts"] == {"deleted": 1, "indexed": 1}
    assert (ids(provider), len(source.pages)) == (["b"], 2)


def test_repair_keeps_one_of_two_pages_that_say_the_same(provider: NotionProvider, source: Source) -> None:
    provider.put(KB, [("a", {"n": 1}), ("b", {"content": "x"})])
    first, second = list(source.pages.values())
    source.pages["1" * 36] = {**first, "id": "1" * 36}
    source.pages["2" * 36] = {**second, "id": "2" * 36, "values": dict(second["values"])}
    edit(source, source.pages["2" * 36], "Content", "y")
    report = provider.repair_index()
    assert (report["repaired"], report["unresolved"]) == (3, 1)
    assert [page["in_trash"] for page in source.pages.values()] == [False, False, True, False]


def test_a_record_is_pending_until_repair_or_sync_has_read_it_back(
    provider: NotionProvider, notion: FakeNotion
) -> None:
    provider.put(KB, [("a", {}), ("b", {})])
    provider.put(MemoryType.TOOL_LOG, [("t", {})])
    status = provider.index_status()
    assert status == {
        "data_source_id": provider.data_source_id, "semantic_enabled": False, "tracked_records": 3,
        "counts": {"pending": 2, "stored": 1}, "tracked_by_memory_type": {"knowledge_base": 2, "tool_log": 1},
        "state_scope": str(provider.config.state_path), "notion_freshness_verified": False, "pending": 2,
        "unresolved": 0,
    }  # fmt: skip
    assert provider.get(KB, "a") is not None
    notion.log()
    assert provider.sync("personas")["pending"] == 2
    report = provider.sync("knowledge_base")
    assert (report["refreshed"], report["pending"], report["memory_types"]) == (2, 0, ["knowledge_base"])
    assert notion.log() == [QUERY, QUERY]
    assert provider.sync()["refreshed"] == 0
    assert provider.sync(force=True)["refreshed"] == 3
    provider.put(KB, [("a", {"n": 1})], replace=True)
    assert provider.repair_index()["repaired"] == 1


def test_sync_notes_what_others_removed(provider: NotionProvider, source: Source) -> None:
    provider.put(KB, [("a", {}), ("b", {})])
    next(iter(source.pages.values()))["in_trash"] = True
    report = provider.sync()
    assert report["counts"] == {"deleted": 1, "indexed": 1}
    assert report["notion_freshness_verified"] is True


IDS = st.sampled_from("abc")
STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "replace", "delete"]), st.lists(IDS, unique=True, min_size=1), st.integers(0, 9)),
    max_size=8,
)
FATES = st.lists(st.sampled_from(["fine", "fine", "lost", "done, but not answered"]), max_size=20)


@settings(max_examples=80)
@given(steps=STEPS, fates=FATES, retries=st.sampled_from([0, 1]))
def test_whatever_is_lost_on_the_way_each_record_is_one_of_those_that_were_meant(
    steps: list[tuple[str, list[str], int]], fates: list[str], retries: int
) -> None:
    left = iter(fates)
    fate = ["fine"]

    def before(request: Request) -> Exception | None:
        fate[0] = next(left, "fine") if request.writes else "fine"
        return HangUp() if fate[0] == "lost" else None

    def after(_: Request) -> Exception | None:
        return HangUp() if fate[0] == "done, but not answered" else None

    with tempfile.TemporaryDirectory() as directory:
        chosen = {**options(shared(), Path(directory)), "max_retries": retries}
        with NotionProvider(NotionConfig(**chosen), Clock()) as provider:
            meant: dict[str, set[int | None]] = {id: {None} for id in "abc"}
            with failing(shared(), before=before, after=after):
                for step in steps:
                    _do(provider, step, meant)
            report = provider.repair_index()
            assert (report["unresolved"], report["pending"], provider.problems()) == (0, 0, [])
            found = {record["_id"]: record["n"] for record in provider.scan(KB)}
            assert all(found.get(id) in values for id, values in meant.items()), (found, meant)
        pages = [page for page in shared().sources[chosen["data_source_id"]].pages.values() if not page["in_trash"]]
        assert len(pages) == len(found)


def _do(provider: NotionProvider, step: tuple[str, list[str], int], meant: dict[str, set[int | None]]) -> None:
    name, ids, number = step
    wanted = None if name == "delete" else number
    try:
        if name == "delete":
            provider.delete(KB, ids)
        else:
            provider.put(KB, [(id, {"n": number}) for id in ids], replace=name == "replace")
    except RecordExists:
        return
    except ProviderFault:
        for id in ids:
            meant[id] = meant[id] | {wanted}
    else:
        for id in ids:
            meant[id] = {wanted}


def test_a_page_that_cannot_be_understood_is_a_fault(
    provider: NotionProvider, notion: FakeNotion, source: Source
) -> None:
    provider.put(KB, [("a", {})])
    only_page(source)["values"][source.properties["Content"]["id"]] = [{"text": None}]
    with pytest.raises(ProviderFault):
        provider.get(KB, "a")


# What is not ours, and what is not to be seen


def test_reading_only_sends_no_request_that_writes(opened: Open, notion: FakeNotion, tmp_path: Path) -> None:
    opened().put(KB, [("a", {})])
    notion.log()
    with opened(read_only=True, state_path=tmp_path / "none" / "here") as provider:
        assert ids(provider) == ["a"]
        with provider.snapshot():
            assert provider.problems() == []
        for write in (provider.repair_index, provider.sync, lambda: provider.put(KB, [("b", {})])):
            with pytest.raises(ReadOnlyProvider, match="reading only"):
                write()
        assert provider.index_status()["tracked_records"] == 0
    assert notion.requests and not any(request.writes for request in notion.requests)
    assert not (tmp_path / "none").exists()


def test_the_journal_is_private_and_about_one_data_source(opened: Open, notion: FakeNotion, tmp_path: Path) -> None:
    opened(state_path=tmp_path / "a" / "b.sqlite3").put(KB, [("a", {})])
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a").iterdir()} == {0o600}
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    with pytest.raises(ConfigurationError, match="is about the Notion data source"):
        opened(state_path=tmp_path / "a" / "b.sqlite3", data_source_id=notion.add_source().id)


@pytest.mark.parametrize("kind", ["database", "empty database", "text"])
def test_a_file_of_another_program_is_not_taken_for_a_journal(opened: Open, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "other.sqlite3"
    if kind == "text":
        path.write_text("a diary, longer than the header of a database " * 20)
    else:
        with apsw.Connection(str(path)) as connection:
            table = "CREATE TABLE records(source_id, memory_type)"
            connection.execute(table if kind == "database" else "PRAGMA application_id = 7")
        connection.close()
    before = path.read_bytes()
    with pytest.raises(ConfigurationError, match=r"no Notion journal of this program; set state_path"):
        opened(state_path=path)
    assert path.read_bytes() == before


def test_a_database_that_is_used_for_other_things_is_left_as_it_is(
    opened: Open, notion: FakeNotion, source: Source
) -> None:
    source.properties["Due"] = {"id": "due", "name": "Due", "type": "date", "date": {}}
    source.pages["x"] = {"id": "x", "created_time": "2026-01-01T00:00:00.000Z", "in_trash": False, "values": {}}
    with pytest.raises(ConfigurationError, match=r"holds pages of another kind; `memorizz notion init`"):
        opened()
    assert not any(request.writes for request in notion.requests)


def test_a_property_of_another_type_is_named(opened: Open, source: Source) -> None:
    source.properties["Status"] = {"id": "s", "name": "Status", "type": "select", "select": {}}
    with pytest.raises(ConfigurationError, match=r"'Status' .* must be of type rich_text \(it is select\)"):
        opened()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"data_source_id": "tides"}, r"must be the UUID of a Notion data source \(got 'tides'\)"),
        ({"data_source_id": "00000000-0000-4000-8000-000000000000"}, "not shared with the integration"),
        ({"token": "ntn_wrong"}, "does not accept the token"),
        ({"timeout": 0}, "timeout must be a number above 0 and at most 600"),
        ({"requests_per_second": "fast"}, r"requests_per_second must be a number above 0 .*\(got 'fast'\)"),
        ({"max_query_pages": 101}, "max_query_pages must be an integer from 1 to 100"),
        ({"max_retries": 1.5}, "max_retries must be an integer"),
        ({"base_url": "http://api.notion.com/v1"}, "must begin with https"),
    ],
)
def test_a_configuration_that_cannot_work_is_named(opened: Open, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as raised:
        opened(**wrong)
    assert "ntn_" not in str(raised.value)


def test_the_token_comes_from_the_environment_and_is_shown_nowhere(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NOTION_TOKEN", raising=False)
    with pytest.raises(ConfigurationError, match="in the variable NOTION_TOKEN"):
        opened(token=None)
    monkeypatch.setenv("NOTION_TOKEN", TOKEN)
    provider = opened(token=None)
    assert provider.count(KB) == 0
    shown = repr(NotionConfig("x", TOKEN)) + str(provider.config) + repr(provider) + repr(provider.client)
    assert TOKEN not in shown and "token='***'" in shown


def test_the_journal_is_in_the_home_of_the_memory_graph_unless_told(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORIZZ_HOME", str(tmp_path / "home"))
    provider = opened(state_path=None)
    assert (tmp_path / "home" / "notion" / f"{provider.data_source_id}.sqlite3").is_file()
