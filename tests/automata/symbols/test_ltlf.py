"""Temporal formulas against their definition, on all short traces."""

from __future__ import annotations

import importlib.util
import itertools
import random
import re
import shutil
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.symbols import clothes
from reference.symbols.traces import Formula, holds, random_formula, traces, written
from tokenfst import Budget, SymbolAutomaton, ltlf
from tokenfst.automata.symbols.declare import PATTERNS
from tokenfst.errors import (
    BudgetExceeded,
    ConflictError,
    ConstraintError,
    PatternSyntaxError,
    UnknownSymbolError,
)

LETTERS = ("a", "b", "z")
"""``z`` is anything else."""
UP_TO_4 = list(traces(LETTERS, 4))
UP_TO_6 = list(traces(LETTERS, 6))


def made(formula: str | list[str], symbols: tuple[str, ...] = ("a", "b")) -> SymbolAutomaton | None:
    """The automaton; ``None`` where there is none because nothing is accepted."""
    try:
        return ltlf(formula, symbols)
    except ConflictError:
        return None


def check(formula: Formula, some: list[tuple[str, ...]]) -> None:
    automaton = made(written(formula))
    for trace in some:
        accepted = automaton is not None and automaton.accepts(trace)
        assert accepted == holds(formula, trace), (written(formula), trace)


# --- meaning ------------------------------------------------------------------------------------------


def small_formulas() -> list[Formula]:
    """Every formula of at most two operators over a and b."""
    unary, binary = ("not", "X", "WX", "F", "G"), ("and", "or", "implies", "iff", "U", "W", "R", "M")
    atoms: list[Formula] = [("letter", frozenset({name})) for name in "ab"]
    atoms.append(("true",))
    one = [(k, f) for k in unary for f in atoms]
    one += [(k, f, g) for k in binary for f in atoms for g in atoms]
    two = [(k, f) for k in unary for f in one]
    letters = atoms[:2]
    two += [(k, f, g) for k in binary for f in letters for g in one]
    two += [(k, g, f) for k in binary for f in letters for g in one]
    return [*atoms, *one, *two]


def test_every_small_formula_on_every_short_trace() -> None:
    formulas = small_formulas()
    assert len(formulas) > 3000
    chosen = random.Random(5).sample(formulas, 400)
    for formula in chosen:
        check(formula, UP_TO_4)


@pytest.mark.soak
def test_all_small_formulas_on_every_short_trace() -> None:
    for formula in small_formulas():
        check(formula, UP_TO_4)


@pytest.mark.parametrize("seed", range(60))
def test_random_formulas_on_all_traces_up_to_length_6(seed: int) -> None:
    rng = random.Random(seed)
    check(random_formula(rng, ("a", "b"), rng.randrange(3, 11)), UP_TO_6)


