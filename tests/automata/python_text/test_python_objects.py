"""Python text: what is accepted is what ``eval`` gives, ``repr`` is accepted, texts are read back without ``eval``."""

from __future__ import annotations

import ast
import random
from dataclasses import InitVar, dataclass, field, make_dataclass
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reference.tools.python_calls import call_texts
from tokenfst import Budget, Grammar, Language, Vocabulary, compile, python_calls, python_object, regex
from tokenfst.automata.python_text.objects import PythonCall, PythonGrammar, PythonLanguage
from tokenfst.errors import AnnotationError, BudgetExceeded, ConstraintError, EmptyLanguageError


class Color(Enum):
    RED = 1
    BLUE = "b"
    CRIMSON = 1  # noqa: PIE796 - an alias


class Level(IntEnum):
    LOW = 0
    HIGH = 1


class Corner(NamedTuple):
    x: int
    y: int = 0


UserId = NewType("UserId", int)


@dataclass
class Point:
    x: int
    y: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Key:
    name: str
    parts: tuple[int, ...] = ()


@dataclass
class Scene:
    point: Point | None
    color: Color
    title: str
    keys: dict[Key, set[int]]
    raw: bytes = b""
    mode: Literal["it's", -1, True, None, Color.RED, b"\x00"] = None
    pair: tuple[int, str] = (0, "")
    one: tuple[bool] = (True,)
    none: tuple[()] = ()
    frozen: frozenset[Level] = frozenset()
    corner: Corner = field(default=Corner(1), kw_only=True)
    user: UserId = field(default=UserId(0), kw_only=True)
    seed: InitVar[int] = 0


@dataclass
class Tree:
    value: int
    children: list[Tree] = field(default_factory=list)


@dataclass
class Leaf:
    name: str


@dataclass
class Fork:
    left: Fork | Leaf
    right: Fork | Leaf


NAMES = {kind.__name__: kind for kind in (Color, Level, Corner, Point, Key, Scene, Tree, Leaf, Fork)}


def evaluated(text: str) -> Any:
    """What ``eval`` makes of a text, with the classes of this file and nothing else."""
    return eval(text, {"__builtins__": {"set": set, "frozenset": frozenset}, **NAMES})


ANNOTATIONS: list[Any] = [
    int,
    float,
    bool,
    str,
    bytes,
    None,
    Color,
    list[int],
    dict[str, list[bool]],
    set[tuple[int, str]],
    frozenset[bytes],
    tuple[()],
    tuple[int],
    tuple[int, ...],
    tuple[int, str, None],
    Optional[float],  # noqa: UP045 - the old spelling
    int | str | None,
    Literal["a", "b\n", 3, False],
    Annotated[str, regex("[a-c\n']+")],
    list[int] | list[str],
    Point,
    Scene,
    Tree,
    Fork,
    dict[Key, Corner],
]


@pytest.mark.parametrize("arguments", ["keyword", "positional", "any"])
@pytest.mark.parametrize("annotation", ANNOTATIONS, ids=str)
def test_samples_are_what_eval_says(annotation: Any, arguments: Any) -> None:
    constraint = python_object(annotation, arguments=arguments)
    rng = random.Random(0)
    sampled = constraint if isinstance(constraint, Language) else constraint.truncate(3)
    for _ in range(25):
        text = sampled.sample(rng).decode()
        ast.parse(text, mode="eval")
        value = constraint.parse(text)
        assert value == evaluated(text) and type(value) is type(evaluated(text)), text


def test_recursive_classes_are_grammars() -> None:
    assert isinstance(python_object(Scene), PythonLanguage)
    tree = python_object(Tree)
    assert isinstance(tree, PythonGrammar) and tree.is_deterministic()
    text = "Tree(value=1, children=[Tree(value=2), Tree(value=-3, children=[])])"
    assert tree.parse(text) == Tree(1, [Tree(2), Tree(-3)])
    assert not tree.accepts(text[:-1])
    vocabulary = Vocabulary([bytes([byte]) for byte in range(256)] + [b""], 256)
    matcher = compile(tree, vocabulary).matcher()
    assert matcher.accept_tokens(list(text.encode())) and matcher.is_accepting()


