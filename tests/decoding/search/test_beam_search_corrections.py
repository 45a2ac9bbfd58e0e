"""The nine corrections to the paper on automata-guided beam search, in its order, each by what it would get wrong."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
import torch

import tokenfst
from reference.symbols import clothes
from tokenfst import SymbolAutomaton
from tokenfst.decoding.rows.generations import Generation
from tokenfst.decoding.search.beam_search import automata_beam_search
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

pytestmark = pytest.mark.filterwarnings("ignore::tokenfst.errors.UnspellableWarning")

Model = Callable[[torch.Tensor], torch.Tensor]
SYMBOLS = ("a", "b", "c")


def always(*logits: float) -> Model:
    """The same distribution at every place."""
    row = torch.tensor(logits, dtype=torch.float32).log_softmax(-1)
    return lambda ids: row.repeat(len(ids), 1)


def search(
    model: Model, automaton: TokenAutomaton, beams: int, tokens: int, **more: object
) -> list[Generation]:
    width = len(automaton.vocabulary)
    (found,) = automata_beam_search(
        model, [[]], automaton, width=width, num_beams=beams, max_new_tokens=tokens, **more
    )
    return found


def every(model: Model, automaton: TokenAutomaton, tokens: int) -> set[tuple[int, ...]]:
    return {each.tokens for each in search(model, automaton, 99, tokens, num_return_sequences=99)}


def words(*tokens: bytes) -> Vocabulary:
    return Vocabulary([*tokens, b""], eos_token_id=len(tokens))


def test_1_distances_know_the_part_of_a_concept_that_is_written() -> None:
    """d on the concepts, three tokens each: within T = 3 the paper's beam is empty after one token."""
    three = tokenfst.compile(tokenfst.regex("cat"), words(b"c", b"a", b"t"))
    assert search(always(0, 0, 0, 9), three, 1, 3)[0].tokens == (0, 1, 2)


def test_2_a_fixed_length_needs_exact_reachability() -> None:
    """L = {a, bcd}, exactly three tokens: a beam of one that takes the likelier `a` is lost."""
    letters = words(b"a", b"b", b"c", b"d")
    language = tokenfst.compile(tokenfst.regex("a|bcd"), letters)
    assert search(always(9, 0, 0, 0, 0), language, 1, 3, length="exact")[0].tokens == (1, 2, 3)


@pytest.mark.parametrize(("alpha_min", "gamma"), [(0.0, 1.0), (0.25, 2.0), (1.0, 1.0), (0.0, math.inf)])
def test_3_alpha_is_defined_where_it_was_zero_by_zero(alpha_min: float, gamma: float) -> None:
    """At t = T: 1 where something is missing still, and without effect where nothing is."""
    language = tokenfst.compile(tokenfst.regex("a*b"), words(b"a", b"b"))
    model = always(3, 0, -9)
    a, b, _ = model(torch.zeros(1, 0))[0].tolist()
    (last,) = search(model, language, 1, 1, alpha_min=alpha_min, gamma=gamma)
    assert last.pushed == pytest.approx(a, abs=1e-4) and last.log_prob == pytest.approx(b, abs=1e-5)
    anything = tokenfst.compile(tokenfst.regex("[ab]*"), language.vocabulary)
    (free,) = search(model, anything, 1, 2, alpha_min=alpha_min, gamma=gamma, length="exact")
    assert free.pushed == free.log_prob


def test_4_the_search_starts_from_one_beam_and_keeps_no_duplicates() -> None:
    """k equal first beams would all go on alike: here k beams hold k different prefixes after every step."""
    language = tokenfst.compile(tokenfst.regex("[abc]{3}"), words(b"a", b"b", b"c"))
    rows = []

    def watched(ids: torch.Tensor) -> torch.Tensor:
        rows.append([tuple(row) for row in ids.tolist()])
        return always(0.3, 0.2, 0.1, 0)(ids)

    found = search(watched, language, 5, 3, num_return_sequences=5)
    assert [len(step) for step in rows] == [1, 3, 5]
    assert all(len(set(step)) == len(step) for step in rows)
    assert len({each.tokens for each in found}) == 5


def test_5_a_concept_begun_in_vain_hides_no_other() -> None:
    """The text "po" could be of "pond"; the "cat" after it counts."""
    pieces = words(b"po", b"cat", b"egory", b" ")
    symbols = ("pond", "cat")
    found = tokenfst.concepts(symbols, boundaries=False).language(tokenfst.ltlf("F cat", symbols))
    assert every(always(1, 1, 1, 1, 1), tokenfst.compile(found, pieces), 2) >= {(0, 1), (1, 2), (1, 4)}


