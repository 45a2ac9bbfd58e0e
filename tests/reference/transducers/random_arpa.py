"""Random n-gram models as ARPA files."""

from __future__ import annotations

import random

Words = tuple[str, ...]


def arpa(symbols: list[str], order: int, seed: int, unknown: bool = True, zeros: float = 0.0) -> str:
    """A random model: some of all n-grams whose contexts and shorter forms are there.

    ``zeros``: the share of the numbers that are the logarithm of zero.
    """
    draw = random.Random(seed)
    grams: list[list[Words]] = [[(each,) for each in [*symbols, "<s>", "</s>", *(["<unk>"] * unknown)]]]
    for _ in range(order - 1):
        grams.append(
            [
                (*context, symbol)
                for context in grams[-1]
                if context[-1] not in ("</s>", "<unk>")
                for symbol in [*symbols, "</s>"]
                if draw.random() < 0.4
            ]
        )
    lines = ["\\data\\", *(f"ngram {at}={len(each)}" for at, each in enumerate(grams, 1))]
    for at, each in enumerate(grams, 1):
        lines.append(f"\n\\{at}-grams:")
        for words in each:
            log = -99 if words == ("<s>",) else -draw.uniform(0.1, 2)
            back = f"\t{-draw.uniform(0, 1):.4f}" if at < order and draw.random() < 0.8 else ""
            if zeros:
                log = -99 if draw.random() < zeros else log
                back = "\t-99" if back and draw.random() < zeros else back
            lines.append(f"{log:.4f}\t{' '.join(words)}{back}")
    return "\n".join([*lines, "\n\\end\\\n"])
