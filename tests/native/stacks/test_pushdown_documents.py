"""Push-down automata on real documents: JSON beside Python's own parser, and every bundled grammar token by token over
a real vocabulary, with brute force on a sample of its tokens.
"""

from __future__ import annotations

import json
import random
import tomllib
from pathlib import Path

import numpy as np
import pytest

from reference.grammars.pushdown import Chart, Recognizer
from tests.automata.notations.test_grammar_bundled import is_json, mutated_documents, random_value
from tokenfst import Matcher, TokenAutomaton, Vocabulary, allocate_token_bitmask, compile
from tokenfst.automata.notations.bundled import bundled_grammar, bundled_grammars

SAMPLES = Path(__file__).parents[2] / "corpus" / "grammars"
STRUCTURE = [
    *"{}[](),:;+-.01ab=é\n\\\"", "true", "null", "},", "]}", '"}', '","', '":"', '{"', '["', "),", "((", "]]", "=="
]  # fmt: skip


# --- JSON beside json ---------------------------------------------------------------------------------


def json_documents(seed: int, count: int, depth: int) -> None:
    grammar = bundled_grammar("json")
    for document, text, expected in mutated_documents(seed, count, depth):
        assert grammar.accepts(text) == expected, text
        data = text.encode()
        viable = grammar.viable_prefix(data)
        assert viable == len(data) or not expected
        following, whole = grammar.next_bytes(data[:viable])
        assert viable == len(data) or data[viable] not in following
        assert whole == is_json(data[:viable].decode(errors="replace"))
        assert grammar.viable_prefix(document.encode()) == len(document.encode())


def test_json_documents() -> None:
    json_documents(0, 4000, 4)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 21))
def test_json_documents_soak(seed: int) -> None:
    json_documents(seed, 20_000, 5)


def test_prefixes_of_json_are_what_a_bracket_counter_says() -> None:
    """Every prefix of a document is viable; closing what is open, and no more, makes a word of some of them."""
    grammar, rng = bundled_grammar("json"), random.Random(4)
    for _ in range(60):
        document = json.dumps(random_value(rng, 4))
        for cut in range(len(document) + 1):
            prefix = document[:cut]
            assert grammar.viable_prefix(prefix.encode()) == cut
            assert grammar.accepts(prefix) == is_json(prefix)
            assert (b"}"[0] in grammar.next_bytes(prefix.encode())[0]) == any(
                is_json(f"{prefix}}}{closing}") for closing in closings(prefix)
            )


def closings(prefix: str) -> list[str]:
    """What closes the brackets that are open after ``prefix`` and a further ``}``; or, inside of a string, also it."""
    stack, inside, escaped = [], False, False
    for char in prefix:
        if inside:
            inside, escaped = escaped or char != '"', char == "\\" and not escaped
        elif char == '"':
            inside = True
        elif char in "[{":
            stack.append("]" if char == "[" else "}")
        elif char in "]}":
            stack.pop()
    whole = "".join(reversed(stack))
    return ['"' + whole, '":0' + whole] if inside else [whole[1:]] if whole[:1] == "}" else []


# --- every bundled grammar over a real vocabulary -----------------------------------------------------


def words(name: str) -> list[bytes]:
    return [text.encode() for text in tomllib.loads((SAMPLES / f"{name}.toml").read_text())["yes"]]


def allowed_rows(matcher: Matcher, size: int) -> np.ndarray:
    mask = allocate_token_bitmask(1, size)
    matcher.fill_next_token_bitmask(mask)
    return np.unpackbits(mask.view(np.uint8), bitorder="little", count=size)


def probes(rng: random.Random, vocabulary: Vocabulary, row: np.ndarray, count: int) -> list[int]:
    """Tokens to try: any, some that the mask allows, some that it does not, and those of structure."""
    structural = [token for text in STRUCTURE for token in vocabulary.ids(text.encode())]
    tokens = rng.sample(structural, min(count, len(structural)))
    for kind in (0, 1):
        of_kind = np.flatnonzero(row == kind)
        tokens += [int(of_kind[rng.randrange(len(of_kind))]) for _ in range(count) if len(of_kind)]
    return tokens


