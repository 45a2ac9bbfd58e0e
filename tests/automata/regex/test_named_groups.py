"""The named groups against their slow twins: every short text of small alphabets, random ones, a real vocabulary."""

from __future__ import annotations

import contextlib
import itertools
import random
import re
import string
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenfst
from reference.expressions.named_groups import (
    is_list,
    is_quoted,
    is_subsequence,
    is_substring,
    is_unquoted,
    is_until,
)
from tokenfst import Grammar, Language, lark_grammar, regex
from tokenfst.automata.grammars.lists import (
    delimited_list,
    delimited_subsequence_of,
    quoted_text,
    substring_of,
    text_until,
    unquoted_text,
)
from tokenfst.automata.pieces.substrings import SparseDfa
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, ConstraintError, PatternSyntaxError, UnsupportedPatternError


def texts(alphabet: str, longest: int) -> Iterator[str]:
    for length in range(longest + 1):
        yield from map("".join, itertools.product(alphabet, repeat=length))


def agree(language: Language | Grammar, says: Callable[[str], bool], alphabet: str, longest: int) -> None:
    accepted = 0
    for text in texts(alphabet, longest):
        assert language.accepts(text) == says(text), text
        accepted += says(text)
    assert accepted


# --- substrings ---------------------------------------------------------------------------------------


def words_of(dfa: SparseDfa) -> set[bytes]:
    found, open_ = set(), [(dfa.start, b"")]
    while open_:
        state, word = open_.pop()
        if dfa.accepting[state]:
            found.add(word)
        row = dfa.table[state, dfa.classes]
        open_ += ((int(row[byte]), word + bytes([byte])) for byte in np.flatnonzero(row))
    return found


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize(("alphabet", "longest"), [("ab", 6), ("a —", 4), ("aé—", 4)])
def test_substrings_of_every_short_text(alphabet: str, longest: int, words: bool) -> None:
    for text in texts(alphabet, longest):
        parts = {text[i:j] for i in range(len(text) + 1) for j in range(i, len(text) + 1)}
        wanted = {part.encode() for part in parts if is_substring(part, text, words)}
        dfa = substring_of(text, words).expr.value
        assert isinstance(dfa, SparseDfa)
        assert words_of(dfa) == wanted, text
        size = len(text.encode())
        assert dfa.num_states - 1 <= max(2 * size - 1, size + 1)
        assert len(dfa.edges) <= max(3 * size - 4, 2 * size)


@settings(max_examples=60, deadline=None)
@given(st.text("ab é—\U0001f600", max_size=40), st.booleans(), st.data())
def test_substrings_of_random_texts(text: str, words: bool, data: st.DataObject) -> None:
    language = substring_of(text, words)
    begin = data.draw(st.integers(0, len(text)))
    part = text[begin : data.draw(st.integers(begin, len(text)))]
    assert language.accepts(part) == is_substring(part, text, words)
    other = data.draw(st.text("ab é—", max_size=4))
    assert language.accepts(other) == is_substring(other, text, words)


def test_substrings_of_bytes_begin_anywhere() -> None:
    data = "é—".encode()
    language = substring_of(data)
    for begin, end in itertools.combinations(range(len(data) + 1), 2):
        assert language.accepts(data[begin:end])
    assert not substring_of("é—").accepts(data[1:3])
    assert substring_of(bytes(range(256))).accepts(b"\xfe\xff")


def test_substrings_are_composed_like_any_language() -> None:
    text = "the cat sat on the mat"
    part = substring_of(text, words=True) - Language.epsilon()
    quote = Language.literal("<") + part + Language.literal(">")
    assert quote.accepts("<cat sat>") and not quote.accepts("<at sat>") and not quote.accepts("<>")
    assert (part & regex("[a-z]+")).accepts("mat") and not (part & regex("[a-z]+")).accepts("the mat")
    assert (~part).accepts("at") and part.reverse().accepts("tac")
    assert part.minimize().equivalent(part)
    document = lark_grammar('start: "(" start ")" | WORD\nWORD: /[a-z ]+/') & (
        regex(r"\(*") + part + regex(r"\)*")
    )
    assert document.accepts("((cat sat))") and not document.accepts("((catsat))")


