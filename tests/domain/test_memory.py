"""Memory types, link kinds, and the bounds that every door shares."""

from __future__ import annotations

from typing import Any

import pytest

from agent_memory import InvalidArgument, InvalidType, LinkKind, MemoryType
from agent_memory.domain import bounds
from agent_memory.domain.links import snippet
from tests.contract.bounds import INVISIBLE, PINNED, TYPES


@pytest.mark.parametrize("name", TYPES)
def test_each_type_parses_and_prints_as_its_wire_name(name: str) -> None:  # 15.1 #8 #12
    assert str(MemoryType.parse(name)) == name
    assert MemoryType.parse(name).pinned is (name in PINNED)  # 15.1 #11


def test_there_are_six_types() -> None:
    assert tuple(MemoryType) == TYPES


@pytest.mark.parametrize("name", ["BOGUS", "decision", ""])
def test_any_other_type_is_invalid(name: str) -> None:  # 15.1 #9 #10
    with pytest.raises(InvalidType) as caught:
        MemoryType.parse(name)
    assert str(caught.value) == (
        f"invalid memory type '{name}' (expected one of DECISION, PATTERN, ERROR, TODO, ARCHITECTURE, CONSTRAINT)"
    )


def test_link_kinds_are_the_three_of_the_contract() -> None:
    assert list(LinkKind) == ["relates_to", "supersedes", "caused_by"]


@pytest.mark.parametrize("content", INVISIBLE)
def test_invisible_content_is_no_content(content: str) -> None:
    with pytest.raises(InvalidArgument, match="content must be a non-empty string"):
        bounds.check_content(content)


@pytest.mark.parametrize("content", [".", "🎉", "\u200bx\u200b", "e\u0301", "。"])
def test_one_visible_character_is_content(content: str) -> None:
    assert bounds.check_content(content) == content


@pytest.mark.parametrize("surrogate", ["\ud83d", "ok \udc00", "\ud83d\ud83d"])
def test_text_with_a_lone_surrogate_is_refused_where_it_would_be_written(surrogate: str) -> None:
    for field in ("content", "tags", "scope", "source"):
        with pytest.raises(InvalidArgument, match=f"invalid argument: {field} must be valid Unicode"):
            bounds.check_text(field, surrogate)
    assert bounds.check_query(f"a{surrogate}b").encode()


@pytest.mark.parametrize("value", ["5", 5.0, True, [5], {"a": 1}])
def test_an_integer_is_an_integer(value: Any) -> None:
    for check in (bounds.check_limit, bounds.check_ttl):
        with pytest.raises(InvalidArgument, match=r"must be an integer \(got "):
            check(value)
    with pytest.raises(InvalidArgument, match=r"id must be an integer \(got "):
        bounds.check_id("id", value)


def test_a_long_offending_value_is_shortened_in_the_message() -> None:
    with pytest.raises(InvalidArgument) as caught:
        bounds.check_tags("x" * 10_000)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(("length", "cut"), [(0, False), (159, False), (160, False), (161, True), (5_000, True)])
def test_a_snippet_is_cut_after_160_code_points(length: int, cut: bool) -> None:
    text = "🎉" * length
    assert snippet(text) == ("🎉" * 160 + "…" if cut else text)
