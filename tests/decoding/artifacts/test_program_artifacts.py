"""Artifacts of programs: every automaton has one, and what is loaded walks as what was saved."""

from __future__ import annotations

import random
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokenfst
from tests.support.worlds.artifact_files import put_together, take_apart
from tokenfst import Budget, CanonicalAutomaton, TokenAutomaton, Vocabulary, compile, gbnf, json_schema, regex
from tokenfst.automata.expressions.digests import digest
from tokenfst.decoding.artifacts import artifact, program_arrays
from tokenfst.decoding.artifacts.tensors import PROGRAM_TENSORS
from tokenfst.errors import (
    ArtifactCorruptError,
    ArtifactError,
    ArtifactVocabularyError,
    BudgetExceeded,
    NondeterministicError,
    TokenfstError,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "program.safetensors"
BYTES = [bytes([byte]) for byte in range(256)]
WORDS = [b"ab", b"aab", b"((", b"))", b'{"', b'":', b'",', b"nu"]
SMALL = Vocabulary([*BYTES, *WORDS, b"", b""], 265, {"<tool>": 264}, split_pattern=r"[a-z]+|[^a-z]")
TWO_STACKS = 'root ::= "(" root ")" | "x" root | "x" | root "y"'
LIST = {"type": "array", "items": {"$ref": "#/$defs/x"}, "$defs": {"x": {"enum": [1, "ab", [2]]}}}
UNIQUE = {"type": "array", "uniqueItems": True, "items": {"type": "string", "maxLength": 2}}
TAG = {
    "type": "structural_tag",
    "format": {
        "type": "triggered_tags",
        "triggers": ["<f"],
        "tags": [
            {
                "type": "tag",
                "begin": "<f=a>",
                "content": {"type": "json_schema", "json_schema": LIST},
                "end": "</f>",
            }
        ],
    },
}
CONSTRAINTS: dict[str, Any] = {
    "regex": regex("a+b|c{2,5}"),
    "look-around": regex("(?=.*b)(?!.*bb)[abc]{2,8}"),
    "empty word": regex(""),
    "algebra": (regex("[a-c]*") & ~regex(".*b.*")) - regex("a"),
    "substrings": tokenfst.substring_of("hello ab world (x)"),
    "choices": tokenfst.choices(["one", "two", "ab"]),
    "several choices": tokenfst.multi_choice(["a", "b", "ab"]),
    "any order": tokenfst.unordered([regex("a"), regex("b+"), regex("null")]),
    "edits": tokenfst.within_edits(regex("hello"), 1),
    "one stack": gbnf('root ::= "(" root ")" | "x"'),
    "two stacks": gbnf(TWO_STACKS),
    "schema": json_schema(LIST),
    "unique items": json_schema(UNIQUE),
    "any members": json_schema({"type": "object", "additionalProperties": {"type": "integer"}}),
    "tag": tokenfst.structural_tag(TAG),
    "special token": tokenfst.special_token("<tool>") + regex("[ab]*"),
    "one token": tokenfst.one_token(regex("a+b")) + regex("c"),
    "token class": tokenfst.token_class("PAIR") + regex("c"),
}
CLASSES = {"PAIR": [256, 257, 264]}


def composed(name: str) -> TokenAutomaton:
    return compile(CONSTRAINTS[name], SMALL, token_classes=CLASSES if name == "token class" else None)


def loaded(automaton: TokenAutomaton, path: Path) -> TokenAutomaton:
    automaton.save(path, expand=False)
    return TokenAutomaton.load(path, automaton.vocabulary)


def walk(automaton: Any, rng: random.Random, limit: int | None) -> list[Any]:
    """What a walk finds along tokens that the automaton itself allows."""
    mask, found = np.zeros((1, (len(SMALL) + 31) // 32), np.int32), []
    matcher = automaton.matcher(limit)
    for _ in range(12):
        matcher.fill_next_token_bitmask(mask)
        tokens = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        found += [mask.tobytes(), matcher.is_accepting(), matcher.forced_tokens()]
        if matcher.is_terminated() or not len(tokens):
            break
        assert matcher.accept_token(int(rng.choice(tokens)))
    return found


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_what_is_loaded_walks_as_what_was_saved(name: str, tmp_path: Path) -> None:
    lazy = composed(name)
    again = loaded(lazy, tmp_path / "it.safetensors")
    assert not again.is_expanded and again.source == lazy.source
    assert again.distance() == lazy.distance()
    for seed in range(12):
        limit = None if seed % 2 else 14
        assert walk(lazy, random.Random(seed), limit) == walk(again, random.Random(seed), limit)


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_the_same_bytes_and_the_same_digest(name: str, tmp_path: Path) -> None:
    lazy = composed(name)
    data = lazy.serialize(expand=False)
    again = loaded(lazy, tmp_path / "it")
    assert composed(name).serialize(expand=False) == again.serialize(expand=False) == data
    found = artifact.parse("it", data)
    program, _ = program_arrays.read(found, "it")
    assert digest(program) == digest(CONSTRAINTS[name].program())
    assert [tensor.name for tensor in PROGRAM_TENSORS] == list(found.arrays)


@pytest.mark.parametrize("name", ["regex", "one stack", "schema", "substrings", "special token", "algebra"])
def test_what_is_loaded_expands_to_the_same_tables(name: str, tmp_path: Path) -> None:
    assert loaded(composed(name), tmp_path / "it").serialize() == composed(name).serialize()


def test_where_there_are_no_tables(tmp_path: Path) -> None:
    lazy = composed("two stacks")
    with pytest.raises(NondeterministicError):
        lazy.save(tmp_path / "it")
    assert not list(tmp_path.iterdir())
    assert loaded(lazy, tmp_path / "it").matcher().accept_tokens(list(b"(xxy)y"))


def test_an_expanded_automaton_is_saved_as_its_tables(tmp_path: Path) -> None:
    expanded = composed("regex").expand()
    expanded.save(tmp_path / "it", expand=False)
    assert artifact.read(tmp_path / "it").version == 1


def test_the_budget_of_what_is_loaded(tmp_path: Path) -> None:
    composed("algebra").save(tmp_path / "it", expand=False)
    small = TokenAutomaton.load(tmp_path / "it", SMALL, Budget(states=1))
    with pytest.raises(BudgetExceeded):
        small.expand()
    assert TokenAutomaton.load(tmp_path / "it", SMALL).budget == Budget()


def test_canonical_tokenizations(tmp_path: Path) -> None:
    lazy = compile(regex("(ab|nu|c){1,4}"), SMALL, tokenization="canonical")
    lazy.save(tmp_path / "it", expand=False)
    found = artifact.read(tmp_path / "it")
    assert (found.version, found.encoding) == (4, SMALL.encoding)
    again = CanonicalAutomaton.load(tmp_path / "it", SMALL)
    for seed in range(10):
        assert walk(lazy, random.Random(seed), None) == walk(again, random.Random(seed), None)
    with pytest.raises(ArtifactError, match="only canonical token sequences"):
        TokenAutomaton.load(tmp_path / "it", SMALL)
    lazy.every_sequence.save(tmp_path / "all", expand=False)
    with pytest.raises(ArtifactError, match="all token sequences"):
        CanonicalAutomaton.load(tmp_path / "all", SMALL)


def test_another_vocabulary(tmp_path: Path) -> None:
    composed("token class").save(tmp_path / "it", expand=False)
    with pytest.raises(ArtifactVocabularyError):
        TokenAutomaton.load(tmp_path / "it", Vocabulary([*BYTES, b""], 256))


def test_another_process(tmp_path: Path) -> None:
    composed("two stacks").save(tmp_path / "it", expand=False)
    code = (
        "import sys, tokenfst\n"
        "from tests.decoding.artifacts.test_program_artifacts import SMALL, walk\n"
        "import random\n"
        "print(hash(tuple(map(repr, walk(tokenfst.load(sys.argv[1], SMALL), random.Random(5), None)))))"
    )
    environment = {"PYTHONHASHSEED": "0", "PYTHONPATH": f"{Path.cwd()}:{Path.cwd() / 'tests'}"}
    done = [
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "it")],
            env=environment,
            capture_output=True,
            text=True,
        )
        for _ in range(2)
    ]
    assert done[0].stdout == done[1].stdout != "", done[0].stderr