def test_substrings_in_an_artifact_and_in_a_mask_of_a_real_vocabulary(tmp_path: object) -> None:
    from pathlib import Path

    assert isinstance(tmp_path, Path)
    vocabulary = tokenfst.load_vocabulary("mistral:tekken_240911")
    text = (Path(__file__).parents[3] / "docs" / "constraints" / "regex.md").read_text()
    language = substring_of(text)
    automaton = tokenfst.compile(language, vocabulary)
    matcher = automaton.matcher()
    bitmask = tokenfst.allocate_token_bitmask(1, len(vocabulary))
    prefix = b""
    random_ = random.Random(1)
    for _ in range(6):
        matcher.fill_next_token_bitmask(bitmask)
        bits = np.unpackbits(bitmask.view(np.uint8), bitorder="little")[: len(vocabulary)]
        allowed = [t for t in np.flatnonzero(bits).tolist() if vocabulary.token_bytes(t)]
        data = text.encode()
        sample = [
            *random_.sample(range(len(vocabulary)), 500),
            *random_.sample(allowed, min(50, len(allowed))),
        ]
        for token in sample:
            spelled = vocabulary.token_bytes(token)
            if spelled:
                found = prefix + spelled in data and (prefix + spelled)[0] & 0xC0 != 0x80
                assert bool(bits[token]) == found, (prefix, spelled)
        token = random_.choice(allowed)
        prefix += vocabulary.token_bytes(token)
        assert matcher.accept_token(token)
    small = tokenfst.compile(substring_of(text[:300], words=True), vocabulary).expand()
    small.save(tmp_path / "part.safetensors")
    loaded = tokenfst.load(tmp_path / "part.safetensors", vocabulary).matcher()
    first = text[:300].split()[1]
    assert (
        all(loaded.accept_token(token) for token in vocabulary_tokens(vocabulary, first))
        and loaded.is_accepting()
    )


def vocabulary_tokens(vocabulary: tokenfst.Vocabulary, word: str) -> list[int]:
    """The word byte by byte."""
    single = {
        vocabulary.token_bytes(t): t for t in range(len(vocabulary)) if len(vocabulary.token_bytes(t)) == 1
    }
    return [single[bytes([byte])] for byte in word.encode()]


def test_what_substrings_refuse() -> None:
    with pytest.raises(ConstraintError, match="lone surrogate"):
        substring_of("a\ud800")
    with pytest.raises(ConstraintError, match="decode it"):
        substring_of(b"a b", words=True)
    with pytest.raises(BudgetExceeded, match="substring_of"):
        substring_of("abcabd", budget=Budget(states=4))
    with pytest.raises(BudgetExceeded, match="substring_of"):
        substring_of("abcbc", budget=Budget(states=7))
    assert substring_of("abcbc", budget=Budget(states=8)).accepts("bc")


# --- quoted, unquoted, until --------------------------------------------------------------------------


def test_quoted_text() -> None:
    agree(quoted_text(), is_quoted, 'a"\\\n', 6)
    agree(quoted_text("'\""), lambda text: is_quoted(text) or is_quoted(text, "'"), "a\"'\\", 5)
    assert quoted_text().accepts('"—\\—"')
    for quotes in ("", "\\", "\n", "\ud800"):
        with pytest.raises(ConstraintError, match="quotation marks"):
            quoted_text(quotes)


def test_unquoted_text() -> None:
    agree(unquoted_text(), is_unquoted, "a:# -", 6)
    agree(unquoted_text(), is_unquoted, "a?,[\t\n\x7f\ufeff'", 4)
    assert unquoted_text().accepts("http://a.b/c#d: e".replace(": ", ":")) and not unquoted_text().accepts(
        "a: b"
    )


