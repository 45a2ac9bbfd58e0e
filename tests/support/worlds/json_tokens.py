"""A small vocabulary of pieces of JSON: every byte, words across its brackets and quotation marks, half a character."""

from __future__ import annotations

from tokenfst import Vocabulary

WORDS = [
    '{"',
    '":',
    '": ',
    '", "',
    '"}',
    "}]",
    "[1",
    ", ",
    ",",
    "true",
    "null",
    "10",
    ".5",
    "e1",
    "\\u00",
    "\n  ",
]
WORDS += ["name", "a", "ab", "é", "😀", "-0", '{"a":', "[[", "]]", "}}", '"a"', "2024-", "02-29", "\n"]
TOKENS = [*(bytes((byte,)) for byte in range(256)), *(word.encode() for word in WORDS), b"\xf0\x9f", b""]
END = len(TOKENS) - 1
VOCABULARY = Vocabulary(TOKENS, END)
