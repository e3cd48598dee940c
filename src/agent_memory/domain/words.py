"""Cutting a query into words, for the retry that follows FTS5's own reading of it.

FTS5 cuts text at white space and punctuation only, so in scripts that are written without spaces a whole
phrase is one token. :func:`fragments` and :func:`glued_words` name the pieces to look for there instead.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable
from typing import Final

MAX_WORDS: Final = 256
MAX_FRAGMENTS: Final = 32

# Thai, Lao, Myanmar, Khmer, kana, Han, Hangul and their compatibility forms.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff"
)
_OPERATORS: Final = frozenset({"AND", "OR", "NOT", "NEAR"})


def words(query: str) -> list[str]:
    """The distinct words of ``query`` in order, at most 256: runs of letters, digits, marks and underscores."""
    spaced = "".join(character if _in_word(character) else " " for character in query)
    distinct: dict[str, str] = {}
    for word in spaced.split():
        distinct.setdefault(word.casefold(), word)
    return list(distinct.values())[:MAX_WORDS]


def any_of(terms: Iterable[str]) -> str:
    """The FTS5 expression that matches any of ``terms``, each taken literally; empty for no term."""
    return " OR ".join(f'"{term}"' for term in terms)


def is_bare(query: str) -> bool:
    """Whether ``query`` holds nothing but bare words: no operator, quote, star, colon, bracket or other syntax."""
    tokens = query.split()
    return bool(tokens) and all(token not in _OPERATORS and all(map(_in_bare_word, token)) for token in tokens)


def fragments(terms: Iterable[str]) -> list[str]:
    """The pieces to find inside text of unspaced scripts: each run's overlapping pairs, or its one character."""
    pieces: dict[str, None] = {}
    for term in terms:
        for run in _unspaced_run().findall(term):
            pairs = [run[index : index + 2] for index in range(len(run) - 1)] or [run]
            pieces.update(dict.fromkeys(pairs))
    return list(pieces)[:MAX_FRAGMENTS]


def glued_words(terms: Iterable[str]) -> re.Pattern[str]:
    """A pattern for any of ``terms`` (at least one) where it stands alone or against text of an unspaced script."""
    either = "|".join(re.escape(term) for term in terms)
    # Case is of no interest to the unspaced scripts, and ignoring it there would triple the time to compile.
    return re.compile(f"(?:(?<![\\w])|(?<=[{_UNSPACED}]))(?i:{either})(?:(?!\\w)|(?=[{_UNSPACED}]))")


@functools.cache
def _unspaced_run() -> re.Pattern[str]:
    # Most processes never meet such a query, and compiling these ranges would cost each of them 2 ms at start.
    return re.compile(f"[{_UNSPACED}]+")


def _in_bare_word(character: str) -> bool:
    # FTS5 reads every character beyond ASCII as part of a bare word, whatever it is.
    return character > "\x7f" or character == "_" or character.isalnum()


def _in_word(character: str) -> bool:
    # Combining marks belong to the letter before them; FTS5 keeps or drops them the same way in text and query.
    return character == "_" or unicodedata.category(character)[0] in "LNM"
