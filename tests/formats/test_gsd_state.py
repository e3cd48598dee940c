"""The state file of a GSD project: what its lines become, and that no text is too strange for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_memory.formats.gsd_state import GsdState, read

FIXTURE = Path(__file__).parent / "data" / "STATE.md"


def contents(text: str) -> list[str]:
    return [item.content for item in read(text).items]


def decisions(*lines: str) -> str:
    return "\n".join(["### Decisions", *lines])


def deferred(*rows: str) -> str:
    return "\n".join(["## Deferred Items", "| Id | Item | Status |", "|---|---|---|", *rows])


def test_the_fixture_gives_nine_items_in_order_and_one_malformed_line() -> None:  # 12.3
    state = read(FIXTURE.read_text(encoding="utf-8"))
    assert state.malformed == 1
    assert [(item.type.value, item.tags) for item in state.items] == [
        *[("DECISION", ("gsd",))] * 4,
        ("TODO", ("gsd",)),
        *[("CONSTRAINT", ("gsd",))] * 2,
        *[("TODO", ("gsd", "deferred"))] * 2,
    ]
    beginnings = [
        "[Roadmap]: Ship the zigbuild", "[01-01]: Pinned rusqlite", "[01-02]: Registered a custom exp()",
        "[01-03]: TTL sweep", "Wire the Homebrew tap", "stdout purity:", "Hetzner X64 fleet",
        "DIST-03 Windows binaries — Deferred to v2", "SEARCH-04 hybrid RRF fusion — Deferred to v2",
    ]  # fmt: skip
    for item, beginning in zip(state.items, beginnings, strict=True):
        assert item.content.startswith(beginning)
    assert state.items[3].content == "[01-03]: TTL sweep deletes in one transaction"
    assert state.items[8].content == beginnings[8]


@pytest.mark.parametrize(
    ("heading", "type"),
    [("Decisions", "DECISION"), ("Blockers/Concerns", "CONSTRAINT"), ("Pending Todos", "TODO")],
)
def test_a_list_becomes_memories_of_the_type_of_its_heading(heading: str, type: str) -> None:  # 15.1 #17 #18
    state = read(f"### {heading}\n- a\n- b\n")
    assert [(item.type.value, item.content, item.tags) for item in state.items] == [
        (type, "a", ("gsd",)),
        (type, "b", ("gsd",)),
    ]


def test_none_yet_is_nothing_and_is_not_counted() -> None:  # 15.1 #19
    text = "### Pending Todos\nNone yet.\n- None yet.\n-  None yet. \n- None yet\n- none yet.\n- real\n"
    assert read(text).malformed == 0
    assert contents(text) == ["None yet", "none yet.", "real"]


def test_a_table_becomes_tagged_todos_without_its_header_and_rules() -> None:  # 15.1 #20
    state = read(deferred("| D-1 | win binaries | Deferred to v2 |"))
    assert state == GsdState((("TODO", "win binaries — Deferred to v2", ("gsd", "deferred")),), 0)


def test_a_fenced_heading_opens_nothing_and_a_later_real_one_does() -> None:  # 15.1 #21
    text = "```\n### Decisions\n- fenced\n```\n- nowhere\n### Decisions\n- real\n"
    assert contents(text) == ["real"]


def test_a_fence_hides_headings_entries_and_malformed_lines_alike() -> None:
    text = decisions("- a", "  ```rust", "## Other", "-", "- hidden", "x ```", "\t```", "- b", "~~~", "- c")
    assert read(text).malformed == 0
    assert contents(text) == ["a", "b", "c"]


def test_sections_of_other_names_are_ignored_and_not_counted() -> None:  # 15.1 #22
    for heading in (
        "## Lessons",
        "## decisions",
        "### DECISIONS",
        "### Decision",
        "### Decisions:",
        "### Decisions ##",
    ):
        assert read(f"### Decisions\n{heading}\n- a\n-\n| x |\n") == GsdState((), 0)


@pytest.mark.parametrize(
    "heading", ["# Decisions", "###### Decisions", "#Decisions", "  ##\tDecisions \r", "##\u3000Decisions"]
)
def test_a_heading_counts_whatever_its_level_and_the_space_around_it(heading: str) -> None:
    assert contents(f"{heading}\n- a") == ["a"]


def test_prose_that_begins_with_a_number_sign_ends_a_section() -> None:
    assert contents(decisions("- a", "#hashtag", "- b")) == ["a"]


def test_an_item_of_8192_bytes_is_kept_and_a_longer_one_counted() -> None:  # 15.1 #23
    for text in ("x" * 8_192, "ü" * 4_096):
        assert contents(decisions(f"- {text}")) == [text]
    for text in ("x" * 8_193, "ü" * 4_096 + "x"):
        state = read(decisions(f"- {text}", "- next"))
        assert ([item.content for item in state.items], state.malformed) == (["next"], 1)
    state = read(deferred(f"| a | {'x' * 8_186} | b |", f"| a | {'x' * 8_187} | b |"))
    assert ([len(item.content.encode()) for item in state.items], state.malformed) == ([8_192], 1)


def test_a_lone_dash_is_counted_in_the_list_sections_only() -> None:  # 15.1 #24
    assert read(decisions("-", " -\t", "- ", "- a")) == GsdState((("DECISION", "a", ("gsd",)),), 3)
    assert read("-\n## Lessons\n-\n## Deferred Items\n-\n") == GsdState((), 0)


def test_garbage_with_an_open_fence_holds_nothing() -> None:  # 15.1 #25
    assert read("garbage\n- a\n| b | c | d |\n```\n### Decisions\n- e\n") == GsdState((), 0)
    assert read("") == GsdState((), 0)


def test_an_entry_keeps_its_marks_and_only_its_first_line() -> None:
    text = decisions(
        "- [ ] open", "- [x] done", "- ~~gone~~ **bold** [a](b)", "- - x", "-  wide  ", "    - nested", "  goes on",
        "* star", "+ plus", "1. number", "-no space", "—dash",
    )  # fmt: skip
    assert contents(text) == [
        "[ ] open", "[x] done", "~~gone~~ **bold** [a](b)", "- x", "wide", "nested",
    ]  # fmt: skip
    assert read(text).malformed == 0


def test_an_item_that_shows_nothing_when_printed_is_counted() -> None:
    state = read(decisions("- \u200b\u2060", "- \x07", "- \ufeffa"))
    assert ([item.content for item in state.items], state.malformed) == (["\ufeffa"], 2)


def test_lines_end_at_line_feeds_alone_and_lose_the_white_space_of_unicode_around_them() -> None:
    assert contents("### Decisions\r\n- a\r\n-\u00a0b\r\n\u2003- c\u3000\r\n") == ["a", "c"]
    # What Python takes for white space or a line end and Unicode does not.
    assert contents(decisions("- d\x0be\x1cf\u2028g\x85h", "- \x1fi\x1c")) == ["d\x0be\x1cf\u2028g\x85h", "\x1fi\x1c"]


@pytest.mark.parametrize(
    ("row", "content"),
    [
        ("| a | b | c |", "b — c"),
        ("| a | b | c", "b — c"),
        ("| a | b | c | d | e |", "b — c"),
        ("|a|b|c|", "b — c"),
        ("  | a | b | c |  ", "b — c"),
        ("|| a | b | c ||", "b — c"),
        ("| a | | c |", " — c"),
        ("| a | b | |", "b — "),
        ("| a | | | x |", " — "),
        ("| a \\| b | c | d |", "b — c"),
        ("| | b | c |", "b — c"),
        ("| a | **b** | `c` |", "**b** — `c`"),
    ],
)
def test_a_table_row_becomes_its_second_and_third_cell(row: str, content: str) -> None:
    assert contents(deferred(row)) == [content]


@pytest.mark.parametrize("row", ["| a | b |", "| a |", "| a", "| a |||", "|a|b||"])
def test_a_row_of_fewer_than_three_cells_is_counted(row: str) -> None:
    assert read(deferred(row)) == GsdState((), 1)


@pytest.mark.parametrize("row", ["|", "|||", "|---|:-:|--:|", "| - | : |", "a | b | c", "", "- a | b | c"])
def test_a_line_that_is_no_row_or_only_a_rule_is_ignored(row: str) -> None:
    assert read(deferred(row)) == GsdState((), 0)


def test_the_first_row_after_each_heading_of_the_table_is_its_header() -> None:
    table = "|---|---|---|\n| h | h | h |\n|---|---|---|\n| 1 | b | c |\n"
    text = f"## Deferred Items\n\nprose\n{table}## Deferred Items\n{table}## Other\n{table}"
    assert contents(text) == ["b — c", "b — c"]


def test_tables_in_list_sections_and_lists_in_the_table_section_are_ignored() -> None:
    assert read(decisions("| a | b | c |", "| d |")) == GsdState((), 0)
    assert read("## Deferred Items\n- a\n-\n| h |\n- b") == GsdState((), 0)


lines = st.sampled_from(
    [
        "### Decisions", "# Pending Todos", "## Deferred Items", "## Blockers/Concerns", "## x", "```", "None yet.",
        "-", "- a", "- ", "- None yet.", "- \ud83d", "- é" * 3_000, "| a | b | c |", "|---|", "| a |", "|",
        "| a | \udc00 | c |",
    ]
)  # fmt: skip


@settings(max_examples=500)
@given(st.lists(lines | st.text() | st.text(st.characters()), max_size=12).map("\n".join))
def test_any_text_is_read_and_gives_items_that_can_be_kept(text: str) -> None:
    state = read(text)
    for item in state.items:
        assert 0 < len(item.content.encode()) <= 8_192
        assert "\n" not in item.content
    assert len(state.items) + state.malformed <= text.count("\n") + 1
    assert read(text.replace("\n", "\r\n")) == state