def follow(
    rng: random.Random, automaton: TokenAutomaton, recognizer: Recognizer, text: bytes, count: int
) -> None:
    """One document; the mask at each of its tokens."""
    vocabulary = automaton.vocabulary
    special, eos = set(vocabulary.special_tokens.values()), set(vocabulary.eos_token_ids)
    matcher, chart = automaton.matcher(), recognizer.first
    tokens = vocabulary.encode_greedy(text)
    for token in [*tokens, None]:
        assert isinstance(chart, Chart)
        row = allowed_rows(matcher, len(vocabulary))
        for probe in probes(rng, vocabulary, row, count):
            spelled = vocabulary.tokens[probe]
            expected = bool(spelled) and probe not in special and chart.run(spelled) is not None
            if probe in eos:
                expected = chart.accepts
            assert bool(row[probe]) == expected, (text, matcher.num_tokens, spelled)
        assert matcher.is_accepting() == chart.accepts == all(row[end] for end in eos)
        if token is not None:
            assert row[token] and matcher.accept_token(token)
            after = chart.run(vocabulary.tokens[token])
            assert after is not None
            chart = after
    assert matcher.is_accepting()


def check_documents(name: str, seed: int, documents: list[bytes], vocabulary: Vocabulary, count: int) -> None:
    grammar = bundled_grammar(name)
    automaton, recognizer = compile(grammar, vocabulary), Recognizer(grammar.rules, grammar.start)
    rng = random.Random(seed)
    for text in documents:
        follow(rng, automaton, recognizer, text, count)


@pytest.mark.parametrize("name", bundled_grammars())
def test_documents_token_by_token(name: str, tekken: Vocabulary) -> None:
    documents = words(name)
    check_documents(name, 1, random.Random(1).sample(documents, min(len(documents), 7)), tekken, 5)


def test_json_documents_token_by_token(tekken: Vocabulary) -> None:
    rng = random.Random(2)
    documents = [json.dumps(random_value(rng, 4), indent=rng.choice([None, 2])).encode() for _ in range(15)]
    check_documents("json", 3, documents, tekken, 6)


@pytest.mark.soak
@pytest.mark.parametrize("name", bundled_grammars())
@pytest.mark.parametrize("seed", range(10, 15))
def test_documents_token_by_token_at_length(name: str, seed: int, tekken: Vocabulary) -> None:
    check_documents(name, seed, words(name), tekken, 100)


def test_a_whole_mask_by_brute_force(tekken: Vocabulary) -> None:
    """Every token of the vocabulary, at places where masks are wide, narrow and across many brackets."""
    grammar = bundled_grammar("json")
    automaton, recognizer = compile(grammar, tekken), Recognizer(grammar.rules, grammar.start)
    eos, special = set(tekken.eos_token_ids), set(tekken.special_tokens.values())
    assert recognizer.first is not None
    for text in (b'{"a": [1, {"b": [', b'[[{"a": {"b": 12'):
        matcher, chart = automaton.matcher(), recognizer.first.run(text)
        assert chart is not None and matcher.accept_tokens(tekken.encode_greedy(text))
        found = set(np.flatnonzero(allowed_rows(matcher, len(tekken))).tolist())
        wanted = {
            token
            for token, spelled in enumerate(tekken.tokens)
            if spelled and token not in special and chart.run(spelled) is not None
        }
        assert found - eos == wanted


@pytest.mark.parametrize("name", ["json", "python_expression", "sql_select"])
def test_kept_masks_are_those_of_a_fresh_automaton(name: str, tekken: Vocabulary) -> None:
    """An automaton that has seen all documents, beside one made for each place."""
    grammar, rng = bundled_grammar(name), random.Random(name)
    kept = compile(grammar, tekken)
    for text in words(name):
        matcher = kept.matcher()
        for token in tekken.encode_greedy(text):
            allowed_rows(matcher, len(tekken))
            assert matcher.accept_token(token)
    for text in rng.sample(words(name), 3):
        tokens = tekken.encode_greedy(text)
        cut = rng.randrange(len(tokens) + 1)
        rows = []
        for automaton in (kept, compile(grammar, tekken)):
            matcher = automaton.matcher()
            assert matcher.accept_tokens(tokens[:cut])
            rows.append(allowed_rows(matcher, len(tekken)))
        assert np.array_equal(*rows), (text, cut)
