"""Schemas against the ``jsonschema`` library, with documents walked under the mask, near to them, and at random.

Every failure that was found stays in ``corpus/json_schema.toml``.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.running.parts import in_parts
from support.worlds.json_tokens import END, TOKENS, VOCABULARY

from reference.json.json_schema_documents import documents, instances, near
from reference.json.json_schema_order import ordered
from reference.json.json_spelling import is_spelled, without_fractions
from tokenfst import allocate_token_bitmask, compile
from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.automata.json_values.strings import SPELLINGS, Spelling
from tokenfst.errors import BudgetExceeded, EmptyLanguageError, SchemaError, UnsupportedSchemaError

CORPUS = tomllib.loads((Path(__file__).parents[2] / "corpus" / "json_schema.toml").read_text())["case"]
FORMATS = jsonschema.FormatChecker(["date", "ipv4", "ipv6"])

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def judge(schema: Any) -> Any:
    return jsonschema.Draft202012Validator(in_python(schema), format_checker=FORMATS)


def in_python(schema: Any) -> Any:
    """The schema with its patterns as the library reads them, by ``re``: there ``.`` lacks a newline only, and ``$`` is
    before one at the end, too.
    """

    def spelled(pattern: str) -> str:
        others = {".": r"[^\n\r\u2028\u2029]", "$": r"\Z"}
        return re.sub(r"\\.|\[[^]]*\]|.", lambda found: others.get(found[0], found[0]), pattern)

    if isinstance(schema, list):
        return [in_python(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: in_python(each) for name, each in schema.items()}
    if isinstance(made.get("pattern"), str):
        made["pattern"] = spelled(made["pattern"])
    if isinstance(made.get("patternProperties"), dict):
        made["patternProperties"] = {spelled(name): each for name, each in made["patternProperties"].items()}
    return made


def is_in(constraint: Any, schema: Any, value: Any, ascii_only: bool) -> bool:
    """Whether a text of the value is in, with its members in the order of the schema, or else in any order."""
    if constraint.accepts(json.dumps(ordered(value, [schema], schema), ensure_ascii=ascii_only)):
        return True
    texts = (json.dumps(each, ensure_ascii=ascii_only) for each in itertools.islice(reordered(value), 200))
    return any(map(constraint.accepts, texts))


def reordered(value: Any) -> Any:
    """The value with its members in all orders, at every depth."""
    if isinstance(value, dict):
        for names in itertools.permutations(value):
            for members in itertools.product(*(list(reordered(value[name])) for name in names)):
                yield dict(zip(names, members, strict=True))
    elif isinstance(value, list):
        for items in itertools.product(*(list(reordered(each)) for each in value)):
            yield list(items)
    else:
        yield value


def repeats(text: str) -> bool:
    """Whether an object of the text has a name twice; such a text counts as having both members."""
    found: list[bool] = []
    json.loads(text, object_pairs_hook=lambda pairs: found.append(len(dict(pairs)) < len(pairs)))
    return any(found)


def plain(value: Any) -> bool:
    """Whether ``json.dumps`` writes no number with an exponent, which integers do not have here, or as infinite."""
    return not re.search(r"[0-9]e[+-]|Infinity", json.dumps(value))


def allowed(matcher: Any) -> set[int]:
    mask = allocate_token_bitmask(1, len(VOCABULARY))
    matcher.fill_next_token_bitmask(mask, 0)
    return {token for token in range(len(TOKENS)) if mask[0, token >> 5] >> (token & 31) & 1}


def walk(constraint: Any, rng: random.Random) -> str:
    """A document of random tokens that a token budget allows; without it, each mask is compared with brute force over
    all tokens.
    """
    automaton = compile(constraint, VOCABULARY)
    free, bounded = automaton.matcher(), automaton.matcher(automaton.distance() + rng.randrange(40))
    text = b""
    while not bounded.is_terminated() and bounded.max_tokens_left:
        fits = {
            token
            for token, data in enumerate(TOKENS)
            if data and constraint.viable_prefix(text + data) == len(text + data)
        }
        if constraint.accepts(text):
            fits.add(END)
        assert allowed(free) == fits, text
        choices = allowed(bounded)
        assert choices and choices <= fits
        token = rng.choice(sorted(choices))
        assert bounded.accept_token(token) and free.accept_token(token)
        text += TOKENS[token]
    return text.decode()


def check(schema: Any, values: list[Any], seed: int, spelling: Spelling) -> None:
    validator = judge(schema)
    try:
        constraint = json_schema(schema, spelling=spelling)
        every = json_schema(schema, spelling="any")
    except EmptyLanguageError:
        assert not [value for value in values if validator.is_valid(value)], schema
        return
    except (SchemaError, BudgetExceeded) as error:
        assert isinstance(error, UnsupportedSchemaError | BudgetExceeded) or "itself" in error.reason
        return
    rng = random.Random(seed)
    for _ in range(2):
        text = walk(constraint, rng)
        assert constraint.accepts(text) and every.accepts(text), text
        assert is_spelled(text, spelling)
        if not repeats(text):
            value = json.loads(text)
            assert validator.is_valid(value), (schema, text)
            values = [*values, near(rng, value), near(rng, near(rng, value))]
    for value in filter(plain, values):
        there = is_in(constraint, schema, value, spelling == "ascii")
        if spelling != "any":  # an integer has no fraction there
            there = there or is_in(constraint, schema, without_fractions(value), spelling == "ascii")
        assert there is validator.is_valid(value), (schema, value)


@given(documents(), st.lists(instances(), max_size=6), st.integers(0, 99), st.sampled_from(SPELLINGS))
@QUICK
def test_documents_are_judged_as_the_library_does(
    schema: Any, values: list[Any], seed: int, spelling: Spelling
) -> None:
    check(schema, values, seed, spelling)


@in_parts(
    20, 250, documents(), st.lists(instances(), max_size=6), st.integers(0, 9999), st.sampled_from(SPELLINGS)
)
def test_many_documents_are_judged_as_the_library_does(
    schema: Any, values: list[Any], seed: int, spelling: Spelling
) -> None:
    check(schema, values, seed, spelling)


@pytest.mark.parametrize("case", CORPUS, ids=[case["name"] for case in CORPUS])
def test_the_corpus(case: dict[str, Any]) -> None:
    schema = json.loads(case["schema"])
    constraint = json_schema(schema, spelling="any")
    validator = judge(schema)
    for text in case["valid"]:
        assert constraint.accepts(text), text
        assert case.get("alone") or validator.is_valid(json.loads(text)), text
    for text in case["invalid"]:
        assert not constraint.accepts(text), text
    for spelling in SPELLINGS:
        check(schema, [json.loads(text) for text in case["valid"]], 7, spelling)
