"""Masks where rules are called first: by fragments of what the rules begin with, by whole walks, by single tokens."""

from __future__ import annotations

import itertools
import random

import pytest
from support.running.seeds import few_and_many_seeds, in_ranges

from tests.support.worlds.token_worlds import allowed
from tokenfst import Matcher, Vocabulary, _native
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.notations.bundled import bundled_grammar, bundled_grammars
from tokenfst.automata.notations.gbnf import gbnf
from tokenfst.automata.notations.lark_syntax import lark_grammar

NO_FRAGMENTS = 0xFFFFFFFE
"""So many nodes of the trie are walked one by one: no fragment, and no sub-trie taken as a whole."""


def composed(grammar: Grammar, vocabulary: Vocabulary) -> list[_native.TokenAutomaton]:
    program = grammar.program().native()
    return [
        _native.TokenAutomaton.compose(program, vocabulary.native, 1_000_000, 1 << 31, 60.0, narrow)
        for narrow in (NO_FRAGMENTS, 192, 0)
    ]


def walk_alike(
    rng: random.Random, built: list[_native.TokenAutomaton], vocabulary: Vocabulary, steps: int
) -> None:
    """Along random tokens all masks are equal."""
    matchers = [Matcher(automaton) for automaton in built]
    for _ in range(steps):
        masks = [allowed(matcher, len(vocabulary)) for matcher in matchers]
        assert all(mask == masks[0] for mask in masks), matchers[0].tokens
        choices = sorted(masks[0] - set(vocabulary.eos_token_ids))
        if not choices:
            break
        token = rng.choice(choices)
        assert all(matcher.accept_token(token) for matcher in matchers)


@pytest.mark.parametrize("name", bundled_grammars())
def test_masks_of_the_bundled_grammars_equal_whole_walks(name: str, tekken: Vocabulary) -> None:
    rng = random.Random(name)
    built = composed(bundled_grammar(name), tekken)
    for _ in range(3):
        walk_alike(rng, built, tekken, 10)


# --- small worlds ---------------------------------------------------------------------------------------

WORDS = ["a", "b", "_", "1", "é", " ", "(", ")", "+", ";"]
TOKENS = [bytes([byte]) for byte in range(256)]  # shortcuts need all bytes
TOKENS += ["".join(chars).encode() for n in (2, 3) for chars in itertools.product(WORDS, repeat=n)]
TOKENS += [b"a\xc3", b"\xa9b", b" \xc3", b"\xa9 a"]
SMALL = Vocabulary([*TOKENS, b""], eos_token_id=len(TOKENS))
NAMES = ["[a_] [ab_1]*", "[ab]+", "[1]+ ([a] [1]+)?", "[^ ()+;]+", "[ab] [ab ]*", '"é"* [a]+', "[b]"]
BLANKS = ["", "[ ]*", "[ ]+", '([ ] | ";" [ab]* " ")*']


def random_grammar(rng: random.Random) -> Grammar:
    """Rules that call each other first: operators, brackets, prefixes, and names between blanks."""

    def name() -> str:
        return f"({rng.choice(NAMES)}) {blank}"

    blank = rng.choice(BLANKS)
    prefix = rng.choice(['"+" sign | ', '"(" sign ")" | ', ""])
    return gbnf(
        f"""
        root ::= {rng.choice(BLANKS)} sum {rng.choice(["", "sum", blank])}
        sum ::= {rng.choice(['sum "+" sign | ', 'sum ";" | ', ""])} sign {rng.choice(["", '("+" ' + blank + " sign)*"])}
        sign ::= {prefix} {name()} | {rng.choice([name(), "atom", '"é" sum'])} | atom
        atom ::= "(" {blank} sum ")" {blank} | {name()} {rng.choice(["", '"(" sum? ")"'])}
        """
    )


def random_exclusions(rng: random.Random) -> Grammar:
    """The same, of names without some words, but not without all that begin with either letter."""

    def name(number: int) -> str:
        words = rng.sample([rng.choice("ab"), "ab", "ba", "aa", "a1", "a_b", "b1a"], rng.randint(1, 4))
        loop = rng.choice(["[ab_1]", "[ab]", "[ab1]"])
        return f"N{number}: /(?!({'|'.join(words)}){rng.choice(BOUNDARIES)})[ab]{loop}*/"

    ignored = rng.choice(["", r"%ignore / +/", r"%ignore /;[ab]*;/"])
    return lark_grammar(
        f"""
        start: sum {rng.choice(["", '";"', "N1"])}
        sum: N1 | sum {rng.choice(['"+"', "", '"1"'])} N2 | call | "(" sum ")"
        call: N1 "(" sum? ")" | N1 {rng.choice(['"+"', '"b"', ""])} "+" sum | N2 ";"
        {name(1)}
        {name(2)}
        {ignored}
        """
    )


