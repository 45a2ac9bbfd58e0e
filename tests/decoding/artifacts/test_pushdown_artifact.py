"""Deterministic push-down automata ahead of time: expanded and loaded they do what lazy ones do."""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import numpy as np
import pytest

from reference.grammars.random_grammars_wide import GrammarGenerator
from tokenfst import Budget, Grammar, TokenAutomaton, Vocabulary, bundled_grammar, compile, gbnf
from tokenfst.decoding.artifacts import artifact
from tokenfst.decoding.artifacts.tensors import STACK_TENSORS
from tokenfst.errors import (
    ArtifactCorruptError,
    BudgetExceeded,
    EmptyLanguageError,
    NondeterministicError,
    TokenfstError,
    UnspellableWarning,
)

TOKENS = [bytes([b]) for b in range(256)] + [
    b'{"', b'":', b"[[", b"]]", b"]}", b"},{", b"],[", b"1,", b'"a"', b"true", b"null", b", ", b'": ', b"]]]]",
    b"((", b"))", b"aa", b"bb", b"ab", b"ba", b"xe", b")b", b"x)", b"(x", b"(a", b"1+", b"*(", b")+", b" b ", b"x))b",
]  # fmt: skip
VOCABULARY = Vocabulary([*TOKENS, b""], len(TOKENS))
GRAMMARS = {
    "brackets": 'root ::= "(" root ")" root | "x"?',
    "counted": 'root ::= "a" root "b" | ""',
    "left": 'root ::= root "+" term | term\nterm ::= term "*" atom | atom\natom ::= "(" root ")" | [0-9]+',
    "optional": 'root ::= "a" t "b"?\nt ::= "(" root ")" | "x"',
    "tail": 'root ::= "i" root ("e" root)? ";" | "x"',
    "times": 'root ::= "[" (root ("," root){0,2})? "]" | "1"',
    "twice": 'root ::= root root | "xx"',  # a step there unites stacks that are the same
    "lists": 'root ::= item root | "."\nitem ::= "a" | "(" root ")"',
}

# Their stacks show two frames for a while, in the midst of a step, where a chain of frames would be too long.
APART = {
    "doubled": 'root ::= d d | "a"\nd ::= d d | "a"',
    "doubled or nothing": 'root ::= (d d)? | "b"\nd ::= d d | "a"',
    "counted": 'root ::= ("a" u "a")*\nd ::= d d | [ab]\nu ::= d{3,4}',
}


def all_grammars() -> list[tuple[str, Grammar]]:
    bundled = [(name, bundled_grammar(name)) for name in ("json", "arithmetic", "sexpr")]
    return [(name, gbnf(text)) for name, text in GRAMMARS.items()] + bundled