# --- instances ----------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
POINTS = st.builds(Point, st.integers(), st.lists(FLOATS, max_size=3))
KEYS = st.builds(Key, TEXTS, st.lists(st.integers(), max_size=3).map(tuple))
SCENES = st.builds(
    Scene,
    st.none() | POINTS,
    st.sampled_from(Color),
    TEXTS,
    st.dictionaries(KEYS, st.sets(st.integers(), max_size=3), max_size=2),
    st.binary(max_size=8),
    st.sampled_from(["it's", -1, True, None, Color.RED, b"\x00"]),
    st.tuples(st.integers(), TEXTS),
    st.tuples(st.booleans()),
    frozen=st.frozensets(st.sampled_from(Level)),
    corner=st.builds(Corner, st.integers(), st.integers()),
)
TREES = st.recursive(
    st.builds(Tree, st.integers()), lambda inner: st.builds(Tree, st.integers(), st.lists(inner, max_size=3))
)


def named(text: str) -> str:
    """``repr`` with enum members by name: ``<Color.RED: 1>`` is no Python."""
    for member in (*Color, *Level):
        text = text.replace(repr(member), f"{type(member).__name__}.{member.name}")
    return text


LANGUAGES = {kind: python_object(kind) for kind in (Point, Key, Scene, Tree)}


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(POINTS | KEYS | SCENES | TREES)
def test_repr_is_accepted_and_read_back(instance: Any) -> None:
    constraint = LANGUAGES[type(instance)]
    text = named(repr(instance))
    assert constraint.accepts(text), text
    assert constraint.parse(text) == instance
    assert constraint.parse(text.encode()) == instance


@settings(max_examples=80, deadline=None)
@given(TEXTS | st.binary(max_size=8) | st.integers() | FLOATS | st.booleans() | st.none())
def test_repr_of_scalars(value: Any) -> None:
    constraint = python_object(type(value) if value is not None else None)
    assert constraint.parse(repr(value)) == value
    if not isinstance(value, float):
        assert python_object(Literal[value]).parse(repr(value)) == value


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([str, bytes, int, float, bool]),
    st.text("'\"\\bnxu0a1-.e+é", max_size=7),
    st.sampled_from(["", "'", '"', "b'", 'b"']),
)
def test_what_is_accepted_has_the_type(kind: type, inside: str, quote: str) -> None:
    text = quote + inside + quote[-1:]
    if python_object(kind).accepts(text):
        value = evaluated(text)
        assert type(value) is kind or (kind is float and type(value) is int)
        assert python_object(kind).parse(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"'\a\b\f\n\r\t\v\\\'\"'", "\a\b\f\n\r\t\v\\'\""),
        (r"'\x41\xe9\u00e9\U0001F600é😀'", "A\xe9\xe9😀é😀"),
        ('"it\'s"', "it's"),
        (r"'\udfff'", None),
        (r"'\U00110000'", None),
        (r"'\d'", None),
        (r"'\0'", None),
        ("'\n'", None),
        ("'a' 'b'", None),
        ("r'a'", None),
        ("'''a'''", None),
    ],
)
def test_strings(text: str, value: str | None) -> None:
    strings = python_object(str)
    assert strings.accepts(text) == (value is not None)
    if value is not None:
        assert strings.parse(text) == value == ast.literal_eval(text)


@pytest.mark.parametrize("text", ["01", "-0", "+1", "1_0", "0x1", " 1", "1 ", "--1", "1.", "1e5"])
def test_integers_are_decimal(text: str) -> None:
    assert not python_object(int).accepts(text)


