"""``BeamTrace``: what a search notes is what it did, in random worlds, and its picture is the tree of that."""

from __future__ import annotations

import random
import re

import pytest

import tokenfst
from tests.decoding.search.test_beam_search import END, RandomModel, accepted, random_automaton
from tokenfst import BeamTrace
from tokenfst.decoding.search.beam_search import automata_beam_search
from tokenfst.errors import DrawingError, TokenLimitError

BYTES = tokenfst.Vocabulary([*(bytes([byte]) for byte in range(256)), b""], 256)


@pytest.mark.parametrize("count", [60, pytest.param(2000, marks=pytest.mark.soak)])
def test_a_trace_is_what_the_search_did(count: int) -> None:
    rng = random.Random(count)
    done = 0
    while done < count:
        automaton = random_automaton(rng)
        if automaton is None:
            continue
        model, beams, most = RandomModel(rng.randrange(999)), rng.randint(1, 4), rng.randint(1, 5)
        options = {"num_beams": beams, "max_new_tokens": most, "width": 4, "num_return_sequences": beams}
        trace = BeamTrace()
        try:
            found = automata_beam_search(model, [[], [1]], automaton, trace=trace, **options)
        except TokenLimitError:
            continue
        done += 1
        assert found == automata_beam_search(model, [[], [1]], automaton, **options), "the trace changed it"
        texts = set(accepted(automaton, most))
        for prompt, best in enumerate(found):
            before = {()}
            for step, kept in enumerate(trace.kept[prompt]):
                now = {beam.tokens for beam in kept}
                assert len(now) == len(kept) <= beams and {len(tokens) for tokens in now} == {step + 1}
                assert {tokens[:-1] for tokens in now} <= before
                before = now
            ended = trace.finished[prompt]
            assert {each.tokens for each in best} <= {beam.tokens for beam in ended} <= texts
            for beam in [*ended, *(beam for kept in trace.kept[prompt] for beam in kept)]:
                given = () if prompt == 0 else (1,)
                assert beam.log_prob == pytest.approx(model.log_prob(beam.tokens, given), abs=1e-4)
            dot = trace.draw(prompt).dot
            whole = {tokens for beam in ended for tokens in [tuple(t for t in beam.tokens if t != END)]}
            prefixes = {tokens[:k] for tokens in whole for k in range(1, len(tokens) + 1)}
            prefixes |= {beam.tokens for kept in trace.kept[prompt] for beam in kept}
            assert dot.count("doublecircle") == len(whole)
            assert len(re.findall(r"\d -> \d+ \[label", dot)) == len(prefixes)


def test_a_picture_shows_tokens_and_their_probabilities() -> None:
    trace = BeamTrace()
    assert trace._repr_svg_() is None
    with pytest.raises(DrawingError, match="trace is empty"):
        trace.draw()
    automaton = tokenfst.compile(tokenfst.regex("no|yes"), BYTES)
    uniform = RandomModel(0, width=257)
    options = {"num_beams": 2, "num_return_sequences": 2, "max_new_tokens": 4, "width": 257}
    automata_beam_search(uniform, [[]], automaton, trace=trace, **options)
    dot = trace.draw(title="two").dot
    first = float(uniform.after(())[ord("n")])
    assert f'\\"n\\" {first:.2f}' in dot and "two" in dot and dot.count("doublecircle") == 2
    with pytest.raises(DrawingError, match="at most 3 are drawn"):
        trace.draw(max_states=3)
