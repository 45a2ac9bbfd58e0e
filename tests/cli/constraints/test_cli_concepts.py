"""``--hierarchy`` and ``--concepts``: JSON files that say which labels, and which words, a text holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.programs.command_line import tokenfst, toy, write_toy

from tokenfst import TokenAutomaton, verify_labels


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    contents = {
        "TREE": '{"a": {"b": ["0", "1"]}, "0": null}',
        "TWICE": '{"a": 1, "a": 2}',
        "SAME": '{"a": ["b", "b"]}',
        "NUMBER": "3",
        "BROKEN": '{"a": ',
        "DEEP": "[" * 100_000,
        "DIGITS": "1" * 5_000,
        "WORDS": '["ab", "ba"]',
        "FORMS": '{"dog": ["dog", "dogs"], "cat": "cat"}',
        "NONE": "{}",
        "EMPTY": '{"dog": []}',
        "WRONG": '{"dog": 3}',
    }
    made = {}
    for name, text in contents.items():
        made[name] = tmp_path / f"{name.lower()}.json"
        made[name].write_text(text)
    return made


def test_hierarchy_is_compiled(files: dict[str, Path], tmp_path: Path) -> None:
    target = tmp_path / "out.safetensors"
    words = ["compile", "--hierarchy", files["TREE"], "--separator", "-", "-v", write_toy(tmp_path)]
    assert tokenfst(*map(str, words), "-o", str(target)).code == 0
    assert verify_labels(TokenAutomaton.load(target, toy()), ["0", "a", "a-b", "a-b-0", "a-b-1"])


def test_hierarchy_is_checked(files: dict[str, Path]) -> None:
    tree = ["check", "--hierarchy", str(files["TREE"])]
    assert tokenfst(*tree, "a", "a > b > 1", "0").code == 0
    assert tokenfst(*tree, "b").code == 1
    assert tokenfst(*tree, "--leaf-only", "a > b > 0", "0").code == 0
    assert tokenfst(*tree, "--leaf-only", "a > b").code == 1


def test_concepts_are_checked(files: dict[str, Path]) -> None:
    forms = ["check", "--concepts", str(files["FORMS"])]
    assert tokenfst(*forms, "two dogs, one cat").code == 0
    assert tokenfst(*forms, "a cat and a dog").code == 1
    assert tokenfst(*forms, "--contains", "all", "a cat and a dog").code == 0
    assert tokenfst(*forms, "--contains", "none", "a category").code == 0
    assert tokenfst(*forms, "--contains", "none", "--inside-words", "a category").code == 1
    assert tokenfst(*forms, "--ignore-case", "DOG cAt").code == 0
    assert tokenfst("check", "--concepts", str(files["WORDS"]), "so ab ba").code == 0


def test_formulas_over_concepts(files: dict[str, Path]) -> None:
    words = ["check", "--concepts", str(files["FORMS"]), "--ltlf", "G(dog -> F cat)"]
    assert tokenfst(*words, "nothing", "a dog, two dogs, a cat", "cat").code == 0
    assert tokenfst(*words, "a cat, a dog").code == 1
    assert tokenfst(*words, "--ltlf", "F dog", "nothing").code == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--leaf-only"], "goes with --hierarchy"),
        (["--hierarchy", "TREE", "--most", "2"], "go with --choices"),
        (["--hierarchy", "TREE", "-c", "WORDS"], "two constraints"),
        (["--hierarchy", "TREE", "ab"], "the labels come from"),
        (["--hierarchy", "TREE", "--separator", ""], "separator is empty"),
        (["--hierarchy", "SAME"], "same.json: 'a > b' occurs twice"),
        (["--hierarchy", "NUMBER"], "number.json: what is below a name"),
        (["--hierarchy", "TWICE"], "twice.json: 'a' occurs twice in one object"),
        (["--hierarchy", "BROKEN"], "broken.json: its names are not JSON"),
        (["--hierarchy", "DEEP"], "nested too deeply"),
        (["--hierarchy", "DIGITS"], "its names are not JSON: Exceeds the limit (4300 digits)"),
        (["--contains", "all"], "need --concepts"),
        (["--concepts", "FORMS", "--contains", "all", "--ltlf", "F dog"], "both define how"),
        (["--concepts", "FORMS", "--symbols", "dog"], "cannot be combined with --concepts"),
        (["--concepts", "FORMS", "--hierarchy", "TREE"], "two constraints"),
        (["--concepts", "FORMS", "ab"], "the concepts come from"),
        (["--concepts", "FORMS", "--ltlf", "F bird"], "bird"),
        (["--concepts", "NONE"], "there are no concepts"),
        (["--concepts", "EMPTY"], "empty.json: the concept 'dog' has no forms"),
        (["--concepts", "WRONG"], "an object of names and their forms"),
        (["--concepts", "FORMS", "--flags", "i"], "--file and --flags cannot be combined"),
    ],
)
def test_what_is_refused(words: list[str], message: str, files: dict[str, Path]) -> None:
    done = tokenfst("sample", *[str(files.get(word, word)) for word in words])
    assert done.code == 2 and message in done.err.replace("\n", " ")