def test_unquoted_text_is_a_plain_scalar_to_pyyaml() -> None:
    yaml = pytest.importorskip("yaml")
    for text in texts("a:# -", 5):
        tokens = []
        with contextlib.suppress(yaml.YAMLError):
            tokens = [t for t in yaml.scan(f"k:\n  {text}") if isinstance(t, yaml.ScalarToken)]
        plain = len(tokens) == 2 and tokens[1].plain and tokens[1].value == text
        # PyYAML reads YAML 1.1, which is looser about a colon in front of "#" or of another colon.
        if plain and "::" not in text and not re.search(r":#", text):
            assert unquoted_text().accepts(text), text
        if unquoted_text().accepts(text) and ":" not in text:
            assert plain, text


@pytest.mark.parametrize("stop", ["b", "ab", "aa", "aba", "é", "aéa"])
def test_text_until(stop: str) -> None:
    language = text_until(stop)
    agree(language, lambda text: is_until(text, stop), "abé", 6)
    assert language.size().states <= 4 * len(stop.encode()) + 8


def test_text_until_a_language() -> None:
    language = text_until(regex("ab|b*c"))
    agree(language, lambda text: bool(re.fullmatch(r"(?:(?!ab|c)[\s\S])*?(?:ab|c)", text)), "abc", 6)
    assert text_until(Language.epsilon()).equivalent(Language.epsilon())
    with pytest.raises(ConstraintError, match="empty stop"):
        text_until("")


# --- lists --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "separator"), [(("a", "ab"), ","), (("a", "b", "aa"), "a"), (("a", "b"), "")]
)
def test_lists(items: tuple[str, ...], separator: str) -> None:
    any_item = Language.union_of(map(Language.literal, items))
    agree(delimited_list(any_item, separator), lambda text: is_list(text, items, separator), "ab,", 6)
    agree(
        delimited_subsequence_of(items, separator),
        lambda text: is_subsequence(text, items, separator),
        "ab,",
        6,
    )


def test_list_lengths() -> None:
    for low, high in [(0, 0), (0, 2), (2, 3), (1, None), (3, None)]:
        language = delimited_list("x", ",", low, high)
        for count in range(6):
            wanted = low <= count and (high is None or count <= high)
            assert language.accepts(",".join("x" * count)) == wanted
    with pytest.raises(ConstraintError, match="items"):
        delimited_list("x", ",", 2, 1)
    with pytest.raises(ConstraintError, match="at least one"):
        delimited_subsequence_of([], ",")


def test_lists_of_a_grammar_are_grammars() -> None:
    nested = lark_grammar('start: "(" start ")" | "x"')
    grammar = delimited_list(nested, ", ")
    assert isinstance(grammar, Grammar)
    assert grammar.accepts("((x)), x") and not grammar.accepts("((x), x)")
    some = delimited_subsequence_of([nested, "y", nested], ";")
    assert some.accepts("(x);(x)") and some.accepts("y") and not some.accepts("y;y")


def test_a_thousand_items() -> None:
    items = [f"item{k}" for k in range(1000)]
    language = delimited_subsequence_of(items, ", ")
    assert language.accepts(", ".join(items)) and language.accepts("item7, item999")
    assert not language.accepts("item9, item7")


# --- in patterns --------------------------------------------------------------------------------------

SAME: list[tuple[str, Language]] = [
    (r"(?P<QUOTED_TEXT>)", quoted_text()),
    (r"(?P<QUOTED_TEXT>)=(?P<QUOTED_TEXT>)", quoted_text() + Language.literal("=") + quoted_text()),
    (r"(?P<UNQUOTED_TEXT>)", unquoted_text()),
    (r"(?P<TEXT_UNTIL></b>)?", text_until("</b>").optional()),
    (r"(?P<TEXT_UNTIL>ab|c)", text_until(regex("ab|c"))),
    (r"(?P<SUBSTRING_OF>abc)", substring_of("abc")),
    (r"(?P<SUBSTRING_OF>" + re.escape(string.printable) + ")", substring_of(string.printable)),
    (r"(?P<SUBSTRING_OF>\x41\n)", substring_of("A\n")),
    (r"((?P<DELIMITED_LIST>[0-9]+|,)){2}", regex("[0-9]+(,[0-9]+)*").repeat(2, 2)),
    (r"(?P<DELIMITED_LIST>(?:a|b)|[,|])", regex("[ab]([,|][ab])*")),
    (r"(?i:(?P<DELIMITED_LIST>a|x))(?P<DELIMITED_LIST>a|x)", regex("(?i:a(xa)*)a(xa)*")),
    ("(?x) (?P<DELIMITED_LIST> a # item (\n | , )", regex("a(,a)*")),
    (r"(?P<DELIMITED_SUBSEQUENCE_OF>a|b|;)", regex("a(;b)?|b")),
    (r"(?P<DELIMITED_LIST>(?P<DELIMITED_LIST>a|,)|;)", regex("a(,a)*(;a(,a)*)*")),
    (r"\b(?P<DELIMITED_LIST>[a-c]|,)\b(?!c)[,c]", regex(r"[a-c](,[a-c])*,")),
    (r"(?P<g000>x)(?P<QUOTED_TEXT>)", Language.literal("x") + quoted_text()),
    (r"[(?P<IMAGE>)](?#(?P<IMAGE>)", regex("[(?P<IMAGE>)]")),
]


