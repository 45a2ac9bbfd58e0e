"""Nodes of expressions, which the core makes: the operators, against what they mean said in Python, and the type."""

import gc
import pickle
import weakref
from itertools import product

import pytest

from tokenfst.automata.expressions.expression import (
    ANY_BYTE,
    EMPTY,
    EPSILON,
    MOST_POSITIONS,
    Expr,
    Op,
    byte_set,
    call,
    complement,
    concat,
    literal,
    recursive,
    repeat,
    union,
)
from tokenfst.automata.languages.language import Language

_LONG = repeat(literal(b"ab"), 0, 1 << 60)
_PARTS = (
    EMPTY,
    EPSILON,
    literal(b"a"),
    repeat(literal(b"b")),
    call("rule"),
    complement(literal(b"a")),
    _LONG,
)


def joined(op: Op, parts: tuple[Expr, ...], zero: Expr | None, neutral: Expr) -> Expr | tuple[object, ...]:
    """What `concat` and `union` are to make: a part, or the op, operands, size and nullability of a node."""
    if zero in parts:
        return EMPTY
    kept = tuple(part for part in parts if part is not neutral)
    if len(kept) < 2:
        return kept[0] if kept else neutral
    if not all(part.size for part in kept):
        return op, kept, 0, False
    nullable = (all if op is Op.CONCAT else any)(part.nullable for part in kept)
    return op, kept, min(sum(part.size for part in kept), MOST_POSITIONS), nullable


@pytest.mark.parametrize("count", range(4))
def test_operators(count: int) -> None:
    for parts in product(_PARTS, repeat=count):
        for op, made, expected in (
            (Op.CONCAT, concat(*parts), joined(Op.CONCAT, parts, EMPTY, EPSILON)),
            (Op.UNION, union(*parts), joined(Op.UNION, parts, None, EMPTY)),
        ):
            if isinstance(expected, Expr):
                assert made is expected
            else:
                assert (made.op, made.args, made.size, made.nullable) == expected
                assert made.op is op and made.value is None and made.source is None and made.known == 0


def test_sizes_stop() -> None:
    most = concat(*[_LONG] * 9)
    assert most.size == union(*[_LONG] * 9).size == MOST_POSITIONS
    for size in (
        concat(most, most).size,
        union(most, ANY_BYTE, most).size,
        repeat(concat(most, most), 2, 255).size,
    ):
        assert size == MOST_POSITIONS


def test_literals() -> None:
    assert literal(b"") is EPSILON
    made = literal(b"ab")
    assert (made.op, made.args, made.value, made.size, made.nullable) == (Op.LITERAL, (), b"ab", 1, False)


def test_bad_input() -> None:
    for bad in (
        lambda: concat(literal(b"a"), b"b"),  # type: ignore[arg-type]
        lambda: union(None),  # type: ignore[arg-type]
        lambda: literal("a"),  # type: ignore[arg-type]
        lambda: Expr(),  # type: ignore[call-arg]
        lambda: Expr(Op.CONCAT, [EMPTY]),  # type: ignore[arg-type]
        lambda: Expr(Op.CONCAT, args=(), args_too=()),  # type: ignore[call-arg]
        lambda: Language(concat(literal(b"a"), Expr(Op.UNION, (b"b", EPSILON)))).accepts("a"),  # type: ignore[arg-type]
    ):
        with pytest.raises((TypeError, AttributeError)):
            bad()
    with pytest.raises(ValueError):
        Expr(99)  # type: ignore[arg-type]


def test_fields_may_be_named() -> None:
    made = Expr(Op.REPEAT, source="x*", value=(0, -1), args=(byte_set(2),), nullable=True, size=1)
    assert (made.op, made.args[0].value, made.value, made.source) == (Op.REPEAT, 2, (0, -1), "x*")
    assert made.named("y").source == "y" and made.named("y").args is made.args


def test_pickling_keeps_recursion() -> None:
    made = recursive(lambda again: union(literal(b"c"), concat(literal(b"ab"), again)))
    copied = pickle.loads(pickle.dumps(made))
    assert Language(copied).equivalent(Language(made))
    assert copied.args[0].args[1].args[1] is copied


def test_another_node_for_a_recursion() -> None:
    """The body of a recursion refers to its node, so a copy of that node beside it would be a second one."""
    made = recursive(lambda again: union(literal(b"c"), concat(literal(b"ab"), again)))
    named = made.named("again")
    assert named is not made and named.source == "again"
    for both in (concat(named, made), concat(made, named)):
        language = Language(both)
        assert [word for word in ("cc", "ababcabc", "abc", "cab") if language.accepts(word)] == [
            "cc",
            "ababcabc",
        ]


def test_recursion_is_collected() -> None:
    language = Language(recursive(lambda again: union(literal(b"c"), concat(literal(b"ab"), again))))
    seen = weakref.ref(language)
    count = sum(isinstance(each, Expr) for each in gc.get_objects())
    del language
    gc.collect()
    assert seen() is None
    assert sum(isinstance(each, Expr) for each in gc.get_objects()) < count


def tracked(*nodes: Expr) -> list[bool]:
    return [gc.is_tracked(node) for node in nodes]


def test_the_collector_knows_recursions_only() -> None:
    """A collection goes through all that it knows, and expressions have very many nodes."""
    part = concat(literal(b"a"), repeat(byte_set(6), 0, 3))
    nodes = [part, union(part, complement(part)), call("rule"), Expr(Op.CONCAT, (part, EPSILON))]
    assert tracked(*nodes) == [False] * len(nodes)
    assert not any(gc.is_tracked(node.args) for node in nodes)
    around: list[Expr] = []

    def body(variable: Expr) -> Expr:
        around.append(union(EPSILON, concat(part, variable)))
        return around[0]

    variable = recursive(body)
    assert tracked(variable, around[0], union(part, variable), complement(variable)) == [True] * 4
    again = pickle.loads(pickle.dumps((around[0], part)))
    assert tracked(*again) == [True, False]
