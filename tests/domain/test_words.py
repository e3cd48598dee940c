"""Cutting queries into words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.domain.words import any_of, fragments, is_bare, words
from tests.contract.queries import WORDLESS


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("what vector store do we use?", ["what", "vector", "store", "do", "we", "use"]),
        ("sqlite-vec", ["sqlite", "vec"]),
        ("TODO: auth", ["TODO", "auth"]),
        ("don't", ["don", "t"]),
        ("snake_case.py", ["snake_case", "py"]),
        ("größe, naïve", ["größe", "naïve"]),
        ("cafe\u0301 bar", ["cafe\u0301", "bar"]),
        ("a\x00b", ["a", "b"]),
        ("gpt-4o 100-200MB", ["gpt", "4o", "100", "200MB"]),
        ('say "hi', ["say", "hi"]),
        ("用户 验证", ["用户", "验证"]),
        ("twice Twice TWICE once", ["twice", "once"]),
    ],
)
def test_words_are_runs_of_letters_digits_marks_and_underscores(query: str, expected: list[str]) -> None:
    assert words(query) == expected


@pytest.mark.parametrize("query", WORDLESS)
def test_punctuation_holds_no_word(query: str) -> None:
    assert words(query) == []


@given(st.text())
def test_words_can_be_quoted_as_they_are(query: str) -> None:
    found = words(query)
    assert all(word and '"' not in word and not any(character.isspace() for character in word) for word in found)
    assert all(word in query for word in found)
    assert len({word.casefold() for word in found}) == len(found)


def test_a_long_query_keeps_its_first_256_words() -> None:
    assert words(" ".join(f"w{number}" for number in range(1_000))) == [f"w{number}" for number in range(256)]


def test_terms_are_quoted_and_any_of_them_may_match() -> None:
    assert any_of(["AND", "vec"]) == '"AND" OR "vec"'
    assert any_of([]) == ""


@pytest.mark.parametrize("query", ["vec", "blue cheese", "größe 4", "snake_case", "and or not", "用户"])
def test_plain_words_are_bare(query: str) -> None:
    assert is_bare(query)


@pytest.mark.parametrize(
    "query", ["", " ", "a AND b", "NOT", "x OR y", "NEAR", '"a b"', "vec*", "a:b", "(a)", "^a", "a-b", "a + b", "a?"]
)
def test_syntax_is_not_bare(query: str) -> None:
    assert not is_bare(query)


@pytest.mark.parametrize(
    ("terms", "pieces"),
    [
        (["用户身份"], ["用户", "户身", "身份"]),
        (["验"], ["验"]),
        (["gen后50条"], ["后", "条"]),
        (["english"], []),
        (["用户", "用户"], ["用户"]),
        (["ひらがな"], ["ひら", "らが", "がな"]),
    ],
)
def test_unspaced_runs_are_looked_for_by_their_overlapping_pairs(terms: list[str], pieces: list[str]) -> None:
    assert fragments(terms) == pieces
