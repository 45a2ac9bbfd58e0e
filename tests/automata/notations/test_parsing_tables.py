"""The loop over lark's tables makes the trees of lark's own parser, and short cuts of lark_grammar change nothing."""

import random
from importlib.resources import files
from typing import Any

import pytest

pytest.importorskip("lark")
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenfst
from tokenfst import lark_grammar
from tokenfst._native import fold as native_fold
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.notations import gbnf, lark_parameters, lark_source, lark_syntax
from tokenfst.automata.notations.lark_ignored import may_end_anywhere
from tokenfst.automata.notations.parsing import reading
from tokenfst.automata.notations.parsing.lalr import Token, Unparsed
from tokenfst.automata.symbols import syntax
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, TokenfstError

LARK = r"""
start: [pair ("," pair)*] | items{NAME, ";"} -> done
items{x, y}: x (y x)~2..3 | "a".."f" x+ | counted::3 <[5-7]>
counted::_: "x" counted::decr(_) %if ne(_, 0) | ""
pair[max_tokens=3]: NAME? ":" _value
_value.2: /[0-9]+/i | %json {"type": "null"} | @other | (NAME | "b"i)
NAME: /[a-z]+/ & ~"if"
%import common.WS
%ignore WS
"""
GBNF_TEXT = r"""root ::= "a" [^b-d]{2,3} (more | .)* # comment
more ::= "\x41" root? | !<[7]>
"""
LTLF = "G (a -> X (b | !c)) & (F d U e) <-> true"
CALL = "and(eq([0:3], 4), not(bit_set(2)))"
TEXTS = [
    (lark_source._NOTATION, LARK),
    (gbnf.GBNF.notation, GBNF_TEXT),
    (syntax._NOTATION, LTLF),
    (lark_parameters._NOTATION, CALL),
    *(
        (lark_source._NOTATION, files("lark").joinpath("grammars", f"{name}.lark").read_text("utf-8"))
        for name in ("common", "python", "unicode", "lark")
    ),
]


def by_lark(notation: str, text: str) -> Any:
    """The tree by lark's parser; None if it refuses the text."""
    parser, lex, _ = reading._parser(notation)
    from lark.exceptions import UnexpectedInput

    state, tree = parser.parse_interactive(), None
    try:
        for token in lex(text):
            tree = state.feed_token(token)  # type: ignore[arg-type]  # of our class
    except (UnexpectedInput, reading._NoToken):
        return None
    return tree


def by_tables(notation: str, text: str, late: str | None = None) -> Any:
    """The tree by the tables; None if they refuse the text."""
    try:
        return reading._parser(notation, late)[2].tree(text, Deadline(Budget(), "a test").tick, 1)
    except Unparsed:
        return None


def plain(tree: Any) -> Any:
    """A tree as nested tuples."""
    if isinstance(tree, Token):
        return str(tree), tree.type, tree.start_pos
    return None if tree is None else (str(tree.data), *map(plain, tree.children))


@pytest.mark.parametrize(("notation", "text"), TEXTS)
def test_trees_are_those_of_lark(notation: str, text: str) -> None:
    if notation is lark_source._NOTATION:
        text = lark_source.Source.take_schemas(None, lark_source.File(text)) + "\n"  # type: ignore[arg-type]
    tree = plain(by_tables(notation, text))
    assert tree is not None
    assert tree == plain(by_lark(notation, text))
    assert tree == plain(by_tables(notation, text, "expansions"))


def test_late_nodes_have_the_tokens_of_their_children() -> None:
    text = lark_source.Source.take_schemas(None, lark_source.File(LARK)) + "\n"  # type: ignore[arg-type]
    tree = by_tables(lark_source._NOTATION, text, "expansions")
    late = [body for body in tree.iter_subtrees() if hasattr(body, "native")]
    assert len(late) == 7
    for body in late:
        for kind in ("TERMINAL", "STRING", "OP"):
            wanted = [plain(token) for token in body.scan_values(lambda each, kind=kind: each.type == kind)]
            assert list(map(plain, reading.tokens_of(body, kind))) == wanted
            assert list(map(plain, reading.tokens_of(type(tree)("start", [body]), kind))) == wanted


@settings(deadline=None)
@given(st.sampled_from(TEXTS[:4]), st.integers(0, 2**32))
def test_changed_texts_are_read_or_refused_as_by_lark(case: tuple[str, str], seed: int) -> None:
    notation, text = case
    rng = random.Random(seed)
    for _ in range(rng.randint(1, 3)):
        begin = rng.randrange(len(text))
        end = min(len(text), begin + rng.choice((0, 0, 1, 2, 9)))
        other = rng.randrange(len(text))
        text = text[:begin] + rng.choice(("", text[other : other + rng.randint(1, 9)])) + text[end:]
    assert plain(by_tables(notation, text)) == plain(by_lark(notation, text))


IGNORED = (
    *("/[ab]+/", "/[ab]/", "/a+/", "/(?:a|b)+/", "/[^c-z]+/", "/(a)+/", "/(?i:a)+/", "/[ab]*/", "/[ab]+?/"),
    *("/(?:a+)+/", "/#[^#]*#/", "/#[^#]*/", "/(a|#[^#]*#)+/", "/#b*c/", "/ab?/", "T", "T", '"#"', "/(#a)+b/"),
)
PLAIN = LARK.replace("counted::3 ", "").replace(LARK.split("\n")[3], "")