@given(st.integers(0, 2**32), st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_negation_is_complement_and_conjunction_intersection(seed: int, size: int) -> None:
    rng = random.Random(seed)
    left, right = (written(random_formula(rng, ("a", "b"), size)) for _ in range(2))
    nothing = SymbolAutomaton(["a", "b"], np.zeros((1, 3), int), np.zeros(1, bool), 0)
    a, b = made(left) or nothing, made(right) or nothing
    assert (made(f"!({left})") or nothing).equivalent(~a)
    assert (made([left, right]) or nothing).equivalent(a & b)
    assert (made(f"({left}) | ({right})") or nothing).equivalent(a | b)
    assert (made(f"({left}) <-> ({right})") or nothing).equivalent(~((a - b) | (b - a)))


def test_the_empty_trace() -> None:
    for formula in ("!a", "WX a", "G a", "a R b", "a W b", "true", "last", "end", "!X true"):
        assert ltlf(formula).accepts([]), formula
    for formula in ("a", "X a", "F a", "F !a", "a U b", "a M (a | b)", "X true", "!last", "!end"):
        assert not ltlf(formula).accepts([]), formula


def test_last_and_end() -> None:
    assert ltlf("F(a & last)").accepts(["b", "a"])
    assert not ltlf("F(a & last)").accepts(["a", "b"])
    assert ltlf("G !end").accepts(["a"])
    assert made("F end") is None
    assert ltlf("WX end").accepts(["a"]) and not ltlf("WX end").accepts(["a", "b"])


# --- golden -------------------------------------------------------------------------------------------


def test_the_clothes_of_the_paper() -> None:
    automaton = ltlf(clothes.FORMULAS, clothes.SYMBOLS).closed()
    assert automaton.num_states == 17
    assert int(automaton.accepting.sum()) == 4
    assert automaton.distance[automaton.start] == 2
    assert [automaton.count(length) for length in range(9)] == [0, 0, 6, 45, 156, 210, 90, 0, 0]
    exact = automaton.accepting.copy()
    gaps = []
    for steps in range(8):
        gaps.append(int(((automaton.distance <= steps) & ~exact).sum()))
        exact = exact[automaton.table[:, :-1]].any(axis=1)
    assert gaps == [0, 1, 3, 6, 10, 13, 15, 16]


def test_the_clothes_sequence_by_sequence() -> None:
    automaton = ltlf(clothes.FORMULAS, clothes.SYMBOLS)
    for length in range(5):
        for sequence in itertools.product(clothes.SYMBOLS, repeat=length):
            assert automaton.accepts(sequence) == clothes.allowed(sequence), sequence


def test_the_five_words_of_the_second_appendix() -> None:
    first = [
        "(!(second | dot) U first) & F second",
        "(!(third | dot) U second) & F third",
        "(!(eos | dot) U third) & F eos",
        "G(dot -> X eos)",
    ]
    automaton = ltlf(first)
    assert automaton.accepts(["first", "second", "third", "dot", "eos"])
    assert not automaton.accepts(["second", "first", "third", "dot", "eos"])
    # As the page says: nothing forces a dot, and nothing holds after the end of the sentence.
    assert automaton.accepts(["first", "second", "third", "eos", "first"])


# --- syntax -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("¬a ∧ b ∨ a → b ↔ a", "((((!a) & b) | a) -> b) <-> a"),
        ("~a && b || a", "((!a) & b) | a"),
        ("a => b <=> a >> b", "(a -> b) <-> (a -> b)"),
        ("a ⇒ b ⇔ ⊤", "(a -> b) <-> true"),
        ("□(a → ◇ b)", "G(a -> F b)"),
        ("○a ∨ ●b", "X a | WX b"),
        ("X[!] a", "X(a)"),
        ("GF a", "G(F(a))"),
        ("WXG !a", "WX(G(!(a)))"),
        ("a U b U a", "a U (b U a)"),
        ("a -> b -> a", "a -> (b -> a)"),
        ("a W b U a R b M a", "a W (b U (a R (b M a)))"),
        ("!a U b", "(!a) U b"),
        ("F a & b", "(F a) & b"),
        ("a U b & b", "(a U b) & b"),
        ("a 𝒰 b", "a U b"),
        ("tt & !ff", "true"),
        ("'a' & \"b\"", "a & b"),
        ("a\n&\tb", "a & b"),
        ("Last", "last"),
    ],
)
def test_spellings(one: str, other: str) -> None:
    left, right = made(one), made(other)
    assert (left is None) == (right is None)
    assert left is None or right is None or left.equivalent(right)


def test_names() -> None:
    assert ltlf('F "Ankle boot"').symbols == ("Ankle boot",)
    assert ltlf(r'"say \"x\"" & !y').symbols == ('say "x"', "y")
    assert ltlf("F Gloves | F a-b | F 7").symbols == ("Gloves", "a-b", "7")
    assert ltlf('F "G"').symbols == ("G",)
    assert ltlf("a -> b").symbols == ("a", "b")
    assert ltlf("F b", ["a", "b"]).symbols == ("a", "b")


@pytest.mark.parametrize(
    ("formula", "position", "message"),
    [
        ("", 0, "unexpected the end of the formula"),
        ("G(a -> ", 7, "expected '!', '(', 'F'"),
        ("a b", 2, "unexpected 'b'"),
        ("a & (b | )", 9, "unexpected ')'"),
        ("a $ b", 2, "unexpected '$'"),
        ('a & "b', 4, "no closing quotation mark"),
        ("a && && b", 5, "unexpected '&&'"),
        ("respond(a, b)", 0, "no pattern of Declare"),
        ("a & response(a)", 4, "response takes a and b, not 1 argument"),
        ("existence(a, b)", 13, "a number from 1"),
        ("existence(a, 0)", 13, "a number from 1"),
        ("existence(a, 99999999)", 13, "a number from 1"),
    ],
)
def test_syntax_errors_show_the_place(formula: str, position: int, message: str) -> None:
    with pytest.raises(PatternSyntaxError, match=re.escape(message)) as caught:
        ltlf(formula)
    assert caught.value.position == position
    assert str(caught.value).endswith(" " * position + "^")


def test_unknown_symbols_are_named_with_their_place() -> None:
    with pytest.raises(UnknownSymbolError, match="did you mean 'delivery'") as caught:
        ltlf(["F order", "G(order -> F deliver)"], ["order", "delivery"])
    assert (caught.value.symbol, caught.value.position) == ("deliver", 13)
    assert str(caught.value).endswith("\n  " + " " * 13 + "^")


