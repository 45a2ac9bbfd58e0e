"""Infilling: sentences with missing words, and one to four words in place of each gap.

The sentences are held-out ones of CommonGen. 10, 20 or 30 per cent of their words are left out; neighbouring gaps
count as one. The small model gets the sentence with its gaps (`blanks: A man _ the _.`) and writes the whole
sentence; a template fixes the words that are there. The decoders are those of ordered_commongen.py. Their texts are
compared with the original sentences. Coverage is the percentage of texts that match the template, by Python's ``re``.
Writes docs/experiments/infilling.md and .png.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

from compared import DECODERS, quality, timed
from corpus import blanks_prompt, commongen, with_blanks
from experiments import Experiment, table
from small_model import load

from tokenfst import Grammar, Language, compile, template

SHARES = (0.1, 0.2, 0.3)
TOKENS = 40
BEAMS = 8
GAP = r"[^\s_]+( [^\s_]+){0,3}"


def main() -> None:
    run = Experiment.start("infilling", __doc__ or "")
    loaded, draw = load(), random.Random(2026)
    sentences = [item.sentences[0] for item in commongen("held out") if fits(item.sentences[0])]
    count = run.pick(3, 40, len(sentences))
    sentences = sentences[:: len(sentences) // count][:count]
    results: dict[str, list[tuple[float, ...]]] = {name: [] for name in DECODERS}
    shown = []
    for share in SHARES:
        gapped = [with_blanks(sentence, share, draw) for sentence in sentences]
        automata = [compile(filled(each), loaded.vocabulary) for each in gapped]
        prompts = [blanks_prompt(each) for each in gapped]
        shown.append([f"`{gapped[len(gapped) // 2]}`"])
        for name, decode in DECODERS.items():
            texts, seconds = timed(lambda: decode(loaded, prompts, automata, BEAMS, TOKENS))  # noqa: B023  # called at once
            pairs = list(zip(gapped, texts, strict=True))
            covered = [bool(re.fullmatch(pattern(each), text)) for each, text in pairs]
            same = [text.strip() == sentence for text, sentence in zip(texts, sentences, strict=True)]
            scores = quality(texts, [[sentence] for sentence in sentences])
            mean = [100 * sum(part) / len(sentences) for part in (covered, same)]
            results[name].append((mean[0], *scores, mean[1], seconds / len(sentences)))
            shown[-1].append(texts[len(gapped) // 2].strip())
            run.note(f"{share:.0%} {name}: {results[name][-1]}")
    settings = (
        f"{len(sentences)} held-out sentences, {BEAMS} beams, at most {TOKENS} tokens. *Same*: sentences with exactly "
        "the words that were left out, in per cent; *s*: processor seconds."
    )
    heading = ("decoder", "left out", "coverage %", "BLEU-4", "ROUGE-L", "same %", "s a sentence")
    rows = [
        (name, f"{share:.0%}", *row)
        for index, share in enumerate(SHARES)
        for name, row in ((name, each[index]) for name, each in results.items())
    ]
    tables = [table(heading, rows), "One sentence:", table(("with gaps", *DECODERS), shown)]
    run.write(settings, tables, lambda axes: plot(axes, results))


def fits(sentence: str) -> bool:
    """Whether a sentence has 6 to 20 words, and no ``_``, which stands for a gap."""
    return 6 <= len(sentence.split()) <= 20 and "_" not in sentence


def filled(gapped: str) -> Language | Grammar:
    """All sentences that have one to four words in each gap, after the space that follows the prompt."""
    parts = [part.replace("{", "{{").replace("}", "}}") for part in gapped.split("_")]
    text = parts[0] + "".join(f"{{gap{index}}}{part}" for index, part in enumerate(parts[1:]))
    return template(" " + text, **{f"gap{index}": GAP for index in range(len(parts) - 1)})


def pattern(gapped: str) -> str:
    """The same language as a pattern of Python's ``re``."""
    return " " + GAP.join(map(re.escape, gapped.split("_")))


def plot(axes: Any, results: dict[str, Sequence[Sequence[float]]]) -> None:
    for axis, column, title in ((axes[0], 0, "coverage, %"), (axes[1], 2, "ROUGE-L")):
        for index, (name, rows) in enumerate(results.items()):
            places = [place + (index - 2) * 0.16 for place in range(len(SHARES))]
            axis.bar(places, [row[column] for row in rows], 0.15, label=name)
        axis.set_xticks(range(len(SHARES)), [f"{share:.0%}" for share in SHARES])
        axis.set(xlabel="words left out", title=title, ylim=(0, 130))
        axis.legend(fontsize=8, loc="upper center", ncols=3)


if __name__ == "__main__":
    main()
