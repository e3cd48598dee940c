"""Scripts, accents, width and case: which texts find each other."""

from __future__ import annotations

import pytest

from tests.support import database
from tests.support.doors import Door


def found(door: Door, query: str) -> list[str]:
    """The contents of the results, best first."""
    return [row["content"] for row in door.search(query=query)["results"]]


@pytest.mark.parametrize("query", ["用户", "用户身份", "身份验证", "验", "流程", "本系统的用户身份验证流程"])
def test_any_piece_of_a_chinese_phrase_finds_it(door: Door, query: str) -> None:  # B1
    for content in ("本系统的用户身份验证流程", "完全无关", "english only", "db pool"):
        door.store(content=content, type="PATTERN")
    assert found(door, query) == ["本系统的用户身份验证流程"]


@pytest.mark.parametrize("query", ["不存在", "户用", "数据库"])
def test_a_chinese_phrase_that_is_nowhere_finds_nothing(door: Door, query: str) -> None:
    door.store(content="本系统的用户身份验证流程", type="PATTERN")
    assert found(door, query) == []


def test_the_memory_with_the_longer_common_piece_comes_first(door: Door) -> None:
    door.store(content="用户很多", type="PATTERN")
    door.store(content="本系统的用户身份验证流程", type="PATTERN")
    assert found(door, "用户身份验证") == ["本系统的用户身份验证流程", "用户很多"]


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("カタカナとひらがなの検索", "ひらがな"),
        ("한국어검색시험", "검색"),
        ("การค้นหาภาษาไทย", "ภาษา"),
        ("東京都庁", "京"),
    ],
)
def test_other_scripts_without_spaces_are_found_by_their_pieces_too(door: Door, content: str, query: str) -> None:
    door.store(content=content, type="PATTERN")
    door.store(content="english only", type="PATTERN")
    assert found(door, query) == [content]


def test_a_two_letter_word_is_found(door: Door) -> None:  # B1
    door.store(content="db pool", type="PATTERN")
    door.store(content="adb tools", type="PATTERN")
    assert found(door, "db") == ["db pool"]


@pytest.mark.parametrize("query", ["itgc", "gen-itgc", "ITGC", "gen"])
def test_a_word_glued_to_chinese_is_found(door: Door, query: str) -> None:  # B2
    door.store(content="重跑gen-itgc后50条", type="PATTERN")
    door.store(content="nothing of the kind", type="PATTERN")
    assert found(door, query) == ["重跑gen-itgc后50条"]


def test_part_of_an_english_word_is_not_a_match(door: Door) -> None:  # B3
    for content in ("currency conversion", "latency budget", "urgency of the ticket"):
        door.store(content=content, type="PATTERN")
    door.store(content="ency is a suffix", type="PATTERN")
    assert found(door, "ency") == ["ency is a suffix"]


@pytest.mark.parametrize(
    ("content", "query", "matches"),
    [
        ("café", "cafe", True),
        ("cafe", "café", True),
        ("cafe\u0301", "café", True),  # decomposed and composed
        ("café", "cafe\u0301", True),
        ("CAFÉ", "café", True),
        ("ＡＢＣ", "ａｂｃ", True),
        ("ＡＢＣ", "abc", False),  # full width is not folded
        ("İstanbul", "istanbul", True),
        ("ISTANBUL", "istanbul", True),
        ("straße", "STRAẞE", True),
        ("straße", "strasse", False),  # ß is a letter of its own
        ("ΣΊΣΥΦΟΣ", "σίσυφος", True),
        ("МОСКВА", "москва", True),
    ],
)
def test_accents_and_case_are_folded_as_the_file_says(door: Door, content: str, query: str, matches: bool) -> None:
    # B6
    door.store(content=f"before {content} after", type="PATTERN")
    assert found(door, query) == ([f"before {content} after"] if matches else [])


def test_the_full_text_index_takes_less_than_twice_the_text(door: Door) -> None:  # B3
    text = "The quick agent stores decision {n} about latency, currency and urgency in project number {n}."
    database.fill(door.path, 2_000, content=text)
    index_bytes = database.rows(door.path, "SELECT sum(length(block)) FROM memories_fts_data")[0]
    text_bytes = database.rows(door.path, "SELECT sum(length(content)) FROM memories")[0]
    assert index_bytes < 2 * text_bytes
