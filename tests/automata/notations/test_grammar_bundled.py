"""The bundled grammars: their samples, and the parsers that the world has for these languages."""

from __future__ import annotations

import ast
import json
import random
import sqlite3
import tomllib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from reference.grammars import grammars as slow
from tokenfst import Vocabulary, allocate_token_bitmask, compile
from tokenfst.automata.notations.bundled import bundled_grammar, bundled_grammars
from tokenfst.errors import ConstraintError

CORPUS = Path(__file__).parents[2] / "corpus" / "grammars"


@pytest.mark.parametrize("name", bundled_grammars())
def test_samples(name: str) -> None:
    samples = tomllib.loads((CORPUS / f"{name}.toml").read_text())
    assert len(samples["yes"]) >= 8 and len(samples["no"]) >= 7
    language = bundled_grammar(name).truncate(5)
    assert [word for word in samples["yes"] if not language.accepts(word)] == []
    assert [word for word in samples["no"] if language.accepts(word)] == []


@pytest.mark.parametrize("name", bundled_grammars())
def test_grammars_are_tidy(name: str) -> None:
    grammar = bundled_grammar(name)
    assert grammar.text.startswith("// ")
    assert all(finding.kind.value == "left-recursion" for finding in grammar.lint())
    assert bundled_grammar(name) is grammar


def test_the_short_samples_against_the_definitions() -> None:
    for name in ("json", "sexpr", "csv"):
        samples = tomllib.loads((CORPUS / f"{name}.toml").read_text())
        grammar = bundled_grammar(name)
        for kind in ("yes", "no"):
            for word in samples[kind]:
                if len(word) < 9:
                    assert slow.accepts(grammar.rules, grammar.start, word.encode()) == (kind == "yes"), word


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ConstraintError, match="unknown bundled grammar 'xml'; expected one of arithmetic"):
        bundled_grammar("xml")


# --- JSON against json --------------------------------------------------------------------------------


def random_value(rng: random.Random, depth: int) -> object:
    kind = rng.randrange(7 if depth else 5)
    if kind == 5:
        return [random_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 6:
        return {rng.choice('abé"\\\n'): random_value(rng, depth - 1) for _ in range(rng.randrange(4))}
    leaves = [None, rng.random() < 0.5, rng.randint(-99, 99), rng.uniform(-1, 1) * 10 ** rng.randint(-9, 9)]
    return leaves[kind] if kind < 4 else "".join(rng.choices('aé😀"\\\n\t/\x7f', k=rng.randrange(5)))


def mutated(rng: random.Random, text: str) -> str:
    for _ in range(rng.randrange(3)):
        at = rng.randrange(len(text) + 1)
        new = rng.choice(
            [*'{}[],:"\\ \t\n0123456789.-+eEu/', "null", "NaN", "Infinity", "\\u00e9", "é", "\x1f", " "]
        )
        text = text[:at] + rng.choice([new, ""]) + text[at + rng.randrange(3) :]
    return text


def mutated_documents(seed: int, count: int, depth: int) -> Iterator[tuple[str, str, bool]]:
    """JSON documents, texts that they were changed to, and whether those are JSON: some are and some are not."""
    rng, right = random.Random(seed), 0
    for _ in range(count):
        indent = rng.choice([None, None, 1])
        document = json.dumps(random_value(rng, depth), ensure_ascii=rng.random() < 0.5, indent=indent)
        text = mutated(rng, document)
        expected = is_json(text)
        right += expected
        yield document, text, expected
    assert count // 8 < right < count * 7 // 8


def refuse(name: str) -> None:
    raise ValueError(f"{name} is Python's own")


def is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        return False
    return True


def nesting(text: str) -> int:
    """How often a value of a JSON text is nested inside of values."""

    def depth(value: object) -> int:
        inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        return 1 + max(map(depth, inner)) if inner else 0

    return depth(json.loads(text, object_pairs_hook=lambda pairs: dict(enumerate(v for _, v in pairs))))


def json_documents(seed: int, count: int, depth: int) -> None:
    languages = [bundled_grammar("json").truncate(d) for d in range(depth + 2)]
    for _, text, expected in mutated_documents(seed, count, depth):
        needed = nesting(text) if expected else 0
        for d, language in enumerate(languages):
            assert language.accepts(text) == (expected and d >= needed), (text, d)


def test_json_documents() -> None:
    json_documents(0, 4000, 3)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 21))
def test_json_documents_soak(seed: int) -> None:
    json_documents(seed, 20_000, 4)


# --- samples of a truncation are right for the parsers of the world -----------------------------------


def parse_python(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ast.parse(text.strip(" \t"), mode="eval")


def parse_sql(text: str) -> None:
    try:
        sqlite3.connect(":memory:").execute(text)
    except sqlite3.Error as error:  # there are no tables: only errors of syntax count
        if any(word in str(error) for word in ("syntax", "incomplete", "unrecognized")):
            raise


@pytest.mark.parametrize(
    ("name", "parse"),
    [("json", json.loads), ("python_expression", parse_python), ("sql_select", parse_sql)],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_samples_parse(name: str, parse: Callable[[str], object]) -> None:
    rng = random.Random(7)
    language = bundled_grammar(name).truncate(2)
    for _ in range(150):
        text = language.sample(rng).decode()
        try:
            parse(text)
        except Exception as error:
            raise AssertionError(f"{text!r}: {error}") from error


def test_sql_begins_no_comment() -> None:
    sql = bundled_grammar("sql_select")
    for value in ("1--1", "1 --1", "a--b", "1 - 2--3"):
        assert not sql.accepts(f"SELECT {value} FROM t")
    for value in ("1-1", "1 - -1", "1- -1", "1-+1", "1+-1", "2*-1", "a-b - -c"):
        assert sql.accepts(f"SELECT {value} FROM t"), value


# --- the whole way ------------------------------------------------------------------------------------


def test_json_over_a_real_vocabulary(tekken: Vocabulary) -> None:
    automaton = compile(bundled_grammar("json").truncate(3), tekken)
    rng = np.random.default_rng(3)
    bitmask = allocate_token_bitmask(1, len(tekken))
    # Random tokens are strings most of the time: signs are preferred, so that there are arrays and objects too.
    signs = [token for sign in b'{}[],:"0' for token in tekken.ids(bytes([sign]))]
    deepest = 0
    for _ in range(40):
        matcher = automaton.matcher(max_new_tokens=40)
        while not matcher.is_terminated() and matcher.max_tokens_left:
            matcher.fill_next_token_bitmask(bitmask)
            allowed = np.unpackbits(bitmask.view(np.uint8), bitorder="little")
            wanted = [token for token in signs if allowed[token]] if rng.random() < 0.7 else []
            assert matcher.accept_token(int(rng.choice(wanted or np.flatnonzero(allowed))))
        assert matcher.is_accepting() or matcher.is_terminated()
        text = tekken.decode(matcher.tokens).decode()
        assert is_json(text), text
        assert nesting(text) <= 3
        deepest = max(deepest, nesting(text))
    assert deepest >= 2