@pytest.mark.parametrize("text", [".5", "1.", "inf", "nan", "1e", "00.5", "1e1_0", "1j"])
def test_floats(text: str) -> None:
    assert not python_object(float).accepts(text)


# --- calls --------------------------------------------------------------------------------------------


def plain(a: bool, b: bool = True, c: bool = True) -> None: ...
def kinds(a: bool, /, b: bool, *, c: bool) -> None: ...
def optional_first(a: bool = True, /, b: bool = True, *, c: bool = True) -> None: ...
def required_last(a: bool = True, *, b: bool) -> None: ...
def nothing() -> None: ...


@pytest.mark.parametrize("arguments", ["keyword", "positional", "any"])
@pytest.mark.parametrize("defaults", ["any", "write", "omit"])
@pytest.mark.parametrize("function", [plain, kinds, optional_first, required_last, nothing])
def test_all_texts_of_a_call(function: Any, arguments: Any, defaults: Any) -> None:
    calls = python_calls([function], arguments=arguments, defaults=defaults)
    values = dict.fromkeys("abc", ("True", "False"))
    wanted = {text.encode() for text in call_texts(function, values, arguments, defaults)}
    language = Language.union_of(map(Language.literal, wanted))
    assert isinstance(calls, Language)
    answer = calls.equivalent(language)
    assert answer, str(answer)


def move(to: Corner, fast: bool = False) -> str:
    return f"{to.x},{to.y},{fast}"


def test_calls_are_read_and_made() -> None:
    tools = python_calls([move, Leaf, nothing], arguments="any")
    read = tools.parse("move(Corner(1, y=2), fast=True)")
    assert read == PythonCall(move, (Corner(1, 2),), {"fast": True}) and read() == "1,2,True"
    assert tools.parse("Leaf('a')") == Leaf("a") and tools.parse("nothing()") == PythonCall(nothing, (), {})
    assert not tools.accepts("plain(True)")


# --- what is refused ----------------------------------------------------------------------------------


@dataclass
class Endless:
    inner: Endless


@dataclass
class Loop:
    inner: tuple[Loop | None]


def unannotated(a) -> None: ...  # type: ignore[no-untyped-def]
def starred(*a: int) -> None: ...


class Empty(Enum): ...


REFUSED: list[tuple[Any, str, str]] = [
    (make_dataclass("A", [("x", set[list[int]])]), "A.x", "list is not hashable"),
    (make_dataclass("A", [("x", dict[Point, int])]), "A.x", "Point is not hashable"),
    (
        make_dataclass("A", [("x", set[make_dataclass("B", [("y", list[int])], frozen=True)])]),
        "A.x",
        "list is not",
    ),
    (make_dataclass("A", [("x", frozenset[tuple[set[int], ...]])]), "A.x", "set is not hashable"),
    (make_dataclass("A", [("x", Any)]), "A.x", "not supported"),
    (make_dataclass("A", [("x", list)]), "A.x", "nothing of its items"),
    (make_dataclass("A", [("x", complex)]), "A.x", "not supported"),
    (make_dataclass("A", [("x", type[int])]), "A.x", "not supported"),
    (make_dataclass("A", [("x", Empty)]), "A.x", "no members"),
    (make_dataclass("A", [("x", Literal["\ud800"])]), "A.x", "surrogate"),
    (make_dataclass("A", [("x", Annotated[int, regex("a")])]), "A.x", "content of a str"),
    (make_dataclass("A", [("x", "Missing")]), "A", "cannot be resolved"),
    (make_dataclass("A", [("x", make_dataclass("A", []))]), "A", "two classes"),
    (make_dataclass("A", [("x", Enum("E", {"a b": 1}))]), "A.x", "no name"),
]


@pytest.mark.parametrize(("kind", "where", "reason"), REFUSED)
def test_refused_annotations_name_the_place(kind: Any, where: str, reason: str) -> None:
    with pytest.raises(AnnotationError, match=reason) as caught:
        python_object(kind)
    assert caught.value.where == where


