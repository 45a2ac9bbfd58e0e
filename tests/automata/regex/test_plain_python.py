"""Plain patterns in Python's syntax that the native core reads, against the general way: the same nodes and answers."""

from __future__ import annotations

import contextlib
import random
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.worlds.same_grammars import assert_same
from tokenfst import Budget, regex
from tokenfst._native import PlainPattern
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, Ranges, normalize
from tokenfst.automata.expressions.expression import Expr, concat
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.languages.language import Language
from tokenfst.automata.regex import leftmost, translate
from tokenfst.automata.regex.named_groups import NAMES
from tokenfst.automata.regex.parse import MAXREPEAT, Pattern
from tokenfst.automata.regex.plain import _classes, read_plain
from tokenfst.errors import BudgetExceeded, PatternError


def general(pattern: str) -> tuple[Pattern, Expr]:
    """The tree of a pattern, and its expression by the general way."""
    read = Pattern(pattern, 0, Budget(), reserved=NAMES)
    return read, translate._Translator(read, Deadline(Budget(), pattern)).plain(read.tree.data, read.flags)


def ranges_of(made: leftmost.Leftmost, chosen: np.ndarray) -> Ranges:
    """The characters of the chosen classes."""
    ends = [*(made.begins[1:] - 1).tolist(), MAX_CODE_POINT]
    found = zip(made.begins.tolist(), ends, made.group.tolist(), strict=True)
    return normalize((low, high) for low, high, number in found if number >= 0 and chosen[number])


def without_surrogates(ranges: Ranges) -> Ranges:
    pieces = [(low, min(high, 0xD7FF)) for low, high in ranges] + [
        (max(low, 0xE000), high) for low, high in ranges
    ]
    return normalize((low, high) for low, high in pieces if low <= high)


