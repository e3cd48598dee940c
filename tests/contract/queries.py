"""Query texts that tools of this kind have crashed on."""

from __future__ import annotations

UNPARSABLE = (
    "memory:safe", 'say "hi', "(python", "NEAR(", "^", "{a b}:c", "-rust", "'", '"', "?", ",", "what is rust?",
    "sqlite-vec", "TODO: auth", "rust AND", "OR", "NOT", "NOT rust", "don't", "a,b", "a.b", "src/rust", "#rust", "@x",
    "$x", "%", "a|b", "a;b", "<x>", "=", "\\", "C++", "rust)", "near/5", "(a) b", "a + ^b", "foo -rust", "- rust",
    "foo:bar rust", "nocol:rust", "{rust b}", "rowid:1", "rank:1", "*rust", "NEAR(a b, x)", '"a" "b', "content:",
    "*reads", "*id", "* reads", "  *rust",
    "gpt-4o", "100-200MB", "field:value", "rust\x00safe", "(" * 300 + "rust" + ")" * 300, "x" * 5_000,
    "rust " * 2_000, "'; DROP TABLE memories; --", "\ud7ff\ue000", "e\u0301", "🎉", "用户", "\u200b", "\ufeffrust",
)  # fmt: skip
"""None of these is an error. Some are FTS5 syntax by luck, most are not."""

WORDLESS = ("", " ", "?!", "*", "\t\n", "...", "()", '""', "-", "🎉", "***", "'\"'", "\x00")
"""These hold no word at all."""
