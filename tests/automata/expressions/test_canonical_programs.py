"""A program depends on the expressions alone: not on which of them are one object, nor on what a process did before."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from reference.expressions.random_expressions import random_expression
from tokenfst import Vocabulary, compile, json_schema, regex
from tokenfst._native import Lexicon
from tokenfst.automata.expressions import expression as ex
from tokenfst.automata.expressions.expression import Dfa, Expr, Op
from tokenfst.automata.expressions.program import Program, instructions, linearize
from tokenfst.automata.json_schema.writing.program import schema_program
from tokenfst.budget import Budget
from tokenfst.common.clock_cache import Recent
from tokenfst.decoding.artifacts.program_arrays import arrays

MASKBENCH = Path(__file__).resolve().parents[4] / "shared" / "maskbench" / "all.jsonl.gz"
VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), b'"a', b'":', b"ab", b""], 259)


def parts(program: Program) -> dict[str, bytes]:
    """Everything that an artifact has of a program."""
    return {name: array.tobytes() for name, array in arrays(program).items()}


def apart(expr: Expr, variables: dict[Expr, Expr] | None = None) -> Expr:
    """The same expression, in which no two places have one object. Exponential in the worst case."""
    variables = variables or {}
    if expr in variables:
        return variables[expr]
    if expr.op is Op.VARIABLE:
        return ex.recursive(lambda again: apart(expr.args[0], {**variables, expr: again}))
    value = expr.value
    if isinstance(value, Dfa):
        value = Dfa(value.classes.copy(), value.table.copy(), value.accepting.copy(), value.start)
    if isinstance(value, Lexicon):
        value = Lexicon(value.words())
    inner = tuple(apart(arg, variables) for arg in expr.args)
    return Expr(expr.op, inner, value, expr.source, expr.size, expr.nullable)


def content_of(value: Any) -> Any:
    if isinstance(value, Dfa):
        return tuple(np.asarray(each).tobytes() for each in value.native_tables())
    return tuple(value.words()) if isinstance(value, Lexicon) else value


def slow_instructions(root: Expr) -> list[tuple[Any, ...]]:
    """Of an expression without variables its different parts in the order in which they are complete."""
    found: dict[tuple[Any, ...], int] = {}

    def number(node: Expr) -> int:
        inner = tuple(number(arg) for arg in node.args)
        content = content_of(node.value)
        return found.setdefault((node.op, inner, content), len(found))

    number(root)
    return list(found)


def worlds(rng: random.Random, number: int) -> Iterator[Expr]:
    for _ in range(number):
        part = random_expression(rng, 3)
        yield ex.concat(ex.union(part, ex.literal(b"x")), random_expression(rng, 2), part)


@pytest.mark.parametrize("seed", range(6))
def test_shared_and_separate_objects_give_one_program(seed: int) -> None:
    rng = random.Random(seed)
    for expr in worlds(rng, 60):
        program = linearize(expr)
        assert parts(linearize(apart(expr))) == parts(program), expr
        if all(node.op is not Op.VARIABLE for node in expr.walk()):
            slow = slow_instructions(expr)
            ops = [op for op, _, _ in instructions(program.code.tolist())]
            assert ops == [int(op) for op, _, _ in slow], expr


def test_equal_recursions_are_one() -> None:
    def words() -> Expr:
        return ex.recursive(
            lambda again: ex.union(
                ex.literal(b";"),
                ex.concat(ex.byte_set(6 << 97), again),
                ex.concat(ex.byte_set(6 << 97), again),
            )
        )

    def nested() -> Expr:
        return ex.recursive(
            lambda outer: ex.union(
                ex.EPSILON,
                ex.recursive(
                    lambda again: ex.union(
                        ex.concat(ex.literal(b"("), again), ex.concat(ex.literal(b"-"), outer)
                    )
                ),
            )
        )

    for make in (words, nested):
        once = make()
        shared = linearize(ex.union(ex.concat(ex.literal(b"0"), once), ex.concat(ex.literal(b"1"), once)))
        separate = linearize(
            ex.union(ex.concat(ex.literal(b"0"), make()), ex.concat(ex.literal(b"1"), make()))
        )
        assert parts(shared) == parts(separate)
        assert [op for op, _, _ in instructions(shared.code.tolist())].count(Op.VARIABLE) == (
            1 if make is words else 2
        )


def test_different_instructions_stay_apart() -> None:
    """Literals whose places in the table of words look alike, and sets, bounds and kinds that differ."""
    leaves = [
        ex.literal(b"ab"),
        ex.literal(b"cd"),
        ex.literal(b"abc"),
        ex.byte_set(6 << 97),
        ex.byte_set(6 << 98),
    ]
    made = [
        *leaves,
        *(ex.repeat(leaf, low, 3) for leaf in leaves for low in (0, 1)),
        *map(ex.complement, leaves),
    ]
    code = linearize(ex.intersect(*made)).code.tolist()
    assert len(list(instructions(code))) == len(made) + 1


def test_a_root_that_is_a_rule_too_is_the_last_instruction() -> None:
    rules = {"word": (ex.literal(b"ab"), False), "set": (ex.byte_set(6 << 97), False)}
    program = linearize(ex.literal(b"ab"), rules)
    assert [place for place, _ in program.rules] == [0, 1]
    assert list(instructions(program.code.tolist()))[2:] == [(Op.UNION, 9, 10)] and program.code[9] == 0


def test_equal_rules_with_recursion_in_one_walk() -> None:
    def body() -> Expr:
        return ex.recursive(lambda again: ex.union(ex.literal(b"a"), ex.concat(ex.literal(b"-"), again)))

    def rules(one: Expr, other: Expr) -> Program:
        bodies = {"start": ex.concat(ex.call("a"), ex.call("b")), "a": one, "b": other}
        found = schema_program(bodies, "start", "none", (), Budget())
        assert isinstance(found, Program)
        return found

    once = body()
    assert parts(rules(body(), body())) == parts(rules(once, once))


# --- histories of a process -----------------------------------------------------------------------------------------

SCHEMAS: list[Any] = [
    {"type": "object", "properties": {name: {"enum": ["x", 1, None]} for name in "abc"}, "required": ["a"]},
    {"type": "array", "items": {"anyOf": [{"type": "string", "maxLength": 3}, {"const": "abc"}]}},
    {"properties": {"a": {"pattern": "^(?=.*b)a"}, "b": {"pattern": "^(?=.*b)a"}, "c": {"format": "date"}}},
    {
        "type": "object",
        "properties": {"n": {"minimum": 3, "multipleOf": 7}, "m": {"minimum": 3, "multipleOf": 7}},
    },
    # Until equal instructions were one, each of these had another program when caches were empty.
    {"allOf": [{"enum": [[1, "x"]]}, {"not": {"items": {"type": "integer"}}}]},
    {
        "allOf": [
            {"enum": [{"foo": "bar", "foooooo": "baz"}]},
            {"not": {"patternProperties": {"f.*o": {"type": "integer"}}}},
        ]
    },
    {
        "definitions": {
            "answer": {"enum": ["yes", "no"], "type": "string"},
            "dog": {
                "properties": {"animal": {"allOf": [{"$ref": "#/definitions/answer"}]}},
                "type": "object",
            },
        },
        "properties": {"answer": {"$ref": "#/definitions/answer"}, "dog": {"$ref": "#/definitions/dog"}},
        "required": ["answer", "dog"],
    },
]


def without(self: Recent[Any, Any], key: object, make: Callable[[], Any]) -> Any:
    return make()


@contextmanager
def forgetful() -> Iterator[None]:
    """A process whose caches have lost everything whenever they are asked."""
    with mock.patch.object(Recent, "get", without):
        yield


@pytest.mark.parametrize("schema", SCHEMAS)
def test_what_caches_have_does_not_matter(schema: Any) -> None:
    known = parts(json_schema(schema).program())
    with forgetful():
        assert parts(json_schema(schema).program()) == known


def rows(number: int, seed: int) -> list[Any]:
    if not MASKBENCH.is_file():
        pytest.skip("MaskBench is not beside the repository")
    with gzip.open(MASKBENCH) as file:
        lines = list(file)
    return [json.loads(line)["schema"] for line in random.Random(seed).sample(lines, number)]


def test_real_schemas_give_one_program_whatever_caches_have() -> None:
    compared = 0
    for schema in rows(300, 1):
        try:
            known = parts(json_schema(schema).program())
        except ValueError:
            continue
        with forgetful():
            assert parts(json_schema(schema).program()) == known, schema
        compared += 1
    assert compared > 290


PROGRAMS = """
import hashlib, json, random, sys
from tokenfst import json_schema
from tokenfst.decoding.artifacts.program_arrays import arrays
from tokenfst.errors import TokenfstError
order, found = list(enumerate(json.load(sys.stdin))), {}
random.Random(int(sys.argv[1])).shuffle(order)
for number, schema in order:
    try:
        program = json_schema(schema).program()
    except TokenfstError:  # which schemas are refused, also for their size, does not depend on the order
        continue
    digest = hashlib.sha256()
    for name, array in sorted(arrays(program).items()):
        digest.update(name.encode() + array.tobytes())
    found[number] = digest.hexdigest()