def allowed(matcher: object, vocabulary: Vocabulary = VOCABULARY) -> list[int]:
    mask = np.zeros((1, (len(vocabulary) + 31) // 32), np.int32)
    matcher.fill_next_token_bitmask(mask, 0)  # type: ignore[attr-defined]
    return list(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")))


@pytest.mark.parametrize(
    ("name", "grammar"), all_grammars(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_loaded_and_lazy_walk_the_same_way(name: str, grammar: Grammar, tmp_path: Path) -> None:
    lazy = compile(grammar, VOCABULARY, deterministic=True)
    lazy.expand().save(tmp_path / "g.safetensors")
    loaded = TokenAutomaton.load(tmp_path / "g.safetensors", VOCABULARY)
    made = loaded.stats().leaves
    rng = random.Random(name)
    for limit in [None, None, None, 12, 30]:
        first, second = lazy.matcher(limit), loaded.matcher(limit)
        for _ in range(40):
            choices = allowed(first)
            assert choices == allowed(second)
            assert first.distance() == second.distance() and first.is_accepting() == second.is_accepting()
            assert first.forced_bytes() == second.forced_bytes()
            if not choices or first.is_terminated():
                break
            token = int(rng.choice(choices))
            assert first.accept_token(token) and second.accept_token(token)
            if rng.random() < 0.2:
                back = rng.randint(0, first.num_tokens)
                first.rollback(back)
                second.rollback(back)
    assert loaded.stats().leaves == made, "a mask was not made ahead of time"


def test_masks_are_exact(tmp_path: Path) -> None:
    grammar = gbnf(GRAMMARS["left"])
    compile(grammar, VOCABULARY).expand().save(tmp_path / "g.safetensors")
    matcher = TokenAutomaton.load(tmp_path / "g.safetensors", VOCABULARY).matcher()
    rng, text = random.Random(3), b""
    for _ in range(30):
        choices = allowed(matcher)
        expected = [
            t for t, token in enumerate(TOKENS) if grammar.viable_prefix(text + token) == len(text + token)
        ]
        assert choices == expected + [len(TOKENS)] * grammar.accepts(text)
        token = rng.choice(expected)
        matcher.accept_token(token)
        text += TOKENS[token]


@pytest.mark.parametrize("name", APART)
def test_where_frames_stay_apart_for_a_while(name: str, tmp_path: Path) -> None:
    """Every text of the grammar up to a length, and every token that may follow it."""
    tokens = [b"a", b"b", b"aa", b"abab", b""]
    vocabulary = Vocabulary(tokens, len(tokens) - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnspellableWarning)
        lazy = compile(gbnf(APART[name]), vocabulary)
    lazy.expand().save(tmp_path / "g.safetensors")
    first, second = lazy.matcher(), TokenAutomaton.load(tmp_path / "g.safetensors", vocabulary).matcher()
    pending, texts = [((), 0)], 0
    while pending:
        path, length = pending.pop()
        first.reset()
        second.reset()
        assert first.accept_tokens(list(path)) and second.accept_tokens(list(path))
        choices = allowed(first, vocabulary)
        assert choices == allowed(second, vocabulary) and first.is_accepting() == second.is_accepting()
        texts += 1
        pending += [
            ((*path, token), length + len(tokens[token]))
            for token in choices
            if token < len(tokens) - 1 and length + len(tokens[token]) <= 11
        ]
    assert texts > 100


def random_walks_agree(seed: int) -> bool:
    """Whether a random grammar can be expanded; then texts at random, the expanded automaton beside the lazy one."""
    rng, vocabulary = random.Random(seed), Vocabulary([b"a", b"b", b"ab", b"ba", b"aab", b"bbb", b""], 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnspellableWarning)
        try:
            lazy = compile(GrammarGenerator(rng).grammar(), vocabulary, Budget(states=2_000))
            first, second = lazy.matcher(), lazy.expand().matcher()
        except (NondeterministicError, EmptyLanguageError, BudgetExceeded):
            return False
    for _ in range(12):
        first.reset()
        second.reset()
        for _ in range(16):
            choices = allowed(first, vocabulary)
            assert choices == allowed(second, vocabulary) and first.is_accepting() == second.is_accepting()
            inner = [token for token in choices if token < 6]
            if not inner:
                break
            token = rng.choice(inner)
            assert first.accept_token(token) and second.accept_token(token)
    return lazy.is_pushdown


def test_random_grammars() -> None:
    ended_too_early = [361, 414, 1087, 1130, 1148, 1149]
    assert all(random_walks_agree(seed) for seed in ended_too_early)
    assert sum(random_walks_agree(seed) for seed in range(300)) > 30


@pytest.mark.soak
@pytest.mark.parametrize("part", range(10))
def test_random_grammars_at_length(part: int) -> None:
    assert sum(random_walks_agree(seed) for seed in range(part * 3_000, (part + 1) * 3_000)) > 300


def test_the_same_bytes_whatever_was_walked_before(tmp_path: Path) -> None:
    first, second = (compile(bundled_grammar("json"), VOCABULARY) for _ in range(2))
    matcher = second.matcher()
    assert matcher.accept_tokens(VOCABULARY.encode_greedy(b'{"b": [[1, {"x": []}], "y"]}'))
    allowed(matcher)
    for number, automaton in enumerate((first, second, first)):
        automaton.save(tmp_path / f"{number}.safetensors")
    contents = [(tmp_path / f"{number}.safetensors").read_bytes() for number in range(3)]
    assert contents[0] == contents[1] == contents[2]


def test_what_cannot_be_expanded() -> None:
    with pytest.raises(NondeterministicError):
        compile(gbnf('root ::= "a" root "a" | "b"?'), VOCABULARY).expand()
    with pytest.raises(NondeterministicError):
        compile(gbnf('root ::= "a" root "a" | "b"?'), VOCABULARY, deterministic=True)


def test_a_vocabulary_of_few_bytes(tmp_path: Path) -> None:
    small = Vocabulary([b"(", b")", b"x", b"x)", b""], 4)
    compile(gbnf('root ::= "(" root ")" | "x"'), small).expand().save(tmp_path / "g.safetensors")
    matcher = TokenAutomaton.load(tmp_path / "g.safetensors", small).matcher()
    assert matcher.accept_tokens([0, 0, 3, 1]) and matcher.is_accepting()


def broken(arrays: dict[str, object], rng: random.Random) -> dict[str, object]:
    """One number of the stack's tensors, or of the roots of look-ups, changed."""
    name = rng.choice([*(tensor.name for tensor in STACK_TENSORS), "mask"])
    changed = np.array(arrays[name])
    if changed.size:
        place = rng.randrange(changed.size)
        near = int(changed.flat[place]) + rng.choice([-2, -1, 1, 2])
        changed.flat[place] = rng.choice(
            [0, 1, 2, near % 2**32, 2**31, 2**31 + rng.randrange(400), 2**32 - 1]
        )
    return arrays | {name: changed}


def check_mutations(rng: random.Random, count: int, folder: Path) -> int:
    path, refused = folder / "broken.safetensors", 0
    expanded = {
        name: compile(gbnf(GRAMMARS[name]), VOCABULARY).expand() for name in ("left", "optional", "times")
    }
    for _ in range(count):
        automaton = expanded[rng.choice(list(expanded))]
        arrays = broken(automaton.arrays(), rng)
        artifact.write(path, arrays, VOCABULARY.fingerprint, len(VOCABULARY), "broken")
        try:
            matcher = TokenAutomaton.load(path, VOCABULARY).matcher()
            for _ in range(12):
                choices = allowed(matcher)
                if not choices or not matcher.accept_token(int(rng.choice(choices))):
                    break
            matcher.distance()
            matcher.forced_bytes()
        except ArtifactCorruptError:
            refused += 1
        except TokenfstError:
            pass
    return refused


def test_altered_stacks_are_refused_or_walked(tmp_path: Path) -> None:
    """Whoever makes a digest anew can lie; what is read then is never outside of the tables."""
    assert check_mutations(random.Random(1), 300, tmp_path) > 50


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_altered_stacks_at_length(seed: int, tmp_path: Path) -> None:
    check_mutations(random.Random(seed + 100), 3_000, tmp_path)


def test_budget() -> None:
    grammar = bundled_grammar("json")
    with pytest.raises(TokenfstError, match="seconds"):
        compile(grammar, VOCABULARY, Budget(seconds=1e-9)).expand()
