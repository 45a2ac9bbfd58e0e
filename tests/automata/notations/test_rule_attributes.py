"""llguidance's attributes of rules: ``stop``, ``max_tokens`` and ``temperature`` against their definitions.

``stop`` is compared text by text, temperatures at every beginning of every word of random grammars, under rollback and
fork too. What ``max_tokens`` means, token by token, is in tests/decoding/token_automata/test_few_tokens.py.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tokenfst
from reference.grammars.rule_attributes import heated_words, lark, stopped, temperatures, texts
from tokenfst import Matcher, Vocabulary, ebnf, gbnf, lark_grammar, regex
from tokenfst.errors import (
    ConstraintError,
    EmptyLanguageError,
    PatternError,
    PatternSyntaxError,
    UnsupportedPatternError,
)

SINGLE = [bytes([byte]) for byte in range(256)]
VOCABULARY = Vocabulary([*SINGLE, b"ab", b"abc", b"xyz", b"", b"<end>", b"foo<"], 259)
EOS = 259


def ids(*tokens: bytes) -> list[int]:
    return [VOCABULARY.ids(token)[0] for token in tokens]


def follow(text: str, **named: Any) -> Matcher:
    return tokenfst.compile(lark_grammar(text, **named), VOCABULARY).matcher()


# --- stop ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["[ab]*", "(ab)*", "a*b?", "[ab]{1,3}", "a|ab|abb", "[ab]*a"])
@pytest.mark.parametrize("stop", ["b", "ab", "aa", "aba", "a|bb", "b+", "(a|b)b", "ab?"])
def test_stop(words: str, stop: str) -> None:
    wanted = stopped(words, stop, "ab", 5)
    for grammar in (
        lark_grammar(f"start[stop=/{stop}/]: A\nA: /{words}/"),
        lark_grammar(f"start: a\na[stop=S]: /{words}/\nS: /{stop}/"),
    ):
        assert {text for text in texts("ab", 5) if grammar.accepts(text)} == _matched(words, wanted)


def _matched(words: str, wanted: set[str]) -> set[str]:
    """Those that are words of the terminal as lark reads it: what ``re.match`` takes all of."""
    alone = lark_grammar(f"start: /{words}/")
    return {text for text in wanted if alone.accepts(text)}


def test_stop_as_llguidance_documents_it() -> None:
    grammar = lark_grammar(
        'with_stop[capture, stop="<end>"]: /.*/\nouter[capture]: with_stop "<end>"\nstart: outer "."'
    )
    found = grammar.captures("foo<end>.")
    assert [each.text for each in found["with_stop"]] == ["foo"]
    assert [each.text for each in found["outer"]] == ["foo<end>"]
    assert not grammar.accepts("foo<end>bar<end>.")
    other = lark_grammar('start: with_stop "b"\nwith_stop[capture, stop="<end>"]: /.*/')
    assert other.captures("foob")["with_stop"][0].text == "foo" and not other.accepts("x<end>b")
    unbounded = lark_grammar('start: a "!"\na[stop=""]: /[a-z<>]*/')  # the end of the text stops it: no bound
    assert unbounded.accepts("x<end>!")
    upper = lark_grammar('start: a\na[stop="END"i]: /[a-zA-Z]*/')
    assert upper.accepts("en") and not upper.accepts("xeNd")
    named = lark_grammar('start[stop="."]: /(?P<word>[a-z]+)( (?P<word2>[a-z]+))*/')
    assert [each.text for each in named.captures("ab cd")["word2"]] == ["cd"]


@pytest.mark.parametrize("words", ["[aé]*", "(aé)*", "(aéa)*é?"])
@pytest.mark.parametrize("most", [0, 1, 2, 3])
def test_max_chars(words: str, most: int) -> None:
    alone = lark_grammar(f"start: /{words}/")
    grammar = lark_grammar(f'start: a "!"\na[capture, max_chars={most}]: /{words}/')
    wanted = {text for text in texts("aé", 4) if len(text) <= most and alone.accepts(text)}
    assert {text for text in texts("aé", 4) if grammar.accepts(text + "!")} == wanted
    assert all(grammar.captures(text + "!")["a"][0].text == text for text in wanted)


def test_max_chars_beside_other_attributes() -> None:
    ended = lark_grammar('start: a "z"\na[max_chars=2, suffix="!"]: /[a-z!]*/')
    assert ended.accepts("ab!z") and ended.accepts("!z") and not ended.accepts("abc!z")
    assert not ended.accepts("a!b!z")
    both = follow('start: a "!"\na[max_chars=3, max_tokens=2]: /[a-z]*/')
    assert both.accept_tokens(ids(b"a", b"b")) and not both.accept_tokens(ids(b"c"))
    value = lark_grammar('start: a\na[max_chars=3]: %json {"type": "integer"}')
    assert value.accepts("123") and not value.accepts("1234")


# --- max_tokens -----------------------------------------------------------------------------------------------------


def test_max_tokens_of_terminals() -> None:
    matcher = follow('start: gen "!"\ngen[capture, max_tokens=2]: /[a-z]*/')
    assert matcher.accept_tokens(ids(b"ab", b"xyz"))
    allowed = {token for token in range(256) if matcher.validate_tokens([token])}
    assert allowed == {ord("!")}
    explained = matcher.explain(ord("a"))
    assert not explained and explained.reason in ("text", "tokens")
    assert matcher.accept_tokens([*ids(b"!"), EOS])
    assert [each.text for each in matcher.captures()["gen"]] == ["abxyz"]
    matcher.rollback(3)
    other = matcher.fork()
    assert matcher.accept_token(ord("a")) and not matcher.accept_token(ord("a"))
    assert [each.text for each in other.captures()["gen"]] == ["ab"] and other.accept_token(ord("!"))


@pytest.mark.parametrize("more", ["lazy", 'suffix="z"', 'stop="z"', "max_chars=3", "max_chars=3, lazy"])
def test_max_tokens_beside_other_attributes(more: str) -> None:
    """They bound what the others leave; whether that is empty is no question about tokens."""
    matcher = follow(f'start: a "!"\na[{more}, max_tokens=2]: /[a-c]*z?/')
    words = {"lazy": "", 'suffix="z"': "az", 'stop="z"': "ab", "max_chars=3": "ab", "max_chars=3, lazy": ""}
    assert matcher.accept_tokens([*ids(*(letter.encode() for letter in words[more] + "!")), EOS])
    assert not follow(f'start: a "!"\na[{more}, max_tokens=2]: /[a-c]*z?/').accept_tokens(
        ids(b"a", b"b", b"c")
    )
    with pytest.raises(EmptyLanguageError):
        lark_grammar('start: a "!"\na[max_tokens=2, max_chars=1]: /[a-c]{3}/')


def test_a_token_over_the_border_counts() -> None:
    matcher = follow('start: "foo<" gen "!"\ngen[max_tokens=1]: /[a-z<]{1,4}/')
    assert matcher.accept_tokens(ids(b"foo<", b"ab")) and not matcher.accept_tokens(ids(b"a"))
    crossing = follow('start: "fo" gen "x"\ngen[max_tokens=1]: /o<[a-w]?/')
    assert crossing.accept_tokens(ids(b"foo<")) and not crossing.accept_tokens(ids(b"a"))
    assert crossing.accept_tokens([*ids(b"x"), EOS])
    after = follow('start: "a" gen "c" "!"\ngen[max_tokens=1]: /b+/')
    assert after.accept_tokens([*ids(b"abc", b"!"), EOS])


def test_texts_can_always_be_completed() -> None:
    """Whatever is drawn, a text ends, and no bounded part has more tokens than it may."""
    rng = random.Random(5)
    grammars = (
        'start: "<" word ">"\nword[max_tokens=3]: /[abc]{2,9}/',
        'start: item ("," item)*\nitem[max_tokens=2]: /(ab)+|xyz+/',
        'start: "(" start ")" | word\nword[max_tokens=3]: /[abcxyz]{3,}/',
    )
    for text in grammars:
        automaton = tokenfst.compile(lark_grammar(text), VOCABULARY)
        for _ in range(30):
            matcher = automaton.matcher(max_new_tokens=30)
            while not matcher.is_terminated() and matcher.max_tokens_left:
                choices = [token for token in range(len(VOCABULARY)) if matcher.validate_tokens([token])]
                assert choices
                assert matcher.accept_token(rng.choice(choices))
            assert matcher.is_terminated() or matcher.is_accepting()


def test_max_tokens_of_schemas_and_subgrammars() -> None:
    schema = '%json {"type": "array", "items": {"enum": ["ab", "abc"]}, "maxItems": 3}'
    matcher = follow(f"start: list\nlist[max_tokens=4]: {schema}")
    assert matcher.accept_token(ord("[")) and not matcher.accept_token(ord('"'))  # ab"] are three more
    matcher = follow(f"start: list\nlist[max_tokens=5]: {schema}")
    assert matcher.accept_tokens([*b'["', *ids(b"ab"), *b'"]', EOS])
    given = {"flat": regex("a*"), "deep": gbnf('root ::= "(" root ")" | "a"')}
    assert follow("start: a\na[max_tokens=2]: @flat", grammars=given).accept_tokens([*b"aa", EOS])
    with pytest.raises(UnsupportedPatternError, match="needs a stack: pass"):
        lark_grammar("start: a\na[max_tokens=2]: @deep", grammars=given)
    flat = {"deep": given["deep"].truncate(2)}
    assert follow("start: a\na[max_tokens=3]: @deep", grammars=flat).accept_tokens([*b"(a)", EOS])
    with pytest.raises(ConstraintError, match="more bytes than that"):
        follow('start: "(" start ")" | a\na[max_tokens=2]: "abc"')


def test_on_the_vocabulary_of_a_model(tekken: Vocabulary) -> None:
    """Random tokens of a mask: the thought has bytes of at most five, and each text ends."""
    grammar = lark_grammar('start: "<" thought ">" /[0-9]{2}/\nthought[capture, max_tokens=5]: /[a-zé ]{6,}/')
    automaton = tokenfst.compile(grammar, tekken)
    row, rng = tokenfst.allocate_token_bitmask(1, len(tekken)), random.Random(7)
    for _ in range(6):
        matcher = automaton.matcher()
        while not matcher.is_terminated():
            matcher.fill_next_token_bitmask(row, 0)
            allowed = np.flatnonzero(np.unpackbits(row[0].view(np.uint8), bitorder="little"))
            assert len(allowed)
            assert matcher.accept_token(int(rng.choice(allowed)))
        (thought,) = matcher.captures()["thought"]
        ends = np.cumsum([len(tekken.token_bytes(token)) for token in matcher.tokens[:-1]])
        assert thought.end is not None and sum((thought.begin < ends) & (ends < thought.end)) < 5


# --- temperature ----------------------------------------------------------------------------------------------------


def random_rules(rng: random.Random) -> dict[str, tuple[float | None, Any]]:
    """Rules that call later ones, and the start once more after a letter."""
    names = ["start", "r", "s", "t"]

    def body(depth: int, later: list[str]) -> Any:
        if depth == 0 or rng.random() < 0.3:
            letters = [rng.choice([b"a", b"b", b"ab"])]
            return rng.choice([*letters, *later])
        kind = rng.choice(["cat", "alt", "cat", "star"])
        count = 1 if kind == "star" else rng.choice([2, 3])
        return (kind, *(body(depth - 1, later) for _ in range(count)))

    found: dict[str, tuple[float | None, Any]] = {}
    for number, name in enumerate(names):
        inner = body(2, names[number + 1 :])
        if rng.random() < 0.3 and number < 3:
            inner = ("alt", inner, ("cat", b"b", "start", b"a"))
        found[name] = rng.choice([None, 0.1, 0.5, 1.0, 0.7]), inner
    return found


@pytest.mark.parametrize("seed", range(40))
def test_temperatures(seed: int) -> None:
    rng = random.Random(seed)
    rules = random_rules(rng)
    wanted = temperatures(heated_words(rules, "start", 4))
    matcher = follow(lark(rules))

    def visit(text: bytes) -> None:
        if len(text) > 3:
            return
        heat = matcher.temperature
        assert heat == wanted.get(text), (text, lark(rules))
        other = matcher.fork()
        for byte in b"ab":
            if matcher.accept_token(byte):
                visit(text + bytes([byte]))
                matcher.rollback(1)
        assert matcher.temperature == heat and other.temperature == heat

    visit(b"")


def test_temperature_of_places() -> None:
    matcher = follow('start: "a" value "z"\nvalue[temperature=0.6]: /x+/')
    said = [matcher.temperature]
    for token in b"axxz":
        assert matcher.accept_token(token)
        said.append(matcher.temperature)
    assert said == [None, 0.6, 0.6, 0.6, None]
    matcher.rollback(1)
    assert matcher.temperature == 0.6
    matcher.reset()
    assert (
        matcher.temperature is None and matcher.accept_tokens([*b"axz", EOS]) and matcher.temperature is None
    )
    assert follow('start: "a"').temperature is None
    inner = lark_grammar('start[temperature=0.3]: "x"')
    nested = follow('start: "a" value\nvalue[temperature=0.6]: @item "y"', grammars={"item": inner})
    assert nested.accept_token(ord("a")) and nested.temperature == 0.3
    assert nested.accept_token(ord("x")) and nested.temperature == 0.6
    either = follow('start: left | right\nleft[temperature=0.2]: "a"+\nright[temperature=0.9]: "a" "b"')
    assert either.temperature == 0.9 and either.accept_tokens([*b"aa"]) and either.temperature == 0.2
    blanks = follow('%ignore " "\nstart: hot "z"\nhot[temperature=0.6]: "x"')
    assert blanks.temperature == 0.6 and blanks.accept_token(ord("x")) and blanks.temperature is None
    counted = follow('start: a "!"\na[temperature=0.8, max_tokens=2]: /[a-z]*/')
    assert (
        counted.temperature == 0.8
        and counted.accept_tokens(ids(b"ab", b"xyz"))
        and counted.temperature is None
    )


def test_temperature_under_algebra() -> None:
    heated = lark_grammar('start: "a" b\nb[temperature=0.5]: /[bc]+/')
    for constraint, before in ((heated + regex("!"), b"a"), (regex("x+") | heated, b"a"), (heated.star(), b"aba"),
                               (heated & regex("a[bcd]*"), b"a"), (heated.truncate(3), b"a")):  # fmt: skip
        matcher = tokenfst.compile(constraint, VOCABULARY).matcher()
        assert matcher.accept_tokens([*before]) and matcher.temperature == 0.5
        assert not matcher.captures()


def test_temperature_in_ebnf() -> None:
    grammar = ebnf('root ::= "a" value "z"\nvalue[temperature=0.6, max_tokens=2] ::= "x"+')
    matcher = tokenfst.compile(grammar, VOCABULARY).matcher()
    assert matcher.temperature is None and matcher.accept_tokens([*b"ax"]) and matcher.temperature == 0.6
    assert (
        matcher.accept_token(ord("x")) and not matcher.accept_token(ord("x")) and matcher.temperature is None
    )


# --- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        ("start[max_tokens=0]: /a/", PatternSyntaxError, "a number from 1"),
        ("start[max_chars]: /a/", PatternSyntaxError, "a number from 0"),
        ("start[max_chars=1.5]: /a/", PatternSyntaxError, "a number from 0"),
        ("start[max_chars=3]: <tool>", UnsupportedPatternError, "names other things"),
        ("start[max_tokens]: /a/", PatternSyntaxError, "a number from 1"),
        ("start[max_tokens=1.5]: /a/", PatternSyntaxError, "a number from 1"),
        ("start[temperature=-0.5]: /a/", PatternSyntaxError, "not negative"),
        ('start[temperature="hot"]: /a/', PatternSyntaxError, "not negative"),
        ("start[temperature=0.1, temperature=0.2]: /a/", PatternSyntaxError, "twice"),
        ("start[stop]: /a/", PatternSyntaxError, "a string, a regular expression or a terminal"),
        ('start[stop="a", suffix="b"]: /a/', PatternSyntaxError, "are given together"),
        ('start[stop="a", stop_capture="x"]: /a/', PatternSyntaxError, "write suffix"),
        ('start[stop="a"]: b\nb: "x"', UnsupportedPatternError, "capitalize"),
        ("start[max_tokens=3]: <tool>", UnsupportedPatternError, "names other things"),
        ('start[temperature=0.5]: start "a" | "b"', UnsupportedPatternError, "begins with itself"),
    ],
)
def test_what_is_refused(text: str, error: type[PatternError], match: str) -> None:
    with pytest.raises(error, match=match) as caught:
        lark_grammar(text)
    assert "line 1" in str(caught.value)


def test_grammars_inside_of_grammars() -> None:
    grammar = lark_grammar('start: item %lark { start: item\n item: "b" | "{" item "}" } item\nitem: "a"')
    assert grammar.accepts("aba") and grammar.accepts("a{b}a") and not grammar.accepts("aaa")
    values = lark_grammar(
        'start: "outer:" %lark { start: "inner:" @value }', grammars={"value": regex("[0-9]+")}
    )
    assert values.accepts("outer:inner:12") and not values.accepts("inner:1")
    with pytest.raises(PatternSyntaxError, match="line 2, column") as caught:
        lark_grammar('start: "x" %lark {\n  start: other }')
    assert "other" in str(caught.value)
    with pytest.raises(PatternSyntaxError, match="the closing brace is missing"):
        lark_grammar('start: %lark { start: "}"')


def test_declared_terminals_of_libraries() -> None:
    with pytest.raises(UnsupportedPatternError, match=r"'_INDENT' is made by a program's own lexer"):
        lark_grammar("%import python.file_input\nstart: file_input")
    assert lark_grammar("%import python.eval_input\nstart: eval_input").accepts("f(1,x=[2])")