def test_refused_calls() -> None:
    with pytest.raises(AnnotationError, match=r"unannotated\.a: it has no annotation"):
        python_calls([unannotated])
    with pytest.raises(AnnotationError, match=r"starred\.a: .*any number"):
        python_calls([starred])
    with pytest.raises(AnnotationError, match="no name"):
        python_calls([lambda: None])
    with pytest.raises(ConstraintError, match="at least one"):
        python_calls([])
    with pytest.raises(EmptyLanguageError, match="without end"):
        python_object(Endless)
    for wrong in ({"arguments": "x"}, {"defaults": "x"}):
        with pytest.raises(ConstraintError, match="must be one of"):
            python_object(int, **wrong)  # type: ignore[arg-type]


def test_texts_that_are_not_read() -> None:
    points = python_object(Point)
    with pytest.raises(ConstraintError, match=r"leaves the language at byte 9, after 'Point\(x=1'"):
        points.parse("Point(x=1.5)")
    with pytest.raises(ConstraintError, match="ends too early"):
        points.parse("Point(x=1")
    with pytest.raises(ConstraintError, match="surrogate"):
        points.parse("\ud800")
    with pytest.raises(ConstraintError, match="own parser refuses"):
        python_object(int).parse("1" * 5000)
    deep = "Loop(inner=(" * 300 + "None" + ",))" * 300
    assert python_object(Loop).accepts(deep)
    with pytest.raises(ConstraintError, match="own parser refuses"):
        python_object(Loop).parse(deep)


def test_nothing_is_evaluated() -> None:
    for text in (
        "__import__('os')",
        "Point(x=exit())",
        "[x for x in ()]",
        "Point(x=1).__class__",
        "Color.RED.value",
    ):
        for constraint in LANGUAGES.values():
            assert not constraint.accepts(text)


def test_deep_text_and_long_chains_of_classes_cost_no_stack() -> None:
    text = "Tree(value=1, children=[" * 90 + "Tree(value=2)" + "])" * 90
    assert python_object(Tree).parse(text) == evaluated(text)
    kind: Any = int
    for number in range(900):
        kind = make_dataclass(f"C{number}", [("x", kind, 0)], frozen=True)
    assert python_object(kind).accepts("C899(x=C898())")


def test_a_union_does_not_read_a_node_twice() -> None:
    made = []

    @dataclass
    class Noisy:
        x: int

        def __post_init__(self) -> None:
            made.append(self.x)

    constraint = python_object(list[Noisy] | list[Noisy | str] | list[Noisy | int], arguments="positional")
    assert len(constraint.parse("[Noisy(1), Noisy(2), 3]")) == 3
    assert made == [1, 2]


def test_constructors_errors_go_through() -> None:
    @dataclass
    class Positive:
        x: int

        def __post_init__(self) -> None:
            if self.x <= 0:
                raise ValueError("not positive")

    with pytest.raises(ValueError, match=r"^not positive$"):
        python_object(Positive).parse("Positive(x=0)")


def test_composes_with_languages() -> None:
    reply = Language.literal("answer: ") + python_object(Point) & regex("[^e]*")
    assert isinstance(reply, Language) and not reply.accepts("answer: Point(x=1)")
    assert isinstance(python_object(Tree) & regex(".{0,30}"), Grammar)
    with pytest.raises(BudgetExceeded):
        python_object(Scene, budget=Budget(states=3)).accepts(named(repr(Scene(None, Color.RED, "", {}))))


def test_constraints_are_shown_by_their_kind() -> None:
    """``repr`` and a notebook's card name the kind of constraint, not the annotation that ``parse`` reads by."""
    constraint = python_object(int)
    assert repr(constraint).startswith("<Language "), repr(constraint)
    assert "Language" in constraint._repr_html_()