def test_the_file_of_an_earlier_release() -> None:
    found = TokenAutomaton.load(GOLDEN, SMALL)
    assert found.matcher().accept_tokens(list(b"(xxy)y"))
    assert composed("two stacks").serialize(expand=False) == GOLDEN.read_bytes()


# --- broken ones: a typed error when they are loaded, or when they are walked ------------------------------------


def changed(name: str, edit: Any) -> bytes:
    """The artifact with its tensors changed by ``edit``, and a digest that fits."""
    data = composed(name).serialize(expand=False)
    found = artifact.parse("it", data)
    arrays = {key: value.copy() for key, value in found.arrays.items()}
    edit(arrays)
    return artifact.serialize(
        arrays, found.vocabulary_fingerprint, found.vocabulary_size, "x", None, found.token_names
    )


def put(name: str, place: Any, value: int) -> Any:
    def edit(arrays: dict[str, Any]) -> None:
        arrays[name][place] = value

    return edit


BROKEN = [
    ("regex", put("code", 0, 99), "instruction 0: its opcode is unknown"),
    ("regex", put("code", 1, 1 << 30), "instruction 0: it is cut off"),
    ("one stack", put("rules", (0, 0), 1 << 20), "rule 0 has no body"),
    ("one stack", put("rules", (0, 1), 7), "'rules' has 7"),
    ("choices", put("word_ends", 0, 1 << 20), "'word_ends' does not ascend"),
    ("choices", put("word_bytes", slice(0, 3), 255), "the words of a set do not ascend"),
    ("choices", put("lexicons", 0, 1), "'lexicons' does not cover"),
    ("substrings", put("machines", (0, 3), 1 << 20), "cut off"),
    ("substrings", put("machines", (0, 0), 3), "does not begin in state 1"),
    ("substrings", put("machine_numbers", -1, 1 << 20), "lead nowhere"),
    ("edits", put("assured", slice(None), 1 << 20), "assured"),
]


