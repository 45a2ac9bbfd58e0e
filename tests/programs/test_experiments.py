"""The experiments: each runs; and what decides in them: references, constraints, how texts are judged."""

from __future__ import annotations

import itertools
import json
import random
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from reference.symbols import clothes
from tokenfst import ltlf

corpus = pytest.importorskip("corpus")


def test_the_specification_is_the_papers() -> None:
    images = pytest.importorskip("ordered_images", reason="needs the extra `experiments`")
    assert images.CLOTHES == clothes.SYMBOLS
    rule = ltlf(images.FORMULAS, images.CLOTHES)
    assert rule.equivalent(ltlf(clothes.FORMULAS, clothes.SYMBOLS))


def test_dynamic_programming_finds_the_maximum() -> None:
    images = pytest.importorskip("ordered_images", reason="needs the extra `experiments`")
    rule = ltlf(images.FORMULAS, images.CLOTHES).closed()
    draw = np.random.default_rng(0)
    for length in (3, 4):
        allowed = [
            row
            for row in itertools.product(range(10), repeat=length)
            if clothes.allowed(tuple(clothes.SYMBOLS[label] for label in row))
        ]
        assert {tuple(row) for row in images.sequences(rule, length, 4000, draw).tolist()} == set(allowed)
        scores = draw.normal(size=(20, length, 10))
        best = [max(allowed, key=lambda row: sum(each[range(length), row])) for each in scores]
        assert [tuple(images.viterbi(rule, each)) for each in scores] == best
        assert images.searcher(rule, 256)(length, scores) == [list(row) for row in best]


def test_sentences_with_concepts_are_those_of_re() -> None:
    commongen = pytest.importorskip("ordered_commongen", reason="needs the extra `experiments`")
    forms = commongen.inflections(("dog", "throw", "catch", "dog"))
    assert list(forms) == ["dog", "throw", "catch"]
    assert {"dogs", "threw", "thrown", "caught"} <= {form for each in forms.values() for form in each}
    language = commongen.constraint(forms)
    for text in (
        " A dog threw it, and it was caught.",
        " Dogs throw and catch.",
        " The dogma is thrown and caught.",
        " He threw the dog and caught it.",
        " A dog throws. It catches.",
        " A dog throws, catches",
        "A dog throws and catches.",
        " The dog throws it to a dog\nwho catches it.",
    ):
        plain = re.fullmatch(r" [A-Z][^\n._]*\.", text) is not None
        assert language.accepts(text) == (plain and commongen.found_in_order(forms, text)), text


def test_templates_are_their_patterns() -> None:
    infilling = pytest.importorskip("infilling", reason="needs the extra `experiments`")
    draw = random.Random(0)
    for sentence in ("A man throws a {ball} to his dog.", "The dog (a big one) catches it."):
        gapped = corpus.with_blanks(sentence, 0.3, draw)
        filled, pattern = infilling.filled(gapped), infilling.pattern(gapped)
        assert filled.accepts(" " + sentence) and re.fullmatch(pattern, " " + sentence)
        for text in (
            sentence,
            " " + gapped,
            " " + gapped.replace("_", "a b c d"),
            " " + gapped.replace("_", "x " * 5),
        ):
            assert filled.accepts(text) == bool(re.fullmatch(pattern, text)), text


def test_calls_are_judged_as_the_constraint_does() -> None:
    calls = pytest.importorskip("json_calls", reason="needs the extra `experiments`")
    language, draw = calls.constraint(), random.Random(3)
    for _ in range(60):
        _, call = corpus.tool_call(draw, ["A man.", 'He said "no".', "Née {}"])
        value = json.loads(call)
        assert language.accepts(" " + call) and calls.satisfied(value)
        key = next(iter(value["arguments"]))
        for change in (None, 1.5, True, []):
            wrong = value | {"arguments": value["arguments"] | {key: change}}
            assert not language.accepts(" " + json.dumps(wrong)) and not calls.satisfied(wrong)
        assert not calls.satisfied(value | {"name": "launch"}) and not calls.satisfied([value])
    assert calls.parsed(b'{"name": ') is None and not calls.satisfied(None)


EXPERIMENTS = {
    "ordered_images": ("ordered-images", 10),
    "scaling": ("scaling", 4),
    "json_calls": ("json-calls", 17),
    "infilling": ("infilling", 19),
    "ordered_commongen": ("ordered-commongen", 13),
}
"""Each with the name of its files, and how many rows its tables have after the first heading."""


@pytest.mark.usefixtures("one_torch_thread")
@pytest.mark.parametrize(
    "name",
    ["ordered_images", *(pytest.param(name, marks=pytest.mark.soak) for name in [*EXPERIMENTS][1:])],
)
def test_an_experiment_runs_and_what_must_be_whole_is(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One command, a table and a figure; 100 per cent for every decoder that promises it."""
    pytest.importorskip("matplotlib", reason="needs the extra `experiments`")
    experiment = pytest.importorskip(name, reason="needs the extra `experiments`")
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--quick", "--folder", str(tmp_path)])
    experiment.main()
    file, count = EXPERIMENTS[name]
    assert (tmp_path / f"{file}.png").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / f"{file}.md").read_text()
    assert f"`python examples/{name}.py --quick`" in text
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    lines = [line for line in lines if not line[0].startswith("---")]
    heading, *rows = lines
    assert len(rows) == count
    wanted = {"coverage %", "allowed", "particles %"} & set(heading)
    promised = [row for row in rows if row[0].startswith(("ABS", "GCD", "P-GCD", "reachability"))]
    for column in wanted:
        whole = [row[heading.index(column)] for row in promised if len(row) == len(heading)]
        assert whole and set(whole) == {"100.0"}