def test_a_symbol_that_is_a_key_word_must_be_quoted() -> None:
    with pytest.raises(PatternSyntaxError, match="key word"):
        ltlf("F last", ["last"])
    assert ltlf('F "last"', ["last"]).accepts(["last"])


def test_bad_calls() -> None:
    for symbols in (["a", "a"], ["a", ""], "ab", ["a", 3]):
        with pytest.raises(ConstraintError):
            ltlf("F a", symbols)  # type: ignore[arg-type]
    with pytest.raises(ConstraintError):
        ltlf([])


# --- contradictions and budgets -----------------------------------------------------------------------


def test_a_contradiction_is_a_smallest_one() -> None:
    with pytest.raises(ConflictError) as caught:
        ltlf(["G a & F(c) & (b -> F a)", "F d", "G !c & G(a | b)", "!last"])
    conflict = caught.value.conflict
    assert len(conflict) == 2
    for part in conflict:
        assert part in str(caught.value)
        assert made(part, ("a", "b", "c", "d")) is not None
    assert made(list(conflict), ("a", "b", "c", "d")) is None


def test_a_contradiction_of_three() -> None:
    parts = ["F a", "G(a -> X b)", "G(b -> F c)", "G !c", "F d | F e", "WX true"]
    with pytest.raises(ConflictError) as caught:
        ltlf(parts)
    assert caught.value.conflict == ("F a", "G(a -> X b)", "G(b -> F c)", "G !c")
    for left_out in range(4):
        ltlf([part for place, part in enumerate(parts) if place != left_out])


def test_a_contradiction_in_one_formula() -> None:
    with pytest.raises(ConflictError, match="contradicts itself") as caught:
        ltlf(["F a", "X(a & b) | false"])
    assert caught.value.conflict == ("X(a & b) | false",)


def test_many_conjuncts_conflict() -> None:
    parts = [f"F s{number}" for number in range(6)]
    parts += ["absence(s0 | s1 | s2 | s3, 4)"]
    with pytest.raises(ConflictError) as caught:
        ltlf(parts)
    assert set(caught.value.conflict) == {*parts[:4], parts[-1]}


def test_budgets() -> None:
    wide = " & ".join(f"F s{number}" for number in range(14))
    with pytest.raises(BudgetExceeded, match="states"):
        ltlf(wide, budget=Budget(states=1000))
    with pytest.raises(BudgetExceeded, match="seconds"):
        ltlf(wide, budget=Budget(seconds=0.02))
    sums = " & ".join(f"(F a{k} | G b{k})" for k in range(12))
    with pytest.raises(BudgetExceeded, match="positions"):
        ltlf(f"X({sums})", budget=Budget(positions=500))


def test_long_and_deep_formulas() -> None:
    assert ltlf("!" * 2000 + "a").accepts(["a"])
    assert ltlf("(" * 2000 + "a" + ")" * 2000).accepts(["a"])
    assert ltlf("X " * 500 + "a").distance[1] == 501
    assert ltlf(" & ".join(["G(a -> F b)"] * 400)).num_states == 3
    assert ltlf("existence(a, 300)").distance[1] == 300
    assert ltlf("absence(a, 300)").num_states == 301
    assert ltlf("exactly(a, 3000)").distance[1] == 3000
    assert ltlf("exactly(F b, 20)").distance[1] == 20
    assert ltlf("F a", [f"s{k}" for k in range(5000)] + ["a"]).num_states == 3


# --- Declare ------------------------------------------------------------------------------------------


def places(trace: tuple[str, ...], symbol: str) -> list[int]:
    return [place for place, each in enumerate(trace) if each == symbol]


def between(low: int, high: int, some: list[int]) -> bool:
    return any(low < place < high for place in some)


MEANINGS: dict[str, Callable[[list[int], list[int], int], bool]] = {
    "init": lambda a, b, n: 0 in a,
    "end": lambda a, b, n: n - 1 in a,
    "choice": lambda a, b, n: bool(a or b),
    "exclusive_choice": lambda a, b, n: bool(a) != bool(b),
    "responded_existence": lambda a, b, n: not a or bool(b),
    "co_existence": lambda a, b, n: bool(a) == bool(b),
    "response": lambda a, b, n: all(any(j > i for j in b) for i in a),
    "precedence": lambda a, b, n: all(any(i < j for i in a) for j in b),
    "alternate_response": lambda a, b, n: all(any(j > i and not between(i, j, a) for j in b) for i in a),
    "alternate_precedence": lambda a, b, n: all(any(i < j and not between(i, j, b) for i in a) for j in b),
    "chain_response": lambda a, b, n: all(i + 1 in b for i in a),
    "chain_precedence": lambda a, b, n: all(j - 1 in a for j in b),
    "not_co_existence": lambda a, b, n: not (a and b),
    "not_responded_existence": lambda a, b, n: not (a and b),
    "not_response": lambda a, b, n: not any(i < j for i in a for j in b),
    "not_chain_response": lambda a, b, n: not any(i + 1 in b for i in a),
}
for _both in ("", "alternate_", "chain_"):
    MEANINGS[f"{_both}succession"] = lambda a, b, n, both=_both: (
        MEANINGS[f"{both}response"](a, b, n) and MEANINGS[f"{both}precedence"](a, b, n)
    )
