"""Messages show no character that a terminal would obey, or that could not be seen."""

from __future__ import annotations

import inspect
import pickle
import unicodedata
import warnings
from pathlib import Path

import pytest
from support.programs.command_line import tokenfst

from tokenfst import errors, json_schema, regex
from tokenfst.common.printable import caret, printable
from tokenfst.errors import (
    NotInStoreError,
    PatternSyntaxError,
    SchemaError,
    TokenfstError,
    TokenfstWarning,
)

SPOOFED = "a\u202eb\x1b[31m\x9b2J\u2028\ud800"
ESCAPED = r"a\u202eb\x1b[31m\x9b2J\u2028\ud800"


def test_escapes_are_those_of_characters_that_cannot_be_printed() -> None:
    everything = "".join(map(chr, range(0x110000)))
    shown = printable(everything, "\n")
    assert {unicodedata.category(each) for each in shown.replace("\n", "")}.isdisjoint(
        {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    )
    assert shown.count("\n") == 1 and printable(shown, "\n") == shown
    assert printable("é 漢 😀") == "é 漢 😀"


def test_every_error_and_warning() -> None:
    found = [each for each in vars(errors).values() if inspect.isclass(each) and issubclass(each, Exception)]
    assert len(found) > 50
    for kind in found:
        if kind.__init__ in (Exception.__init__, ValueError.__init__, IndexError.__init__, OSError.__init__):
            assert str(kind(SPOOFED)) == ESCAPED, kind
        assert "_Printable" in {each.__name__ for each in kind.__mro__}, kind
    assert str(NotInStoreError(SPOOFED)) == ESCAPED
    assert str(pickle.loads(pickle.dumps(TokenfstError(SPOOFED)))) == ESCAPED
    with pytest.warns(TokenfstWarning) as told:
        warnings.warn(SPOOFED, TokenfstWarning, stacklevel=1)
    assert str(told[0].message) == ESCAPED


def test_front_ends() -> None:
    with pytest.raises(PatternSyntaxError) as refused:
        regex("x\u202ey\x1b(")
    assert str(refused.value).splitlines() == [
        "missing ), unterminated subpattern (position 4)",
        r"  x\u202ey\x1b(",
        "              ^",
    ]
    assert refused.value.pattern == "x\u202ey\x1b("
    with pytest.raises(SchemaError) as wrong:
        json_schema({"properties": {"\u202e\x1b": {"type": "nothing"}}})
    assert str(wrong.value).isprintable() and r"\u202e\x1b" in str(wrong.value)


def test_carets_stand_below_their_characters() -> None:
    assert caret("ab\tc", 3) == "  ab\tc\n    \t^"
    assert caret("one\n\u200btwo", 5) == "  \\u200btwo\n        ^"
    assert caret("ab", 5) == "  ab\n       ^"


def test_of_a_long_line_the_part_around_the_caret_is_shown() -> None:
    assert caret("a" * 400, 399) == f"  {'a' * 400}\n{' ' * 401}^"
    long = "a" * 1000 + "(" + "b" * 100_000
    assert caret(long, 1000) == f"  …{'a' * 100}({'b' * 99}…\n{' ' * 103}^"
    assert caret(long, 0) == f"  {'a' * 100}…\n  ^"
    assert caret("x\n" + long, 1002) == caret(long, 1000)
    assert caret(b"a" * 1000, 1000) == f"  …{'a' * 100}\n{' ' * 103}^"
    with pytest.raises(PatternSyntaxError) as refused:
        regex("a" * 100_000 + "(")
    assert len(str(refused.value)) < 500


def test_the_command_line(tmp_path: Path) -> None:
    for arguments in (
        ["check", "(" + SPOOFED[:7], "a"],
        [SPOOFED[:9]],
        ["lint", "--grammar", SPOOFED[:9]],
        ["inspect", str(tmp_path / SPOOFED[:9])],
        ["check", f"--{SPOOFED[:9]}", "a"],
    ):
        done = tokenfst(*arguments)
        assert done.code == 2
        assert done.err.replace("\n", "").isprintable() and r"\u202e" in done.err, (arguments, done.err)