print(json.dumps(found, sort_keys=True))
"""


@pytest.mark.parametrize("number", [150, pytest.param(11_305, marks=pytest.mark.soak)])
def test_processes_write_the_same_programs_in_any_order(number: int) -> None:
    given = json.dumps(rows(number, 2)).encode()
    one, other = (
        subprocess.run(
            [sys.executable, "-c", PROGRAMS, seed], input=given, capture_output=True, check=True
        ).stdout
        for seed in "12"
    )
    assert len(json.loads(one)) > 0.99 * number
    assert one == other


def test_workers_with_different_histories_merge_what_they_learned(tmp_path: Path) -> None:
    schema = SCHEMAS[-1]
    one = compile(json_schema(schema), VOCABULARY)
    with forgetful():
        other = compile(json_schema(schema), VOCABULARY)
    fill(one, b'{"answer": "yes", "dog": {}}')
    fill(other, b'{"answer": "no", "dog": {"animal": "yes"}}')
    file = tmp_path / "learned.safetensors"
    one.update(file)
    other.update(file)
    one.update(file)
    assert one.serialize(learned=True) == other.serialize(learned=True)


def fill(automaton: Any, text: bytes) -> None:
    """Compute the masks along a text."""
    mask = np.zeros((1, (len(VOCABULARY) + 31) // 32), np.int32)
    matcher = automaton.matcher()
    for byte in text:
        matcher.fill_next_token_bitmask(mask)
        assert matcher.accept_token(byte)


def test_a_pattern_is_one_program_in_any_process() -> None:
    pattern = r"(?=[a-z]*b)[a-z]+|(?=[a-z]*b)[a-z]+-"
    assert parts(regex(pattern).program()) == parts(regex(pattern).program())


def test_machines_that_differ_in_one_entry_are_two() -> None:
    classes = np.zeros(256, np.uint8)
    classes[97] = 1
    tables = [np.array([[0, 0], [0, 2], [2, last]], np.uint32) for last in (0, 1, 1)]
    machines = [Dfa(classes.copy(), table, np.array([False, False, True]), 1) for table in tables]
    other = Dfa(classes, tables[1], np.array([False, True, True]), 1)
    assert machines[1].shape == machines[2].shape
    assert len({each.shape for each in (*machines, other)}) == 3
    program = linearize(
        ex.union(*(ex.concat(ex.machine(each), ex.literal(b"x")) for each in (*machines, other)))
    )
    assert len(program.machines) == 3