def program_of(text: str) -> Any:
    try:
        made = lark_grammar(text)
    except TokenfstError as error:
        return str(error)
    program = made.program()
    return program.code.tobytes(), program.sets.tobytes(), program.blob, program.rule_names, program.labels


@settings(deadline=None)
@given(st.integers(0, 2**32))
def test_text_is_ignored_as_by_the_automaton_of_runs(seed: int) -> None:
    rng = random.Random(seed)
    words = [rng.choice(("a", "b", "c", "d", "A", "cb", "da", "#c")) for _ in range(3)]
    terminal = rng.choice((f"{words[2]}[a-d]?", "(a|#[^#]*#)+", "[ab]+", "#[^#]*#", "(a|b)+"))
    text = f'start: "{words[0]}" T? ("{words[1]}" | T) T?\nT: /{terminal}/\n'
    text += "".join(f"%ignore {each}\n" for each in rng.sample(IGNORED, rng.choice((1, 1, 2, 3))))
    asked = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lark_syntax, "may_end_anywhere", lambda *given: asked.append(may_end_anywhere(*given)))
        by_automaton = program_of(text)
    if asked == [True] and isinstance(by_automaton, str):
        assert "the end of ignored text" in by_automaton, text
    else:
        assert program_of(text) == by_automaton, text


@pytest.mark.parametrize(
    ("ignored", "shows"),
    [
        (["/[ \\t]+/"], True),
        (["/[ \\t]/", "/ +/"], False),
        (["/[ \\t]+/", r"/\/\/[^\n]*\n/", r"/\/\*([^*]|\*+[^*\/])*\*+\//"], True),
        (["/[ \\t]+/", r"/\/\/[^\n]*/"], False),
        ([r"/\/\/[^\n]*/", r"/\n/"], False),
        ([r"/\/\/[^y]*/"], False),
        (["T"], True),
        (["/([ ,]|#[^#]*#)+/"], False),  # the same as T, but only by its words
        (["/[ ]+/x"], False),  # not plain
        (["/(?i: )+/"], True),
    ],
)
def test_where_the_patterns_show_the_ends_of_ignored_text(ignored: list[str], shows: bool) -> None:
    text = (
        'start: "x" T? "y"\nT: /([ ,]|#[^#]*#)+/\n'
        if "T" in ignored[0] or "#" in ignored[0]
        else 'start: "x" "y"'
    )
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            lark_syntax,
            "may_end_anywhere",
            lambda *given: seen.append(found := may_end_anywhere(*given)) or found,
        )
        grammar = lark_grammar(text + "".join(f"\n%ignore {each}" for each in ignored))
    assert seen == [shows]
    assert grammar.accepts(b"xy")


@pytest.mark.parametrize("text", [PLAIN, 'start: "a" | ()\n'])
def test_bodies_without_parameters_are_resolved(text: str) -> None:
    file = lark_source.File(text)
    assert not file.has_parameters
    source = lark_source.Source(text, Deadline(Budget(), "a test"))
    for definition in source.main.scope.values():
        for tree, _ in definition.bodies:
            found = lark_parameters.resolved(tree, None, file.position, source.fail, source.deadline)
            assert plain(found) == plain(tree)
    assert lark_source.File("a::_: b").has_parameters
    assert tokenfst.lark_grammar is lark_grammar


PLAIN_BODIES = 'start: a ("b" | C)~2..3 -> d\na: [C] "x".."z"+\nC: /c/ "d"i?\n'


def folded(tree: Any, build: Any) -> Any:
    """``fold`` by recursion."""
    return build(
        str(tree.data), [each if isinstance(each, str) else folded(each, build) for each in tree.children]
    )


@pytest.mark.parametrize(("notation", "text"), [(lark_source._NOTATION, PLAIN_BODIES), *TEXTS[1:]])
def test_folds_are_those_by_recursion(notation: str, text: str) -> None:
    tree = by_tables(notation, text)
    assert tree is not None

    def build(kind: str, children: list[Any]) -> Any:
        return kind, *children

    assert reading.fold(tree, build) == folded(tree, build)


def test_a_fold_counts_its_nodes_and_needs_no_stack() -> None:
    from lark import Tree

    tree: Any = Tree("leaf", [])
    for _ in range(100_000):
        tree = Tree("inner", [tree])
    assert reading.fold(tree, lambda kind, children: 1 + sum(children)) == 100_001
    counted: list[int] = []
    native_fold(tree, lambda kind, children: None, counted.append)
    assert sum(counted) == 100_001
    with pytest.raises(BudgetExceeded):
        reading.fold(tree, lambda kind, children: None, Deadline(Budget(seconds=1e-9), "a test"))
    with pytest.raises(ZeroDivisionError):
        reading.fold(tree, lambda kind, children: 1 // 0)
    while tree.children:  # a deep tree is not freed by recursion
        tree = tree.children[0]