@pytest.mark.parametrize(("pattern", "language"), SAME, ids=[pattern[:40] for pattern, _ in SAME])
def test_groups_in_patterns_mean_the_functions(pattern: str, language: Language) -> None:
    answer = regex(pattern).equivalent(language)
    assert answer, str(answer)


ERRORS: list[tuple[str | bytes, type[Exception], int, str]] = [
    (r"a(?P<TEXT_TOKEN>b)+", PatternSyntaxError, 1, "takes nothing"),
    (r"ab(?P<PARAGRAPH_TOKEN>|)", PatternSyntaxError, 2, "takes nothing"),
    (r"(?=a)(?P<IMAGE>)(?P<IMAGE>)", UnsupportedPatternError, 5, "beside IMAGE"),
    (r"x(?P<DELIMITED_LIST>a)", PatternSyntaxError, 1, "item|separator"),
    (r"(?P<DELIMITED_SUBSEQUENCE_OF>a)", PatternSyntaxError, 0, "at least two"),
    (r"(?P<QUOTED_TEXT>a)", PatternSyntaxError, 0, "nothing"),
    (r"(?P<SUBSTRING_OF>)", PatternSyntaxError, 0, "re.escape"),
    (r"(?P<SUBSTRING_OF>ab+)", PatternSyntaxError, 0, "operators"),
    (r"(?P<TEXT_UNTIL>)", PatternSyntaxError, 0, "stop phrase"),
    (r"xx(?P<DELIMITED_LIST>a[|,)", PatternSyntaxError, 22, "unterminated"),
    (r"xx(?P<DELIMITED_LIST>(a)\1|,)", UnsupportedPatternError, 24, "back-reference"),
    (r"xx(?P<DELIMITED_LIST>a|,(?=b))", UnsupportedPatternError, 23, "look-around"),
    (r"(?i)(?P<SUBSTRING_OF>ab)", UnsupportedPatternError, 4, "ignoring case"),
    (rb"a(?P<QUOTED_TEXT>)", UnsupportedPatternError, 1, "str pattern"),
    (r"(?<=(?P<QUOTED_TEXT>))a", PatternSyntaxError, 0, "fixed-width"),
    (r"(?P<QUOTED_TEXT>)(?P<DELIMITED_LIST>(?P<IMAGE>a)|,)", PatternSyntaxError, 36, "takes nothing"),
    (r"(?P<QUOTED_TEXT>)a{2}{3}", PatternSyntaxError, 21, "multiple repeat"),
]


@pytest.mark.parametrize(("pattern", "kind", "position", "message"), ERRORS)
def test_errors_name_the_place(pattern: str, kind: type[Exception], position: int, message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)) as caught:
        regex(pattern)
    assert caught.value.position == position  # type: ignore[attr-defined]
    assert caught.value.pattern == pattern  # type: ignore[attr-defined]


def test_the_budget_names_the_group() -> None:
    with pytest.raises(BudgetExceeded, match="substring_of"):
        regex(r"(?P<SUBSTRING_OF>abcabcd)", budget=Budget(states=5))