for _same in ("succession", "precedence"):
    MEANINGS[f"not_{_same}"] = MEANINGS["not_response"]
    MEANINGS[f"not_chain_{_same}"] = MEANINGS["not_chain_response"]


@pytest.mark.parametrize("name", sorted(MEANINGS))
def test_declare_patterns_say_what_they_say(name: str) -> None:
    arguments = ", ".join(PATTERNS[name].parameters)
    automaton = ltlf(f"{name}({arguments})", ["a", "b"])
    for trace in UP_TO_6:
        expected = MEANINGS[name](places(trace, "a"), places(trace, "b"), len(trace))
        assert automaton.accepts(trace) == expected, trace


@pytest.mark.parametrize("times", [1, 2, 3])
def test_declare_patterns_that_count(times: int) -> None:
    at_least, fewer, exactly = (ltlf(f"{name}(a, {times})") for name in ("existence", "absence", "exactly"))
    for trace in UP_TO_6:
        count = trace.count("a")
        assert at_least.accepts(trace) == (count >= times)
        assert fewer.accepts(trace) == (count < times)
        assert exactly.accepts(trace) == (count == times)
    assert ltlf("existence(a)").equivalent(ltlf("F a"))


def test_patterns_by_their_names_in_the_literature() -> None:
    for name in PATTERNS:
        written = "".join(part.capitalize() for part in name.split("_"))
        arguments = ", ".join(PATTERNS[name].parameters).replace("n", "2")
        assert ltlf(f"{written}({arguments})", ["a", "b"]).equivalent(
            ltlf(f"{name}({arguments})", ["a", "b"])
        )
    with pytest.raises(PatternSyntaxError, match="takes a number from 1"):
        ltlf(f"existence(a, {'9' * 5000})")


def test_every_pattern_is_tested_and_takes_formulas() -> None:
    assert set(PATTERNS) == {*MEANINGS, "existence", "absence", "exactly"}
    assert ltlf("response(a | b, c & X d)").equivalent(ltlf("G((a | b) -> F(c & X d))", ["a", "b", "c", "d"]))
    assert ltlf("end(a)").equivalent(ltlf("F(a & last)"))


# --- another translation ------------------------------------------------------------------------------


@pytest.mark.skipif(
    importlib.util.find_spec("ltlf2dfa") is None or shutil.which("mona") is None,
    reason="needs ltlf2dfa and MONA",
)
def test_ltlf2dfa_and_mona_agree(tmp_path: object) -> None:
    from ltlf2dfa.parser.ltlf import LTLfParser

    rng = random.Random(11)
    for _ in range(12):
        # W and M, and true under operators, are not among what that parser reads.
        formula = random_formula(rng, ("a", "b"), rng.randrange(1, 6))
        text = written(formula)
        if re.search(r"\) [WM] \(|true|WX", text) or not {"a", "b"} <= set(text):
            continue
        dot = LTLfParser()(text).to_dfa()
        check_against_dot(dot, made(text), text)


def check_against_dot(dot: str, automaton: SymbolAutomaton | None, text: str) -> None:
    """All short traces, run through the printed automaton: one-hot letters out of a and b, and neither."""
    final = set(re.findall(r"\d+", re.search(r"doublecircle\]; ([^\n]*)", dot)[1]))  # type: ignore[index]
    arcs: dict[str, list[tuple[str, str]]] = {}
    for source, target, label in re.findall(r"(\d+) -> (\d+) \[label=\"([^\"]*)\"\]", dot):
        arcs.setdefault(source, []).append((target, label))
    for trace in UP_TO_4:
        state = "1"
        for letter in trace:
            values = {name: name == letter for name in ("a", "b")}
            (state,) = {target for target, label in arcs[state] if eval(_python(label), {}, values)}
        assert (automaton is not None and automaton.accepts(trace)) == (state in final), (text, trace)


def _python(label: str) -> str:
    """A label of the printed automaton as a Python expression."""
    for sign, word in (("~", " not "), ("&", " and "), ("|", " or "), ("true", "True")):
        label = label.replace(sign, word)
    return label.strip()
