"""Languages that speak of tokens: the first mask, and a walk of new and of known places, beside the same over bytes.

python -m benchmarks.masks.token_groups
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tokenfst import Language, Matcher, allocate_token_bitmask, compile, load_vocabulary, one_token, regex

ITEMS = ("one thing is here", "another thing is there", "and so on it goes")
CONSTRAINTS: dict[str, Callable[[], Language]] = {
    "a list of PARAGRAPH_TOKENs (the paper's)": lambda: regex(r"Summary:(\n\* (?P<PARAGRAPH_TOKEN>)+){3,5}"),
    "the same by bytes": lambda: regex(r"Summary:(\n\* .+){3,5}"),
    "at most 50 tokens of it": lambda: one_token().repeat(1, 50) & regex(r"Summary:(\n\* .+){3,5}"),
}


def least(work: Callable[[], object], rounds: int) -> float:
    """The least time of several, in milliseconds."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return 1000 * min(times)


def main(rounds: int = 20) -> None:
    """Measure and print."""
    vocabulary = load_vocabulary("mistral:tekken_240911")
    compile(regex("a.*"), vocabulary).matcher().fill_next_token_bitmask(
        allocate_token_bitmask(1, len(vocabulary))
    )
    mask = allocate_token_bitmask(1, len(vocabulary))
    tokens: list[int] = []
    for item in ITEMS:
        tokens += vocabulary.encode_greedy(b"\n* " if tokens else b"Summary:\n* ")
        tokens += vocabulary.encode_greedy(item.encode())
    for name, make in CONSTRAINTS.items():

        def first(make: Callable[[], Language] = make) -> None:
            compile(make(), vocabulary).matcher().fill_next_token_bitmask(mask)

        cold, warm = least(first, 1), least(first, rounds)
        matcher = compile(make(), vocabulary).matcher()

        def walk(matcher: Matcher = matcher) -> None:
            matcher.reset()
            for token in tokens:
                matcher.fill_next_token_bitmask(mask)
                assert matcher.accept_token(token)

        new = least(walk, 1) / len(tokens)
        known = least(walk, rounds) / len(tokens)
        print(
            f"{name}: to the first mask {cold:.1f} ms, again {warm:.2f} ms; a token at a new place {new:.2f} ms, "
            f"at a known one {1000 * known:.2f} us"
        )


if __name__ == "__main__":
    main()