@pytest.mark.parametrize(("name", "edit", "says"), BROKEN)
def test_broken_rules(name: str, edit: Any, says: str, tmp_path: Path) -> None:
    data = changed(name, edit)
    if data == composed(name).serialize(expand=False):
        pytest.skip("it has no such tensor")
    (tmp_path / "it").write_bytes(data)
    with pytest.raises(ArtifactCorruptError, match=says):
        TokenAutomaton.load(tmp_path / "it", SMALL)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not an object"),
        ("[" * 100_000, "not an object"),
        ("{}", "not an object"),
        ('{"classes":{},"names":[["x",true]]}', "a token's name is"),
        ('{"classes":{},"names":[["x",1,null]]}', "a token's name is"),
        ('{"classes":{},"names":[["nobody",true,null]]}', "no special token 'nobody'"),
        ('{"classes":{"PAIR":[1]},"names":[["<tool>",true,null]]}', "not those that the program names"),
        ('{"classes":{"PAIR":["1"]},"names":[["PAIR",false,null]]}', "not a list of token ids"),
        ('{"classes":{"PAIR":[9999]},"names":[["PAIR",false,null]]}', "9999"),
        ('{"classes":{},"names":[]}', r"instruction \d+: a class of tokens does not exist"),
    ],
)
def test_broken_names_of_tokens(text: str, says: str, tmp_path: Path) -> None:
    header, content = take_apart(composed("token class").serialize(expand=False))
    header["__metadata__"]["token_names"] = text
    (tmp_path / "it").write_bytes(put_together(header, content))
    with pytest.raises(ArtifactCorruptError, match=says):
        TokenAutomaton.load(tmp_path / "it", SMALL)


def test_a_number_that_is_too_large_takes_no_memory() -> None:
    """A machine's number of edges is compared with its edges before anything is made of that many."""

    def edit(arrays: dict[str, Any]) -> None:
        arrays["machine_numbers"].reshape(-1)[15:30] = 1 << 31

    tracemalloc.start()
    try:
        with pytest.raises(ArtifactCorruptError, match="edges"):
            TokenAutomaton.of_artifact(
                artifact.parse("it", changed("substrings", edit)), "it", SMALL, Budget()
            )
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


FUZZED = [
    "look-around",
    "two stacks",
    "unique items",
    "any order",
    "several choices",
    "substrings",
    "token class",
    "tag",
]


@pytest.mark.parametrize("name", FUZZED)
def test_any_numbers_under_a_right_digest(name: str) -> None:
    """Whatever stands there, it is refused, or walked to a typed error or a mask: the process lives."""
    rng = random.Random(name)
    ends = {"refused": 0, "walked": 0, "failed": 0}
    for _ in range(60):

        def edit(arrays: dict[str, Any]) -> None:
            for _ in range(rng.randint(1, 3)):
                array = arrays[rng.choice([key for key, value in arrays.items() if value.size])].reshape(-1)
                near = int(array[place := rng.randrange(array.size)]) + rng.choice([-1, 1, 2])
                value = rng.choice([0, 1, near, rng.randrange(1 << 8), rng.randrange(1 << 32)])
                array[place] = value % (1 << (8 * array.itemsize))

        try:
            found = artifact.parse("it", changed(name, edit))
            automaton = TokenAutomaton.of_artifact(
                found, "it", SMALL, Budget(states=2000, bytes=64 << 20, seconds=5)
            )
        except ArtifactError:
            ends["refused"] += 1
            continue
        except BudgetExceeded:
            ends["failed"] += 1
            continue
        try:
            walk(automaton, rng, None)
            ends["walked"] += 1
        except TokenfstError:
            ends["failed"] += 1
    assert ends["refused"] and ends["walked"], ends