def check(pattern: str) -> PlainPattern | None:
    """A pattern if it is plain. Then all that is known of it must be what the general way says."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read_plain(pattern, None)
    if found is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # `re` warns of no plain pattern
            read, expr = general(pattern)
        assert_same(found.expr(), expr)
        low, high = read.tree.getwidth()
        assert found.width() == (low, min(high, MAXREPEAT))
        assert found.is_orderly() == leftmost.is_orderly(read)
        with contextlib.suppress(BudgetExceeded):
            made = leftmost.read(read, Budget(states=500))
            longer = found.longer_by()
            assert (longer is not None) == (made is not None and not made.hides)
            if made is not None and longer is not None:
                after = made.table[1:][made.accepting[1:]].any(axis=0)
                assert without_surrogates(longer) == ranges_of(made, after)
                if found.is_repetition():
                    words = made.expr(Budget())
                    assert Language(words).includes(Language(concat(words, words)))
        assert found.first() == leftmost.Places(read, folded=True).first
    return found


PLAIN = [
    *("[ \\t]+", "([ab])+", "(([ab]+))", "[ab]+?", "(a+)+", "[ab]{1,}", "[ab]{2,}"),
    *(
        "",
        "a",
        "abc",
        "a|b",
        "a|",
        "|",
        "||a",
        "ab|ac",
        "ab|ab",
        "ab|ac|a",
        "(a)",
        "(?:a)",
        "(?:ab)c",
        "x(?:ab)y",
        "(ab)c",
    ),
    *(
        "()",
        "(?:)",
        "(|a)",
        "(?:|a)",
        "a*",
        "a+?",
        "a??",
        "(?:a*)*",
        "(a*)*",
        "(?:a|b)|c",
        "(?:a|b)|(?:c|d)",
        "[ab]|[ab]",
    ),
    *(
        "[ab]c|[ab]d",
        "[ab]c|[ba]d",
        "\\d|a",
        "\\d|[\\d]",
        "[.]",
        "[.]a",
        "[^a]",
        "[^a]|b",
        "[^ab]|b",
        ".|a",
        ".a|.b",
        "\\Da|\\Db",
    ),
    *(
        "a{3}",
        "a{3,}",
        "a{,3}",
        "a{,}",
        "a{2,3}?",
        "[ab]{9}",
        "(?:ab){9,}",
        "(a|bc){2,10}x",
        "ab{9}",
        "é{9}",
        "\\x41{9}",
        "(é){10}?",
    ),
    *(
        "{",
        "a{",
        "a{}",
        "a{b}",
        "a{1",
        "a{1,2",
        "{}",
        "a{1,2,3}",
        "x{}{9}",
        "]",
        "}",
        "a]",
        "[]a]",
        "[^]a]",
        "[]-a]",
        "[a-]",
        "[a\\]]",
    ),
    *(
        "\\.",
        "\\-",
        "\\\\",
        "\\é",
        "é",
        "\U0001f600+",
        "\\x41",
        "\\u00e9",
        "\\U0001f600",
        "\\n\\t\\r\\f\\v\\a",
        " ",
        "#",
        "a #b",
        "\x00",
    ),
    *(
        "[\\s\\S]",
        "[^\\s\\S]",
        "[^\\s\\S]*",
        "[^\\s\\S]{2}",
        "a(?:[^\\s\\S]|b)",
        "\\w+@\\w+",
        "(((a)))",
        "(a|ab)",
        "(?:ab|a)",
        "a*a",
        "a*ab",
    ),
    *(
        "a{0}",
        "a{0,0}b",
        "a{1}",
        "(?:){3}",
        "(?:){1000}",
        "(){2}",
        "(ab|cd){2}",
        "(a?){3}",
        "(?:a{1,2}){3}",
        "[a-f0-9]{32}",
        "a{1000}",
    ),
    *(
        '"([^"\\\\\\x00-\\x1F]|\\\\(["\\\\\\/bfnrt]|u[0-9a-fA-F]{4}))*"',
        "-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?",
    ),
    *(
        "(a|b|c)*abb",
        "[a-z]+(?:-[a-z]+)*",
        "(?:[^*]|\\*+[^*/])*",
        "a(b(c(d)?)?)?",
        "(ab*)|(ac*)",
        "foo|foobar",
        "foobar|foo",
        "(foobar|foo)",
    ),
    *(
        "(?i:a)",
        "(?i:select)",
        "(?ai:k\\w[a-z])",
        "(?i:k[k-s]\u017f)",
        "(?i:a|A)",
        "(?i:ab|AB|ac)",
        "(?i:[^k]|k)",
        "(?i:a1-2)+",
        "(?i:a(?-i:b)c)d",
        "(?i:(?i:a)|b)",
        "(?i:(?:a)|b)",
        "(?i:(?:ab)|ac)",
        "(?a:\\w(?u:\\w)\\d)\\w",
        "(?s:.)|.",
        "(?s:.(?-s:.))",
        "(?ims:a.b)",
        "(?m:a)b",
        "(?-m:a)b",
        "(?m:a|b)|c",
        "(?i:a){9}",
        "(?i:(?:ab){9})",
        "(?i:\\x41\\u212a)",
        "(?i:ß|ẞ)",
        "(?i:)",
        "(?i:|a)",
        "(?i:a*a)",
        "(?i:a)|(?i:a)b",
        "(?i:😀[𐐀-𐑏])",
        "(?ai:foo|foobar)",
        "(?i:[a-z_][a-z0-9_]*)",
    ),
]
OTHERS = [
    *(
        "^",
        "$",
        "^a$",
        "a\\b",
        "\\A",
        "\\Z",
        "(?i)a",
        "(?i:a",
        "(?L:a)",
        "(?x:a)",
        "(?au:a)",
        "(?i-i:a)",
        "(?i-:a)",
        "(?-a:a)",
        "(?q:a)",
        "(?i",
        "(?i)",
        "(?i:^)",
        "(?P<n>a)",
        "(?P<TEXT>)",
        "(?=a)",
        "(?!a)",
        "(?<=a)b",
        "(?#c)",
        "(?>a)",
        "a++",
    ),
    *(
        "(a)\\1",
        "\\0",
        "\\01",
        "\\101",
        "*",
        "a**",
        "a{2}{3}",
        "a{2}*",
        "|*",
        "(*)",
        "(",
        ")",
        "a)",
        "(a",
        "[",
        "[a",
        "[b-a]",
        "[\\q]",
        "\\q",
    ),
    *(
        "\\",
        "a{3,2}",
        "a{99999999999}",
        "[[a]",
        "[a--b]",
        "[a&&b]",
        "[a||b]",
        "[a~~b]",
        "[--a]",
        "\\ud800",
        "[\\ud800]",
        "\ud800",
        "\\x4",
        "\\u00",
    ),
    *(
        "\\N{BULLET}",
        "\\U00110000",
        "[\\N{BULLET}",
        "(" * 50 + ")" * 50,
        "a{1}{2}",
        "(?:a)+*",
        "{1}",
        "({1})",
        "a|{2}",
        "(?x: a)",
        "a" * 20_001,
    ),
]


@pytest.mark.parametrize("pattern", PLAIN)
def test_plain_patterns(pattern: str) -> None:
    assert check(pattern) is not None


@pytest.mark.parametrize("pattern", OTHERS)
def test_what_is_not_plain(pattern: str) -> None:
    assert check(pattern) is None


PIECES = st.sampled_from(
    [
        *(
            "a",
            "b",
            "ab",
            "0",
            "-",
            ".",
            "\\.",
            "\\d",
            "\\W",
            "[ab]",
            "[ba]",
            "[^a]",
            "[a-c]",
            "[\\w-]",
            "[^]]",
            "é",
            "]",
            "[é-ü]",
        ),
        *(
            "|",
            "|",
            "|",
            "(",
            "(",
            "(?:",
            "(?i:",
            "(?ai:",
            "(?s-i:",
            ")",
            ")",
            ")",
            "*",
            "+",
            "?",
            "??",
            "{2}",
            "{0,}",
            "{1,9}",
            "{10}",
            "{,2}",
            "{",
            "\\n",
        ),
        *("^", "\\b", "\\x61", "{2,1}", "(?i)", "[", "++", "\\1"),
    ]
)


@settings(max_examples=3000, deadline=None)
@given(st.lists(PIECES, max_size=10).map("".join))
def test_random_patterns(pattern: str) -> None:
    check(pattern)


def _nested(rng: random.Random, depth: int) -> str:
    kind = rng.randrange(10) if depth else rng.randrange(4)
    if kind < 4:
        return rng.choice(["a", "b", "c", "[ab]", "[ba]", "[^a]", "\\d", "x", "é", ".", "a", "[c]", "ab"])
    inner = [_nested(rng, depth - 1) for _ in range(rng.randint(1, 3))]
    if kind < 7:
        return f"({rng.choice(['', '?:'])}{'|'.join(inner)})" + rng.choice(
            ["", "", "*", "+", "?", "{2}", "{9}", "{1,3}"]
        )
    return "".join(inner)


def test_many_nested_patterns() -> None:
    """All are plain, and equal by each question."""
    rng = random.Random(1)
    for _ in range(4000):
        pattern = _nested(rng, 4)
        assert check(pattern) is not None, pattern


def test_budget_of_positions() -> None:
    """A pattern that is larger than the budget is left to the general way, which refuses it with its place."""
    pattern = "(a[bc]d{3}){4}"
    assert read_plain(pattern, Budget(positions=20)) is not None
    assert read_plain(pattern, Budget(positions=19)) is None
    for large in ("[ab]{100}", "x(?:[ab]{10}){10}"):
        with pytest.raises(BudgetExceeded) as caught:
            regex(large, budget=Budget(positions=50))
        with pytest.raises(BudgetExceeded) as expected:
            Pattern(large, 0, Budget(positions=50))
        assert str(caught.value) == str(expected.value)
    assert not regex("[ab]{3}", budget=Budget(positions=1 << 80)).is_empty()


def test_budget_of_seconds() -> None:
    with pytest.raises(BudgetExceeded):
        regex("abc", budget=Budget(seconds=1e-9))


def test_classes_are_forgotten_in_the_end() -> None:
    """Patterns stay right when the table of classes is emptied, and it does not grow without bound."""
    for code in range(0x4E00, 0x4E00 + 5000):
        regex(f"[{chr(code)}{chr(code + 1)}]x|[ab]")
    assert len(_classes) <= 4096
    assert check("[ab]c|[ab]d") is not None


def test_errors_are_those_of_the_general_way() -> None:
    for pattern in OTHERS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                Pattern(pattern, 0, Budget(), reserved=NAMES)
                continue
            except PatternError as error:
                expected = error
            with pytest.raises(type(expected)) as caught:
                regex(pattern)
        assert str(caught.value) == str(expected)
