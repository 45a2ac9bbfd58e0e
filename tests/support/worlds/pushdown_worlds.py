"""Push-down automata over small vocabularies, walked beside brute force."""

from __future__ import annotations

import random

from reference.grammars.pushdown import START, Place, TokenModel
from tests.support.worlds.token_worlds import allowed
from tokenfst import Matcher, Vocabulary, _native
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.notations.gbnf import gbnf
from tokenfst.decoding.compiling.missing_bytes import of_single_bytes
from tokenfst.decoding.matchers.prefixes import AnyMatcher

BUDGET = (100_000, 1 << 30, 5.0)
EVERY_BYTE = [bytes([byte]) for byte in range(256)]


def compose(grammar: Grammar, vocabulary: Vocabulary, narrow: int) -> _native.TokenAutomaton:
    """As ``tokenfst.compile`` does it: without the bytes that no token has. With narrow=0 every mask that can comes
    from a fragment; by default none of small vocabularies does.
    """
    grammar = of_single_bytes(grammar, vocabulary)
    return _native.TokenAutomaton.compose(grammar.program().native(), vocabulary.native, *BUDGET, narrow)


def walk(rng: random.Random, automaton: _native.TokenAutomaton, model: TokenModel) -> None:
    """Random tokens out of the masks; at every step all tokens are tried."""
    matcher, place, size = Matcher(automaton), START, len(model.tokens)
    for _ in range(8):
        wanted = model.allowed(place)
        assert allowed(matcher, size) == wanted, place
        assert matcher.is_accepting() == model.is_word(place), place
        assert {token for token in range(size) if matcher.fork().accept_token(token)} == wanted, place
        following = step(rng, matcher, model, place, wanted)
        if following is None:
            break
        place = following


def step(
    rng: random.Random, matcher: AnyMatcher, model: TokenModel, place: Place, wanted: set[int]
) -> Place | None:
    """Let both take one of the tokens ``wanted``, by chance: where the model is then. None where only an end token may
    come.
    """
    choices = sorted(wanted - {model.eos})
    if not choices:
        return None
    token = rng.choice(choices)
    assert matcher.accept_token(token)
    target = model.after(place, token)
    assert target is not None
    return target


JSON = gbnf(
    r"""
    root ::= value
    value ::= object | array | string | "0" | "true"
    object ::= "{" (pair ("," pair)*)? "}"
    pair ::= string ":" value
    array ::= "[" (value ("," value)*)? "]"
    string ::= "\"" [ab]* "\""
    """
)
SUM = gbnf(
    r"""
    root ::= sum
    sum ::= sum "+" product | product
    product ::= product "*" atom | atom
    atom ::= "(" sum ")" | "x" | "-" atom
    """
)
TAGS = gbnf(
    r"""
    root ::= node*
    node ::= "<a>" node* "</a>" | "<b>" node* "</b>" | "t"
    """
)
CROSSING = {
    "json": (JSON, b'{ } [ ] , : " 0 true }] ]} "},{" "}] "}} ":{" ":[ [[ ]] ]], [{ {" a" "a ["","a" {} [] {"a": "b'),
    "sum": (SUM, b"+ * ( ) x - )+( x)) ((x ))) )*(- --x x+x*x )+ +-( (x) (x (-x)) x)+(x"),
    "tags": (TAGS, b"< > / a b t </ </a> <a><b> ></ ></b></a> t</b t<a a>< b></a></ t</a><b> <b>t</b>"),
}  # fmt: skip


def crossing(name: str, complete: bool) -> tuple[Grammar, Vocabulary]:
    grammar, spelled = CROSSING[name]
    tokens = spelled.split(b" ")
    tokens += [byte for byte in EVERY_BYTE if byte not in tokens] if complete else []
    return grammar, Vocabulary([*tokens, b""], len(tokens))
