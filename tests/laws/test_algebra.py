"""The laws of the algebra of languages, on random terms, and the agreement of three engines on what terms
mean.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.expressions.terms import ALL_WORDS, LIMIT, Term, acceptor, language, same, words
from tokenfst.automata.languages.answer import Side
from tokenfst.automata.languages.language import Language

atoms = st.one_of(
    st.just(("empty",)),
    st.just(("epsilon",)),
    st.just(("either",)),
    st.just(("any",)),
    st.sampled_from([b"a", b"b", b"ab", b"ba", b"aab"]).map(lambda word: ("literal", word)),
    st.sampled_from([b"", b"b", b"abb"]).map(lambda word: ("table", word)),
)


def _larger(terms: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    bounds = st.sampled_from([(0, None), (1, None), (0, 1), (2, 3), (0, 2), (3, 3)])
    return st.one_of(
        st.tuples(st.sampled_from(["and", "or", "minus", "cat"]), terms, terms),
        st.tuples(st.just("not"), terms),
        st.builds(lambda term, bound: ("repeat", term, *bound), terms, bounds),
    )


terms = st.recursive(atoms, _larger, max_leaves=5)
few = settings(max_examples=40, deadline=None)
many = settings(max_examples=2_000, deadline=None)


def _engines_agree(term: Term) -> None:
    lang = language(term)
    expected = words(term)
    assert {word for word in ALL_WORDS if lang.accepts(word)} == expected
    machine = acceptor(term)
    assert same(lang.to_fst(), machine)
    assert Language.from_fst(machine, byte_zero=1).equivalent(lang)
    assert lang.is_empty() == (machine.num_states() == 0)


@few
@given(terms)
def test_engines_agree(term: Term) -> None:
    _engines_agree(term)


@pytest.mark.soak
@many
@given(terms)
def test_engines_agree_soak(term: Term) -> None:
    _engines_agree(term)


def _questions(left: Term, right: Term) -> None:
    """``equivalent`` and ``includes`` decide as OpenFst does; a witness shows it and none is shorter."""
    a, b = language(left), language(right)
    answer = a.equivalent(b)
    assert bool(answer) == same(acceptor(left), acceptor(right))
    _check_witness(answer.witness, words(left) ^ words(right))
    if not answer:
        assert answer.witness is not None
        assert (a.accepts(answer.witness), b.accepts(answer.witness)) == (
            answer.side is Side.LEFT,
            answer.side is Side.RIGHT,
        )
    answer = a.includes(b)
    assert bool(answer) == same(acceptor(("minus", right, left)), acceptor(("empty",)))
    _check_witness(answer.witness, words(right) - words(left))
    if not answer:
        assert answer.witness is not None
        assert b.accepts(answer.witness)
        assert not a.accepts(answer.witness)
        assert answer.side is Side.RIGHT


def _check_witness(witness: bytes | None, difference: frozenset[bytes]) -> None:
    """No word of the difference is shorter; a witness may contain other bytes than a and b."""
    if witness is None:
        assert not difference
    elif difference:
        assert len(witness) <= min(map(len, difference))
    if witness is not None and set(witness) <= set(b"ab") and len(witness) <= LIMIT:
        assert witness in difference


@few
@given(terms, terms)
def test_questions(left: Term, right: Term) -> None:
    _questions(left, right)


@pytest.mark.soak
@many
@given(terms, terms)
def test_questions_soak(left: Term, right: Term) -> None:
    _questions(left, right)


@few
@given(terms)
def test_witness_is_shortest(term: Term) -> None:
    lang = language(term)
    witness = lang.witness()
    if witness is None:
        assert acceptor(term).num_states() == 0
        assert not words(term)
    else:
        assert lang.accepts(witness)
        assert all(len(witness) <= len(word) for word in words(term))
        assert language(term).witness() == witness


BINARY = {
    "& is associative": lambda a, b, c: ((a & b) & c, a & (b & c)),
    "| is associative": lambda a, b, c: ((a | b) | c, a | (b | c)),
    "+ is associative": lambda a, b, c: ((a + b) + c, a + (b + c)),
    "& commutes": lambda a, b, c: (a & b, b & a),
    "| commutes": lambda a, b, c: (a | b, b | a),
    "De Morgan, and": lambda a, b, c: (~(a & b), ~a | ~b),
    "De Morgan, or": lambda a, b, c: (~(a | b), ~a & ~b),
    "& distributes over |": lambda a, b, c: (a & (b | c), (a & b) | (a & c)),
    "| distributes over &": lambda a, b, c: (a | (b & c), (a | b) & (a | c)),
    "+ distributes over | from the left": lambda a, b, c: (a + (b | c), (a + b) | (a + c)),
    "+ distributes over | from the right": lambda a, b, c: ((a | b) + c, (a + c) | (b + c)),
    "absorption": lambda a, b, c: (a & (a | b), a),
    "difference": lambda a, b, c: (a - b, a & ~b),
    "difference of a union": lambda a, b, c: (a - (b | c), (a - b) - c),
    "reverse of a concatenation": lambda a, b, c: ((a + b).reverse(), b.reverse() + a.reverse()),
    "reverse of an intersection": lambda a, b, c: ((a & b).reverse(), a.reverse() & b.reverse()),
    "star of a union": lambda a, b, c: ((a | b).star(), (a.star() + b.star()).star()),
    "sliding": lambda a, b, c: ((a + b).star() + a, a + (b + a).star()),
    "union_of": lambda a, b, c: (Language.union_of([a, b, c]), a | b | c),
}
UNARY = {
    "double complement": lambda a: (~~a, a),
    "& is idempotent": lambda a: (a & a, a),
    "excluded middle": lambda a: (a | ~a, Language.any_bytes()),
    "contradiction": lambda a: (a & ~a, Language.empty()),
    "ε is neutral": lambda a: (a + Language.epsilon(), Language.epsilon() + a),
    "∅ annihilates": lambda a: (a + Language.empty(), Language.empty()),
    "star is idempotent": lambda a: (a.star().star(), a.star()),
    "star unrolls": lambda a: (a.star(), Language.epsilon() | (a + a.star())),
    "optional": lambda a: (a.optional(), a | Language.epsilon()),
    "repeat from two": lambda a: (a.repeat(2), a + a + a.star()),
    "repeat to two": lambda a: (a.repeat(0, 2), Language.epsilon() | a | (a + a)),
    "reverse twice": lambda a: (a.reverse().reverse(), a),
    "reverse of a star": lambda a: (a.star().reverse(), a.reverse().star()),
    "reverse of a minimal machine": lambda a: (a.minimize().reverse(), a.reverse()),
    "minimize": lambda a: (a.minimize(), a),
    "through OpenFst": lambda a: (Language.from_fst(a.to_fst()), a),
    "through tables": lambda a: (Language.from_dfa(a.determinize()), a),
}


@pytest.mark.parametrize("law", BINARY)
@settings(max_examples=12, deadline=None)
@given(terms, terms, terms)
def test_laws_of_several(law: str, x: Term, y: Term, z: Term) -> None:
    left, right = BINARY[law](language(x), language(y), language(z))
    assert left.equivalent(right)
    assert same(left.to_fst(), right.to_fst())


@pytest.mark.parametrize("law", UNARY)
@settings(max_examples=20, deadline=None)
@given(terms)
def test_laws_of_one(law: str, term: Term) -> None:
    left, right = UNARY[law](language(term))
    assert left.equivalent(right)
    assert same(left.to_fst(), right.to_fst())


@few
@given(terms)
def test_reverse_reads_backwards(term: Term) -> None:
    turned = language(term).reverse()
    assert {word for word in ALL_WORDS if turned.accepts(word)} == {word[::-1] for word in words(term)}


@few
@given(terms)
def test_minimize_is_least(term: Term) -> None:
    assert language(term).minimize().size().states == acceptor(term).num_states()
