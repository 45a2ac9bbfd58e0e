"""Ordered images: a sequence of images, classified one by one, whose labels must satisfy a temporal specification.

The paper on automata-guided beam search classifies ten kinds of clothes and has thirteen formulas of temporal logic.
Here the ten digits of scikit-learn stand for the ten kinds; the formulas are the paper's. A logistic regression scores
each image; noise in the images makes it err. Sequences of three to five labels are drawn uniformly from those that the
formulas allow. For each label an image is drawn from the test half.

Four ways to choose the labels are compared:

- the likeliest label of each image (argmax);
- a mask that asks only whether *some* continuation is allowed, as local decoding does;
- automata-guided beam search;
- the exact maximum, by dynamic programming over the automaton, which beam search approaches as beams are added.

Writes docs/experiments/ordered-images.md and .png.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from experiments import Experiment, table
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import tokenfst
from tokenfst import SymbolAutomaton, Vocabulary, ltlf
from tokenfst.decoding.search.beam_search import automata_beam_search

CLOTHES = (
    *("t_shirt_top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
FORBIDDEN_AFTER = {
    "t_shirt_top": ("Shirt", "Dress"),
    "Trouser": ("Dress",),
    "Pullover": ("Dress", "t_shirt_top", "Shirt"),
    "Dress": ("t_shirt_top", "Shirt", "Trouser", "Pullover"),
    "Coat": ("t_shirt_top", "Shirt", "Pullover", "Dress"),
    "Sandal": ("Sneaker", "Trouser", "Ankle boot"),
    "Shirt": ("t_shirt_top", "Dress"),
    "Sneaker": ("Sandal", "Trouser", "Ankle boot"),
    "Bag": ("t_shirt_top", "Shirt", "Dress", "Pullover", "Coat"),
    "Ankle boot": ("Sandal", "Trouser", "Sneaker"),
}
FORMULAS = (
    *(
        " & ".join([f'G("{worn}" -> !F "{other}")' for other in others] + [f'absence("{worn}", 2)'])
        for worn, others in FORBIDDEN_AFTER.items()
    ),
    "F(t_shirt_top | Pullover | Shirt | Dress)",
    "F(Trouser | Dress)",
    'F(Sandal | Sneaker | "Ankle boot")',
)
LENGTHS = (3, 4, 5)
BEAMS = (1, 2, 4, 8, 16, 32, 64)
NOISE = 5.0
"""Standard deviation of the noise that is added to each of the 64 pixels, whose values are between 0 and 16."""


def main() -> None:
    run = Experiment.start("ordered-images", __doc__ or "")
    draw = np.random.default_rng(2026)
    rule = ltlf(FORMULAS, CLOTHES).closed()
    model, images, labels = classifier(draw)
    each = run.pick(8, 500, 2000)
    streams = {
        length: stream(model, images, labels, sequences(rule, length, each, draw), draw) for length in LENGTHS
    }
    count = sum(len(truth) for truth, _ in streams.values())
    run.note(f"{count} sequences; images alone: {100 * model.score(images, labels):.1f}% right")

    results = {"argmax": measured(streams, rule, lambda length, scores: scores.argmax(2).tolist())}
    for name, decode in {
        "local mask, greedy": lambda length, scores: locally(rule, scores),
        **{f"ABS, k={beams}": searcher(rule, beams) for beams in BEAMS},
        "exact maximum": lambda length, scores: [viterbi(rule, row) for row in scores],
    }.items():
        results[name] = measured(streams, rule, decode)
        run.note(f"{name}: {results[name]}")
    settings = (
        f"{count} sequences of {', '.join(map(str, LENGTHS))} images, as many of each; logistic regression on digits "
        f"with noise of standard deviation {NOISE:g}. *Labels*: labels that are right, *sequences*: sequences without "
        "an error, *allowed*: sequences that satisfy the specification, *maximum*: allowed sequences as likely as the "
        "likeliest one, all in per cent; *ms*: processor time."
    )
    heading = ("decoder", "labels", "sequences", "allowed", "maximum", "ms a sequence")
    run.write(
        settings,
        [table(heading, [(name, *row) for name, row in results.items()])],
        lambda axes: plot(axes, results),
    )


def classifier(draw: np.random.Generator) -> tuple[Any, Any, Any]:
    """A model trained on one half of the digits, and the images and labels of the other half; all images have noise."""
    digits = load_digits()
    blurred = digits.data + draw.normal(0, NOISE, digits.data.shape)
    learn, test, right, labels = train_test_split(blurred, digits.target, test_size=0.5, random_state=0)
    return LogisticRegression(max_iter=2000, C=0.01).fit(learn, right), test, labels


def sequences(rule: SymbolAutomaton, length: int, count: int, draw: np.random.Generator) -> np.ndarray:
    """Label sequences of shape (count, length), drawn uniformly from all that the automaton accepts."""
    states, prefixes = np.array([rule.start]), np.zeros((1, 0), np.int64)
    for _ in range(length):
        table_ = rule.table[states, : len(CLOTHES)]
        row, label = np.nonzero(table_)
        states, prefixes = table_[row, label], np.column_stack([prefixes[row], label])
    found = prefixes[rule.accepting[states]]
    return found[draw.integers(len(found), size=count)]


def stream(
    model: Any, images: Any, labels: Any, truth: np.ndarray, draw: np.random.Generator
) -> tuple[Any, Any]:
    """``truth``, and the log-probabilities, of shape (count, length, 10), of an image that is drawn for each label."""
    by_label = [np.flatnonzero(labels == label) for label in range(10)]
    chosen = np.array([[draw.choice(by_label[label]) for label in row] for row in truth])
    return truth, model.predict_log_proba(images[chosen.ravel()]).reshape(*truth.shape, 10)


def locally(rule: SymbolAutomaton, scores: np.ndarray) -> list[list[int]]:
    """The likeliest label at each step, among those after which some word of any length is accepted. In a dead end, the
    likeliest of all labels.
    """
    rows = []
    for each in scores:
        state, row = rule.start, []
        for step in each:
            following = rule.table[state, : len(CLOTHES)]
            open_ = np.where(following > 0, step, -np.inf)
            row.append(int((open_ if following.any() else step).argmax()))
            state = following[row[-1]]
        rows.append(row)
    return rows


def searcher(rule: SymbolAutomaton, beams: int) -> Any:
    """A function that decodes all sequences of one length in one call of automata-guided beam search."""
    vocabulary = Vocabulary.of_symbols(CLOTHES)
    chains = {
        length: SymbolAutomaton.from_transitions(
            [(i, name, i + 1) for i in range(length) for name in CLOTHES], 0, [length]
        )
        for length in LENGTHS
    }
    automata = {length: tokenfst.compile(rule & chain, vocabulary) for length, chain in chains.items()}

    def decode(length: int, scores: np.ndarray) -> list[list[int]]:
        never = np.full((*scores.shape[:2], 1), -np.inf)  # the end token: never taken
        steps = torch.from_numpy(np.concatenate([scores, never], axis=2)).float()

        def next_scores(ids: torch.Tensor) -> torch.Tensor:
            return steps[ids[:, 0], min(ids.shape[1], length) - 1]  # the prompt is the number of the sequence

        found = automata_beam_search(
            next_scores,
            [[index] for index in range(len(scores))],
            automata[length],
            num_beams=beams,
            max_new_tokens=length,
            width=len(vocabulary),
        )
        return [list(hypotheses[0].tokens) for hypotheses in found]

    return decode


def viterbi(rule: SymbolAutomaton, scores: np.ndarray) -> list[int]:
    """The likeliest allowed labels of one sequence, by the Viterbi algorithm: the best path to each state, step by
    step.
    """
    best = {rule.start: (0.0, [])}
    for step in scores:
        ways: dict[int, tuple[float, list[int]]] = {}
        for state, (total, row) in best.items():
            for label, target in enumerate(rule.table[state, : len(CLOTHES)].tolist()):
                if target and (target not in ways or total + step[label] > ways[target][0]):
                    ways[target] = (total + step[label], [*row, label])
        best = ways
    return max((way for state, way in best.items() if rule.accepting[state]), key=lambda way: way[0])[1]


def measured(streams: Any, rule: SymbolAutomaton, decode: Any) -> tuple[float, float, float, float, float]:
    """The percentages of right labels, of right sequences, of allowed sequences, and of allowed sequences as likely as
    the likeliest one; then milliseconds for a sequence.
    """
    right, whole, allowed, likeliest, seconds = [], [], [], [], 0.0
    for length, (truth, scores) in streams.items():
        begin = time.process_time()
        rows = decode(length, scores)
        seconds += time.process_time() - begin
        right += (np.array(rows) == truth).ravel().tolist()
        whole += (np.array(rows) == truth).all(axis=1).tolist()
        allowed += [rule.accepts([CLOTHES[label] for label in row]) for row in rows]
        for row, each in zip(rows, scores, strict=True):
            best = sum(each[step, label] for step, label in enumerate(viterbi(rule, each)))
            mine = sum(each[step, label] for step, label in enumerate(row))
            likeliest.append(allowed[len(likeliest)] and bool(mine > best - 1e-4))
    shares = [100 * float(np.mean(part)) for part in (right, whole, allowed, likeliest)]
    return shares[0], shares[1], shares[2], shares[3], 1e3 * seconds / len(whole)


def plot(axes: Any, results: dict[str, tuple[float, ...]]) -> None:
    for axis, column, title in (
        (axes[0], 0, "labels that are right"),
        (axes[1], 1, "sequences without an error"),
    ):
        axis.plot(BEAMS, [results[f"ABS, k={beams}"][column] for beams in BEAMS], marker="o", label="ABS")
        for name, style in (("exact maximum", "--"), ("local mask, greedy", "-."), ("argmax", ":")):
            axis.axhline(results[name][column], linestyle=style, color="black", label=name)
        axis.set(xscale="log", xlabel="beams", ylabel="per cent", title=title)
        axis.set_xticks(BEAMS, BEAMS)
        axis.minorticks_off()
        axis.legend()


if __name__ == "__main__":
    main()
