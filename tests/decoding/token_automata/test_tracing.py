"""Masks along a token sequence, against the matcher asked step by step; and their heat map."""

from __future__ import annotations

import shutil

import pytest

from tokenfst import Vocabulary, bundled_grammar, compile, regex
from tokenfst.errors import TokenIdError

WORDS = [b"ab", b"yes", b"no", b'{"', b'":', b" \xf0\x9f"]
END = 256 + len(WORDS)
VOCABULARY = Vocabulary(
    [*(bytes((byte,)) for byte in range(256)), *WORDS, b"", b""], END, special_tokens={"<tool>": END + 1}
)


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        (regex("(yes|no)(ab)*"), b"yesabab"),
        (regex("[a-z]{3,}"), b"yesno"),
        (bundled_grammar("json"), b'{"a":[1]}'),
        (regex("no"), b"nx"),
        (regex("a?"), b""),
    ],
)
@pytest.mark.parametrize("limit", [None, 12])
def test_each_place_is_what_the_matcher_says(constraint: object, text: bytes, limit: int | None) -> None:
    automaton = compile(constraint, VOCABULARY)  # type: ignore[call-overload]
    tokens = [*VOCABULARY.encode_greedy(text), END]
    matcher = automaton.matcher(limit)
    path = automaton.trace(tokens, limit)
    for step, token in zip(path.steps, [*tokens, None], strict=False):
        assert step.token == token
        if not matcher.is_terminated():
            allowed = sum(matcher.validate_tokens([each]) for each in range(len(VOCABULARY)))
            assert (step.allowed, step.accepting) == (allowed, matcher.is_accepting())
            assert (step.forced, step.distance) == (matcher.forced_bytes(), matcher.distance())
        assert step.taken == (token is None or matcher.accept_token(token))
    assert (
        path.taken == matcher.num_tokens == sum(step.taken for step in path.steps if step.token is not None)
    )
    assert path.refused == next((step.token for step in path.steps if not step.taken), None)
    assert len(path.steps) == path.taken + 1


def test_the_matcher_that_is_given_stays_where_it_is() -> None:
    from tokenfst.decoding.token_automata.tracing import trace

    matcher = compile(regex("yes"), VOCABULARY).matcher()
    trace(matcher, [ord("y")], VOCABULARY)
    assert matcher.tokens == []
    with pytest.raises(TokenIdError):
        trace(matcher, [len(VOCABULARY)], VOCABULARY)


def test_heat_grows_with_the_mask() -> None:
    path = compile(regex("a(?s:.)*"), VOCABULARY).trace([ord("a"), ord("b")])
    intensities = [path.intensity(step.allowed) for step in path.steps]
    assert (
        0 <= intensities[0] < intensities[1] <= 1
        and path.intensity(0) == path.intensity(1) == 0
        and path.intensity(len(VOCABULARY)) == 1
    )


def test_the_heat_map_escapes_texts_and_shows_what_is_refused() -> None:
    path = compile(regex('a<"&>  x'), VOCABULARY).trace([*b'a<"&>  y'])
    dot = path.draw("<b> & more").dot
    assert "&lt;b&gt;&#160;&amp;&#160;more" in dot and "&quot;&amp;" in dot and "#b30000" in dot
    assert dot.count("<TR>") == 2
    long = compile(regex("a*"), VOCABULARY).trace([ord("a")] * 30).draw().dot
    assert long.count("<TR>") == 3 and "#b30000" not in long
    pytest.importorskip("graphviz")
    if shutil.which("dot"):
        assert b"<svg" in path.draw("<b>").render("svg") and path._repr_svg_()
