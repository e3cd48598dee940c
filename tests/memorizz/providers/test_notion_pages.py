"""How a record becomes a page of Notion, and what a page must be to be read as one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorizz.errors import InvalidRecord
from memorizz.providers.notion_pages import PROPERTIES, Draft, Row, draft, pieces, plain, read_page
from memorizz.taxonomy import MemoryType
from tests.memorizz.providers.test_model import JSON

KB = MemoryType.KNOWLEDGE_BASE
ADDED = 1_764_590_400_000_000
DISPLAYED = ["content", "text", "summary", "instruction", "description", "query", "attributes", "name"]
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def page(made: Draft, **changed: Any) -> dict[str, Any]:
    """The page that Notion would show: with plain texts, and with an id for each property."""
    properties = {}
    for name, value in {**made.properties, **changed}.items():
        shown = json.loads(json.dumps(value))
        for texts in shown.values():
            for text in texts if isinstance(texts, list) else []:
                text["plain_text"] = text["text"]["content"]
        properties[f"renamed {name}"] = {"id": f"id of {name}", **shown}
    return {"id": "page-1", "created_time": "2026-12-01T12:00:00.000Z", "properties": properties}


def read(made: Draft, **changed: Any) -> Row:
    return read_page(page(made, **changed), {f"id of {name}": name for name in PROPERTIES})


def text(value: str) -> dict[str, Any]:
    return {"rich_text": [{"text": {"content": value}}]}


def test_a_fact_is_shown_with_its_text_its_scope_and_the_rest_as_json() -> None:
    record = {
        "content": "High water is at 06:40.", "name": "Tides", "memory_id": "ns", "user_id": "ana", "agent_id": None,
        "timestamp": "2026-12-01T07:40:59.5+01:00", "tags": ["b", "a"], "summary": "High water is at 06:40.",
    }  # fmt: skip
    made = draft(KB, "one", record, ADDED)
    shown = {
        name: plain(value)
        for name, value in page(made)["properties"].items()
        if "rich_text" in value or "title" in value
    }
    metadata = shown.pop("renamed Memorizz metadata")
    assert shown == {
        "renamed Name": "Tides", "renamed Memorizz ID": "one", "renamed Content": "High water is at 06:40.",
        "renamed Memory ID": "ns", "renamed User ID": "ana", "renamed Agent ID": "", "renamed Thread ID": "",
        "renamed Namespace": "", "renamed Application ID": "", "renamed Trace memory ID": "", "renamed Session ID": "",
        "renamed Record type": "", "renamed Status": "", "renamed Timestamp": "2026-12-01T07:40:59.5+01:00",
    }  # fmt: skip
    assert made.properties["Memory type"] == {"select": {"name": "knowledge_base"}}
    assert made.properties["Event time"] == {"date": {"start": "2026-12-01T06:40:00.000Z"}}
    assert metadata == (
        '{"added":1764590400000000,"data":{"agent_id":null,"memory_id":"ns","name":"Tides","tags":["b","a"],'
        '"timestamp":"2026-12-01T07:40:59.5+01:00","user_id":"ana"},"digest":"06252ff90d067a9d",'
        '"display_aliases":["summary"],"display_field":"content","display_json":false,"format":"memorizz.notion.v1",'
        '"id":"one","memory_type":"knowledge_base"}'
    )
    assert read(made) == Row("page-1", KB, "one", ADDED, read(made).text)
    assert read(made).record() == {**record, "_id": "one", "id": "one"}


@pytest.mark.parametrize(
    ("record", "content", "title"),
    [
        ({"instruction": "Steer.", "name": ""}, "Steer.", "agents: one"),
        ({"content": None, "text": "second"}, "second", "agents: one"),
        ({"content": {"b": 1, "a": [1.0]}}, '{"a":[1.0],"b":1}', "agents: one"),
        ({"content": "a\x00b\r\x7f\ufffe"}, '"a\\u0000b\\r\\u007f\\ufffe"', "agents: one"),
        ({"content": "two\nlines\tand a tab"}, "two\nlines\tand a tab", "agents: one"),
        ({"content": ""}, "", "agents: one"),
        ({"name": "bell \x07\n"}, '"bell \\u0007\\n"', "bell   "),
        ({"other": True}, "", "agents: one"),
    ],
)
def test_what_is_shown_is_the_first_field_that_has_a_text(record: dict[str, Any], content: str, title: str) -> None:
    made = draft(MemoryType.MEMAGENT, "one", record, ADDED)
    shown = page(made)["properties"]
    assert (plain(shown["renamed Content"]), plain(shown["renamed Name"])) == (content, title)
    assert read(made).record() == {**record, "_id": "one", "id": "one"}


def test_schemas_of_tools_keep_properties_that_are_called_like_credentials() -> None:
    parameters = {"properties": {"api_key": {"type": "string"}, "token": {"type": "string"}, "headers": {}}}
    record = {"name": "call", "tools": [{"name": "t", "parameters": parameters}]}
    assert read(draft(MemoryType.MEMAGENT, "a", record, ADDED)).record()["tools"][0]["parameters"] == parameters


def test_vectors_are_left_out() -> None:
    made = draft(KB, "one", {"content": "x", "embedding": [0.1] * 1_000_000}, ADDED)
    assert read(made).record() == {"content": "x", "_id": "one", "id": "one"}


@given(
    st.dictionaries(ANY_TEXT | st.sampled_from(DISPLAYED), JSON | ANY_TEXT, max_size=5),
    st.sampled_from(MemoryType),
    st.dictionaries(st.sampled_from(["user_id", "memory_id", "session_id"]), JSON | ANY_TEXT),
)
def test_any_record_comes_back_as_it_was(record: dict[str, Any], store: MemoryType, scope: dict[str, Any]) -> None:
    expected = {**record, **scope, "_id": "one", "id": "one"}
    row = read(draft(store, "one", {**record, **scope}, ADDED))
    assert (row.problem, row.store, row.id, row.added) == (None, store, "one", ADDED)
    assert json.dumps(row.record(), sort_keys=True) == json.dumps(expected, sort_keys=True)


@given(st.text(st.sampled_from("aé\U0001f600"), max_size=50).map(lambda text: text * 100))
def test_pieces_are_as_long_as_notion_takes_and_make_up_the_text(text: str) -> None:
    made = pieces(text)
    assert "".join(made) == text
    units = [len(piece.encode("utf-16-le")) // 2 for piece in made]
    assert all(1_999 <= size <= 2_000 for size in units[:-1]) and (not units or 0 < units[-1] <= 2_000)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"content": "x" * 180_001}, r"knowledge_base 'one': Content would have more than 180000 characters"),
        ({"content": "\U0001f600" * 90_001}, r"Content would have more than 180000 characters"),
        ({"content": "x", "rest": "y" * 180_000}, r"Memorizz metadata would have more than 180000 characters"),
        ({"content": "\u20ac" * 100_000, "rest": "\u20ac" * 50_000}, r"more than 440000 bytes"),
    ],
)
def test_what_no_page_can_hold_is_refused(record: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRecord, match=message):
        draft(KB, "one", record, ADDED)


def test_the_longest_texts_of_both_columns_fit_into_one_page() -> None:
    record = {"content": "x" * 180_000, "rest": "y" * 179_000}
    assert read(draft(KB, "i" * 512, record, 2**53)).record()["content"] == record["content"]


MADE = draft(KB, "one", {"content": "as it was", "user_id": "ana", "tags": [1]}, ADDED)
JSON_MADE = draft(KB, "one", {"content": {"a": 1}}, ADDED)


@pytest.mark.parametrize(
    ("made", "changed", "problem"),
    [
        (MADE, {"User ID": text("ben")}, "its column User ID was changed in Notion: it says 'ben', its record 'ana'"),
        (MADE, {"User ID": text("")}, "its column User ID was changed in Notion: it says '', its record 'ana'"),
        (MADE, {"Session ID": text("s")}, "its column Session ID was changed in Notion: it says 's', its record ''"),
        (MADE, {"Memorizz ID": text("two")}, "its column Memorizz ID was changed"),
        (MADE, {"Memory type": {"select": {"name": "personas"}}}, "its column Memory type was changed"),
        (MADE, {"Memory type": {"select": None}}, "its column Memory type was changed"),
        (MADE, {"Memorizz metadata": text("")}, "has no metadata"),
        (MADE, {"Memorizz metadata": text("{")}, "its metadata is not JSON"),
        (MADE, {"Memorizz metadata": text('{"format": "memorizz.notion.v2"}')}, "in the format 'memorizz.notion.v2'"),
        (MADE, {"Memorizz metadata": text('{"format": "memorizz.notion.v1"}')}, "its metadata names no record"),
        (JSON_MADE, {"Content": text("{'a': 2}")}, "is not the JSON that it was"),
    ],
)
def test_a_page_whose_columns_contradict_its_record_is_not_read(
    made: Draft, changed: dict[str, Any], problem: str
) -> None:
    row = read(made, **changed)
    assert row.text is None and row.problem is not None
    assert row.problem.startswith("Notion page page-1: ") and problem in row.problem
    assert row.id in ("one", "two")


@pytest.mark.parametrize("changed", [{"Name": {"title": [{"text": {"content": "another"}}]}}, {"Status": text("done")}])
def test_titles_and_shown_columns_are_free_to_be_changed(changed: dict[str, Any]) -> None:
    assert read(MADE, **changed) == read(MADE)


def test_a_text_that_was_changed_in_notion_is_read_as_it_stands_there_and_named() -> None:
    row = read(MADE, Content=text("as it is"))
    assert row.record() == {"content": "as it is", "user_id": "ana", "tags": [1], "_id": "one", "id": "one"}
    assert row.problem == "Notion page page-1: Content was changed in Notion and is read as it stands there"


def test_a_page_that_others_made_of_the_same_format_is_read() -> None:
    metadata = {
        "format": "memorizz.notion.v1", "id": "one", "memory_type": "knowledge_base", "data": {"user_id": "ana"},
        "display_field": "content", "display_json": False, "display_aliases": [],
    }  # fmt: skip
    row = read(MADE, **{"Memorizz metadata": text(json.dumps(metadata)), "Session ID": text("of theirs")})
    assert row.record() == {"content": "as it was", "user_id": "ana", "_id": "one", "id": "one"}
    assert row.added == 1_796_126_400_000_000
    assert read(MADE, **{"Memorizz metadata": text(json.dumps(metadata)), "User ID": text("ben")}).text is None


def test_a_page_that_somebody_added_by_hand_belongs_to_no_store() -> None:
    empty = {"rich_text": []}
    row = read(MADE, **{"Memorizz metadata": empty, "Memorizz ID": empty, "Memory type": {"select": None}})
    assert row == Row("page-1", None, "page-1", row.added, None, "Notion page page-1: was not written by this program")