def test_6_a_cat_is_not_in_a_category() -> None:
    pieces = words(b"po", b"cat", b"egory", b" ")
    whole = tokenfst.compile(tokenfst.contains_in_order(["cat"]), pieces)
    assert every(always(1, 1, 1, 1, 1), whole, 2) == {(1, 4), (1, 3), (3, 1)}


def test_7_ends_lengths_and_both_scores_are_defined() -> None:
    """A token is `a`, of probability 1/2; the end has 1/4. Texts of T tokens are complete without one."""
    language = tokenfst.compile(tokenfst.regex("a+"), words(b"a", b"b"))
    model = always(math.log(2), 0, 0)
    log_prob = {(0, 2): 1 / 8, (0, 0, 2): 1 / 16, (0, 0, 0): 1 / 8}

    def ranked(beams: int, **more: object) -> list[tuple[int, ...]]:
        found = search(model, language, beams, 3, num_return_sequences=beams, **more)
        for each in found:
            assert each.log_prob == pytest.approx(math.log(log_prob[each.tokens]), abs=1e-5)
            assert each.pushed >= each.log_prob - 1e-6
            assert each.score == pytest.approx(
                each.log_prob / len(each.tokens) ** more.get("length_penalty", 0)
            )
        return [each.tokens for each in found]

    assert ranked(3) == [(0, 0, 0), (0, 2), (0, 0, 2)]
    assert ranked(3, length_penalty=1.0) == [(0, 0, 0), (0, 0, 2), (0, 2)]
    assert ranked(3, length_penalty=-1.0)[0] == (0, 2)
    # One beam: the end is never the best candidate of its row, so the text goes on to its last token.
    assert ranked(1) == [(0, 0, 0)]
    # Two scores that disagree: `b` comes nearer at once, and is unlikely. (`c` is likely, and nowhere allowed.)
    either = tokenfst.compile(tokenfst.regex("b|aaa"), words(b"a", b"b", b"c"))
    for by, tokens in (("log_prob", (0, 0, 0)), ("pushed", (1, 3))):
        first, second = search(
            always(7, 1, 10, 8), either, 9, 3, alpha_min=0.99, rank_by=by, num_return_sequences=2
        )
        assert first.tokens == tokens and getattr(first, by) > getattr(second, by)


def test_8_the_maximum_on_a_markov_chain_is_viterbis() -> None:
    """Theorem 2 calls MAP of a Markov chain with a unary constraint NP-hard. It takes O(T * S²)."""
    rng = random.Random(5)
    for _ in range(25):
        states, length = 3, rng.randint(2, 6)
        chain = torch.log_softmax(torch.tensor([[rng.gauss(0, 2) for _ in range(4)] for _ in range(4)]), -1)
        place, wanted = rng.randrange(length), rng.randrange(states)
        pattern = SymbolAutomaton.from_transitions(
            [
                (t, symbol, t + 1)
                for t in range(length)
                for s, symbol in enumerate(SYMBOLS)
                if t != place or s == wanted
            ],
            0,
            [length],
            SYMBOLS,
        )
        ways = {3: (0.0, ())}  # the last row of the chain is its beginning
        for t in range(length):
            ways = {
                s: max((p + float(chain[r, s]), (*text, s)) for r, (p, text) in ways.items())
                for s in range(states)
                if t != place or s == wanted
            }
        log_prob, _ = max(ways.values())
        (found,) = automata_beam_search(
            lambda ids, chain=chain: chain[ids[:, -1] if ids.shape[1] else torch.full((len(ids),), 3)],
            [[]],
            tokenfst.compile(pattern, Vocabulary.of_symbols(SYMBOLS)),
            width=4,
            num_beams=states**length,
            max_new_tokens=length,
        )
        assert found[0].log_prob == pytest.approx(log_prob, abs=1e-4)
        assert found[0].tokens[place] == wanted


@pytest.mark.parametrize(("length", "count"), [(2, 6), (3, 45)])
def test_9_one_symbol_at_a_time_and_nothing_behind_the_end(length: int, count: int) -> None:
    """The specification of clothes, without the formulas of appendix D.2: both hold by construction."""
    vocabulary = Vocabulary.of_symbols(clothes.SYMBOLS)
    automaton = tokenfst.compile(tokenfst.ltlf(clothes.FORMULAS, clothes.SYMBOLS), vocabulary)
    model = always(*[0.0] * len(vocabulary))
    exact = search(model, automaton, 99, length, length="exact", num_return_sequences=99)
    assert len(exact) == count == len({each.tokens for each in exact})
    assert all(len(each.tokens) == length and max(each.tokens) < 10 for each in exact)
    (end,) = vocabulary.eos_token_ids
    for tokens in every(model, automaton, length):
        assert end not in tokens[:-1]
