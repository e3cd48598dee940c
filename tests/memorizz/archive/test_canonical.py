"""Canonical JSON: the documented vectors, and a slow encoder that is plainly right."""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorizz.archive.canonical import canonical, number
from memorizz.errors import MemoryArchiveError

NUMBERS = {
    "1.0": "1",
    "-0.0": "0",
    "-0": "0",
    "-1.50": "-1.5",
    "1e2": "100",
    "1e20": "100000000000000000000",
    "1e21": "1e+21",
    "1e-6": "0.000001",
    "1e-7": "1e-7",
    "1.5e-7": "1.5e-7",
    "123e-8": "0.00000123",
    "5e-324": "5e-324",
    "1.7976931348623157e308": "1.7976931348623157e+308",
    "9007199254740993": "9007199254740993",
    "9007199254740993.0": "9007199254740992",
    "333333333.33333329": "333333333.3333333",
    "1000000000000000000000": "1000000000000000000000",
}
DIGESTS = {
    "{}": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
    "[]": "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945",
    '{"a":1.0}': "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862",
    '{"n":9007199254740993,"m":1e-7,"k":0.1}': "a533332bf596e21fcbfb34ccba637ea87489635d72fe11f88d176b66ab68527f",
    '{"\ue000":1,"\U0001f600":2}': "871954531859c7572c6279f90eb83a594ddc3a289e8bdc28d2a84ffb8c1a1703",
    '{"b":[true,null,-0.0],"a":{"z":1e21,"\u00e9":"x\u2028/\\u0001"}}': (
        "1c734f324133d3fcf8186f18127caa19ca846748ba23826072b593962edb2590"
    ),
}


@pytest.mark.parametrize(("token", "written"), NUMBERS.items())
def test_a_number_is_written_as_documented(token: str, written: str) -> None:
    assert canonical(json.loads(token)).decode() == written


@pytest.mark.parametrize(("text", "digest"), DIGESTS.items())
def test_the_digest_is_the_documented_one(text: str, digest: str) -> None:
    assert hashlib.sha256(canonical(json.loads(text))).hexdigest() == digest


def test_members_are_sorted_by_code_points() -> None:
    keys = ["b", "a", "", "A", "\U0001f600", "\ue000"]
    assert list(json.loads(canonical(dict.fromkeys(keys, 1)))) == ["", "A", "a", "b", "\ue000", "\U0001f600"]


def test_only_what_must_be_escaped_is() -> None:
    text = '"\\/\b\t\n\f\r\x00\x1f\x7f\u2028é🎉'
    assert canonical(text).decode() == '"\\"\\\\/\\b\\t\\n\\f\\r\\u0000\\u001f\x7f\u2028é🎉"'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_has_no_canonical_form(value: float) -> None:
    with pytest.raises(MemoryArchiveError, match="no JSON number"):
        canonical([value])


def test_a_lone_surrogate_has_no_canonical_form() -> None:
    with pytest.raises(MemoryArchiveError, match=r"lone surrogate U\+D800"):
        canonical({"a": "before \ud800"})


TREES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=30,
)


def slow(tree: Any) -> str:
    """Canonical JSON by the letter of its rules, with exact decimal arithmetic."""
    if isinstance(tree, dict):
        return "{" + ",".join(f"{slow(key)}:{slow(tree[key])}" for key in sorted(tree)) + "}"
    if isinstance(tree, list):
        return "[" + ",".join(map(slow, tree)) + "]"
    if isinstance(tree, str):
        short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
        return '"' + "".join(short.get(c, c if c >= " " else f"\\u{ord(c):04x}") for c in tree) + '"'
    if isinstance(tree, float):
        return slow_number(tree)
    return {"None": "null", "True": "true", "False": "false"}.get(str(tree), str(tree))


def slow_number(value: float) -> str:
    exact = Decimal(repr(value)).normalize()
    if exact == 0:
        return "0"
    if Decimal("1e-6") <= abs(exact) < Decimal("1e21"):
        return f"{exact:f}"
    sign, digits, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    first, *rest = map(str, digits)
    fraction = "." + "".join(rest) if rest else ""
    return f"{'-' if sign else ''}{first}{fraction}e{exponent + len(digits) - 1:+d}"


@given(TREES)
def test_the_fast_encoder_writes_what_the_slow_one_does(tree: Any) -> None:
    assert canonical(tree).decode() == slow(tree)


@given(TREES)
def test_the_canonical_form_is_its_own_canonical_form(tree: Any) -> None:
    once = canonical(tree)
    assert canonical(json.loads(once)) == once


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_written_so_that_it_reads_back_the_same(value: float) -> None:
    assert float(number(value)) == value
    mantissa = number(value).partition("e")[0]
    assert "." not in mantissa or not mantissa.endswith(("0", "."))