def random_assignments(rng: random.Random) -> Grammar:
    """Alternatives that begin with the same operand, which begins with operators, itself, or a choice of names."""
    blank = rng.choice(BLANKS)
    operand = rng.choice([f"({rng.choice(NAMES)} | {rng.choice(NAMES)}) {blank}", f"({rng.choice(NAMES)})"])
    after = [f'("+" {blank} unary)*', '"(" start ")"', '";" start', '("é" | ")" unary)?', "[1]*", blank]
    unary = [f"unary {follows}" for follows in rng.sample(after, rng.randint(2, 4))]
    operator = rng.choice(['"+"', '("+" | ";" ";")', "[+_]"])
    unary.append(rng.choice(["unary", operand, '"é"', f'"(" start ")" | {operand}']))
    return gbnf(
        f"""
        root ::= {rng.choice(BLANKS)} start {rng.choice(BLANKS)}
        start ::= {" | ".join(unary)}
        unary ::= {operator} {blank} unary | {operand} {rng.choice(["", '("(" start ")")?', "[a]?"])}
        """
    )


BOUNDARIES = [r"\b", r"\b", "$", r"\Z", r"\B", "", "(?![ab])"]


def check_small_world(seed: int) -> None:
    rng = random.Random(seed)
    built = composed(rng.choice((random_grammar, random_exclusions, random_assignments))(rng), SMALL)
    for _ in range(3):
        walk_alike(rng, built, SMALL, 6)
    matcher = Matcher(built[2])
    for _ in range(4):
        mask = allowed(matcher, len(SMALL))
        assert {token for token in range(len(SMALL)) if matcher.fork().accept_token(token)} == mask
        choices = sorted(mask - {len(TOKENS)})
        if not choices or not matcher.accept_token(rng.choice(choices)):
            break


@few_and_many_seeds(in_ranges(range(40), 1), in_ranges(range(1000, 5000), 200))
def test_masks_of_rules_that_are_called_first(seeds: range) -> None:
    for seed in seeds:
        check_small_world(seed)


# --- what is shared -------------------------------------------------------------------------------------

NAMED = r"""
NAME: /[a-z_][a-z0-9_]*/
%ignore /[ \t]+/
"""


def fresh(vocabulary: Vocabulary) -> Vocabulary:
    """The same vocabulary without fragments."""
    special = vocabulary.special_tokens or vocabulary.special_token_ids
    return Vocabulary(vocabulary.tokens, vocabulary.eos_token_ids, special)


def test_an_operand_of_several_alternatives_is_walked_once(tekken: Vocabulary) -> None:
    """C's assignments and binary expressions both begin with ``unary``."""
    vocabulary = fresh(tekken)
    automaton = composed(bundled_grammar("c_expression"), vocabulary)[1]
    allowed(Matcher(automaton), len(vocabulary))
    assert automaton.stats["states"] < 600  # 773 where each alternative is walked by itself


@pytest.mark.parametrize("excluded", ["", r"(?!(if|on|in)\b)"])
def test_names_of_all_grammars_over_a_vocabulary_are_one_fragment(excluded: str, tekken: Vocabulary) -> None:
    """At the beginning and after a blank; a walk of all names would be needed for each grammar."""
    vocabulary = fresh(tekken)
    counts = []
    for rules in (
        'start: sum\nsum: NAME | sum "+" NAME | "(" sum ")"\n',
        'start: test\ntest: NAME | test "&" test | "[" test "]" | "!" test\n',
    ):
        automaton = composed(
            lark_grammar(rules + NAMED.replace("/[a-z_]", f"/{excluded}[a-z_]")), vocabulary
        )[1]
        allowed(Matcher(automaton), len(vocabulary))
        counts.append(vocabulary.native.num_fragments)
    assert counts[0] == counts[1] >= 3
