"""Figures of docs/research/token-groups.md: languages whose words are tokens, beside similar languages over bytes.

    python -m benchmarks.masks.token_groups [--save]

Times of the first mask, and of a token in new and in known states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.measuring.measure import Figure, sample
from benchmarks.measuring.record import report
from tokenfst import Language, Matcher, allocate_token_bitmask, compile, load_vocabulary, one_token, regex

ITEMS = ("one thing is here", "another thing is there", "and so on it goes")
CONSTRAINTS: dict[str, Callable[[], Language]] = {
    "a list of PARAGRAPH_TOKENs (the paper's)": lambda: regex(r"Summary:(\n\* (?P<PARAGRAPH_TOKEN>)+){3,5}"),
    "the same by bytes": lambda: regex(r"Summary:(\n\* .+){3,5}"),
    "at most 50 tokens of it": lambda: one_token().repeat(1, 50) & regex(r"Summary:(\n\* .+){3,5}"),
}


def figures(rounds: int = 20) -> Iterator[Figure]:
    vocabulary = load_vocabulary("mistral:tekken_240911")
    mask = allocate_token_bitmask(1, len(vocabulary))
    compile(regex("a.*"), vocabulary).matcher().fill_next_token_bitmask(mask)
    tokens: list[int] = []
    for item in ITEMS:
        tokens += vocabulary.encode_greedy(b"\n* " if tokens else b"Summary:\n* ")
        tokens += vocabulary.encode_greedy(item.encode())
    for name, make in CONSTRAINTS.items():

        def first(make: Callable[[], Language] = make) -> None:
            compile(make(), vocabulary).matcher().fill_next_token_bitmask(mask)

        (cold,) = sample(first, runs=1, warm_up=0)
        yield Figure(name, "first mask", cold)
        yield Figure(name, "first mask again", min(sample(first, runs=rounds)), runs=rounds)
        matcher = compile(make(), vocabulary).matcher()

        def walk(matcher: Matcher = matcher) -> None:
            matcher.reset()
            for token in tokens:
                matcher.fill_next_token_bitmask(mask)
                assert matcher.accept_token(token)

        (new,) = sample(walk, runs=1, warm_up=0)
        yield Figure(name, "a token at a new place", new / len(tokens))
        known = min(sample(walk, runs=rounds)) / len(tokens)
        yield Figure(name, "a token at a known place", known, runs=rounds)


if __name__ == "__main__":
    report("token-groups", figures())
