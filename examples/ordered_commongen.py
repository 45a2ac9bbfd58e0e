"""Ordered CommonGen: a sentence that has given concepts, in a given order, each in some inflection.

The prompts (`concepts: dog, throw, frisbee` and `sentence:`) have the concept sets of the held-out half of CommonGen,
in the order of the file. Sentences have at most 32 tokens, and a dot at the end.

Five decoders are compared, all by beam search:

- no mask;
- a mask that asks only whether *some* continuation, however long, satisfies the constraint, as local decoding does;
- a mask of what can still be completed within the tokens left (reachability);
- automata-guided beam search (ABS), which also gives a bonus to tokens that lead towards the concepts, without its
  ramp;
- the same with its ramp.

Coverage is the percentage of sentences that have all concepts in order, by Python's ``re``. Writes
docs/experiments/ordered-commongen.md and .png.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from compared import DECODERS, quality, timed
from corpus import commongen, concepts_prompt
from experiments import Experiment, table
from lemminflect import getAllInflections
from small_model import SmallModel, load

from tokenfst import Language, TokenAutomaton, compile, contains_in_order, regex

TOKENS = 32
BEAMS = 16
SWEEP = (4, 8, 16, 32, 64, 128)
TIMED = ("no mask", "reachability", "ABS")
SENTENCE = regex(r" [A-Z][^\n._]*\.")
"""The form of every sentence: one line after the space that follows the prompt, with a single dot, at its end."""


def main() -> None:
    run = Experiment.start("ordered-commongen", __doc__ or "")
    loaded = load()
    every = commongen("held out")
    count = run.pick(3, 48, len(every))
    items = every[:: len(every) // count][:count]
    forms = [inflections(item.concepts) for item in items]
    prompts = [concepts_prompt(tuple(each)) for each in forms]
    automata, seconds = timed(lambda: [compile(constraint(each), loaded.vocabulary) for each in forms])
    run.note(f"{len(items)} concept sets; constraints in {seconds:.1f} s")

    rows, texts = [], {}
    for name, decode in DECODERS.items():
        texts[name], seconds = timed(lambda: decode(loaded, prompts, automata, BEAMS, TOKENS))  # noqa: B023  # called at once
        covered = [found_in_order(each, text) for each, text in zip(forms, texts[name], strict=True)]
        words = sum(len(text.split()) for text in texts[name]) / len(items)
        scores = quality(texts[name], [item.sentences for item in items])
        rows.append((name, 100 * sum(covered) / len(items), *scores, words, seconds / len(items)))
        run.note(str(rows[-1]))
    sweep = times(loaded, prompts[: run.pick(1, 3, 20)], automata, run)
    shown = [(2 * index + 1) * len(items) // 6 for index in range(3)]
    settings = (
        f"{len(items)} of {len(every)} concept sets that were not learned from, {BEAMS} beams, at most {TOKENS} "
        "tokens. *Seconds* are processor time for one sentence, all prompts in one batch."
    )
    tables = [
        table(("decoder", "coverage %", "BLEU-4", "ROUGE-L", "words", "s a sentence"), rows),
        "Processor seconds a sentence against beams, one prompt at a time, its masks made before:",
        table(
            ("decoder", *(f"k={beams}" for beams in run.pick(SWEEP[:1], SWEEP, SWEEP))),
            [(name, *row) for name, row in sweep.items()],
        ),
        "Sentences:",
        table(
            ("concepts", *texts),
            [(", ".join(forms[index]), *(text[index].strip() for text in texts.values())) for index in shown],
        ),
    ]
    run.write(settings, tables, lambda axes: plot(axes, rows, sweep))


def inflections(concepts: Sequence[str]) -> dict[str, list[str]]:
    """The forms of each concept. A concept that occurs twice counts once. A form of two concepts belongs to the
    first.
    """
    forms: dict[str, list[str]] = {}
    for concept in concepts:
        if concept not in forms:
            some = {form for kind in getAllInflections(concept).values() for form in kind if form.isalpha()}
            both = {form for each in (concept, *some) for form in (each, each.capitalize())}
            forms[concept] = sorted(both - {form for other in forms.values() for form in other})
    return forms


def constraint(forms: dict[str, list[str]]) -> Language:
    """All sentences that have all concepts in order."""
    return contains_in_order(forms) & SENTENCE


def found_in_order(forms: dict[str, list[str]], text: str) -> bool:
    """Whether a text has all concepts in order, by Python's ``re``."""
    words = ".*".join(rf"\b(?:{'|'.join(map(re.escape, each))})\b" for each in forms.values())
    return re.search(words, text, re.DOTALL) is not None


def times(
    loaded: SmallModel, prompts: Sequence[str], automata: Sequence[TokenAutomaton], run: Experiment
) -> dict[str, list[float]]:
    """The mean processor seconds for one prompt, by decoder and then by number of beams; each prompt is decoded twice
    and the smaller time counts.
    """
    found: dict[str, list[float]] = {name: [] for name in TIMED}
    for beams in run.pick(SWEEP[:1], SWEEP, SWEEP):
        for name in TIMED:
            spent = 0.0
            for prompt, automaton in zip(prompts, automata, strict=False):
                one = (loaded, [prompt], [automaton], beams, TOKENS)
                spent += min(timed(lambda: DECODERS[name](*one))[1] for _ in range(2))  # noqa: B023  # called at once
            found[name].append(spent / len(prompts))
        run.note(f"{beams} beams")
    return found


def plot(axes: Any, rows: Sequence[Any], sweep: dict[str, list[float]]) -> None:
    names = [row[0] for row in rows]
    places = range(len(rows))
    axes[0].barh([place - 0.2 for place in places], [row[1] for row in rows], 0.36, label="coverage, %")
    axes[0].barh([place + 0.2 for place in places], [row[3] for row in rows], 0.36, label="ROUGE-L")
    axes[0].set_yticks(list(places), names)
    axes[0].set(xlim=(0, 105), title=f"{BEAMS} beams")
    axes[0].invert_yaxis()
    axes[0].legend(loc="upper right")
    for name, seconds in sweep.items():
        axes[1].plot(SWEEP[: len(seconds)], seconds, marker="o", label=name)
    axes[1].set(xscale="log", xlabel="beams", ylabel="processor seconds", title="one sentence")
    axes[1].set_ylim(bottom=0)
    axes[1].set_xticks(SWEEP, SWEEP)
    axes[1].minorticks_off()
    axes[1].legend()


if __name__ == "__main__":
    main()
