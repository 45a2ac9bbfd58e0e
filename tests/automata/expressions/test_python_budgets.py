"""Constructions in Python keep the seconds of their budget, and refuse at once what no budget can hold.

CPU time is measured, which a loaded machine does not stretch as it does wall-clock time; a construction that looks at
the clock spends at most its seconds and what lies between two looks.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import pytest

import tokenfst
from tokenfst import Budget, Language, Vocabulary, regex
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.errors import BudgetExceeded, ConstraintError, DecodingError

pytestmark = pytest.mark.usefixtures("uncollected")

SECONDS = 0.1
"""Every construction here needs ten times as long, and shares with no other one what the process keeps."""
BETWEEN = 0.3
"""CPU seconds that may lie between two looks at the clock. 0.05 on a free machine."""


def dictionary(stem: str, concepts: int) -> dict[str, list[str]]:
    return {f"{stem}{i}": [f"{stem}{i}x{j}" for j in range(200)] for i in range(concepts)}


ORDERED, TOGETHER, MANY = dictionary("first", 60), dictionary("word", 1200), dictionary("many", 1200)
CLASSES = "(?i)" + "".join(f"[{chr(200 + i)}-{chr(60000 + i)}]" for i in range(5000))
QUOTED = " | ".join(f'"{number:09b}"' for number in range(60_000))
LABELS = [f"{number * 7919 % 1_000_003:06d}" * 6 for number in range(25_000)]
DISTANT = regex("([a-c]{1,20} ){0,300}")
ASTRAL = "(?i)" + "".join(f"[{chr(200 + i)}-{chr(70000 + i)}]" for i in range(300))


def tables() -> Language:
    """A language that is an automaton and no expression."""
    return Language.from_dfa(regex(".*a.{13}b").determinize())


@pytest.fixture(scope="module", autouse=True)
def _unicode_tables() -> None:
    """What is made once in a process, and not for a constraint."""
    for form in ("NFC", "NFKC"):
        tokenfst.normalization_insensitive(regex("a"), form)
    tokenfst.case_insensitive(regex("a"), full=True)
    tokenfst.case_insensitive(regex("a"))
    tokenfst.contains_in_order({"a": ["b"]})
    tokenfst.boost(["a"])
    tokenfst.gbnf('root ::= "a"')
    tokenfst.ebnf('root ::= "a"')
    tokenfst.lark_grammar('start: "a"')
    regex("(?i)[a-é]")


@pytest.mark.parametrize(
    ("prepare", "call"),
    [
        (lambda: regex(".*é.{8}ô"), lambda x, b: tokenfst.normalization_insensitive(x, "NFKC", budget=b)),
        (lambda: regex("a.{2}é"), lambda x, b: tokenfst.normalization_insensitive(x, "NFC", budget=b)),
        (lambda: regex(".*a.{13}b(straße)*"), lambda x, b: tokenfst.case_insensitive(x, full=True, budget=b)),
        (tables, lambda x, b: tokenfst.case_insensitive(x, budget=b)),
        (lambda: regex(".*a.{12}b"), lambda x, b: tokenfst.within_edits(x, 2, budget=b)),
        (lambda: regex("[a-z]*x.{9}"), lambda x, b: tokenfst.within_edits(x, 10**9, budget=b)),
        (lambda: CLASSES, lambda x, b: regex(x, budget=b)),
        (lambda: ASTRAL, lambda x, b: regex(x, budget=b)),
        (lambda: ORDERED, lambda x, b: tokenfst.contains_in_order(x, budget=b)),
        (lambda: TOGETHER, lambda x, b: tokenfst.contains_all(x, budget=b)),
        (lambda: MANY, lambda x, b: tokenfst.concepts(x, budget=b)),
        (lambda: f"root ::= {QUOTED}", lambda x, b: tokenfst.gbnf(x, budget=b)),
        (lambda: f"root ::= {QUOTED}", lambda x, b: tokenfst.ebnf(x, budget=b)),
        (lambda: f"start: {QUOTED}", lambda x, b: tokenfst.lark_grammar(x, budget=b)),
        (lambda: DISTANT, lambda x, b: tokenfst.maximum_entropy(x, 300.0, budget=b)),
        (lambda: LABELS, lambda x, b: tokenfst.boost(x, budget=b)),
        (lambda: tokenfst.choices(LABELS), lambda x, b: tokenfst.prefer(x, budget=b)),
        (lambda: None, lambda _, b: tokenfst.choices(map(str, itertools.count()), budget=b)),
        (
            lambda: tokenfst.gbnf('root ::= "(" inner ")" | "a"\ninner ::= "[" (root|inner) "]" | "b"'),
            lambda x, b: tokenfst.Grammar(x.rules, x.start, budget=b).truncate(3000),
        ),
    ],
)
def test_seconds_are_kept(prepare: Callable[[], object], call: Callable[[object, Budget], object]) -> None:
    given = prepare()
    begin = time.process_time()
    with pytest.raises(BudgetExceeded) as caught:
        call(given, Budget(seconds=SECONDS))
    assert caught.value.resource == "seconds" and caught.value.limit == SECONDS
    assert time.process_time() - begin < SECONDS + BETWEEN


def test_a_deadline_is_shared_by_parts() -> None:
    deadline = Deadline(Budget(seconds=1000), "here")
    with deadline.part() as budget:
        assert 0 < budget.seconds <= 1000 and budget.states == deadline.budget.states
    with (
        pytest.raises(BudgetExceeded, match="more than 1,000 seconds; it grew in there"),
        deadline.part() as budget,
    ):
        raise BudgetExceeded("seconds", budget.seconds, "there")
    with pytest.raises(BudgetExceeded, match="states"), deadline.part():
        raise BudgetExceeded("states", 1, "there")


NESTED = 'root ::= "(" root ")" | "a"'
SMALL = Budget(states=1000, positions=1000)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tokenfst.gbnf(NESTED, budget=SMALL).truncate(10**9), BudgetExceeded, "'root'"),
        (lambda: tokenfst.gbnf(NESTED).truncate(10**100), BudgetExceeded, "'root'"),
        (lambda: tokenfst.gbnf(NESTED).truncate(1.5), ConstraintError, "whole number, not 1.5"),
        (lambda: tokenfst.gbnf(NESTED).truncate(-1), ConstraintError, "not -1"),
        (lambda: tokenfst.json_value(10**9), BudgetExceeded, "max_depth=1000000000"),
        (lambda: tokenfst.json_object(10**9), BudgetExceeded, "max_depth"),
        (lambda: tokenfst.json_value(1.5), ConstraintError, "max_depth=1.5"),
        (lambda: tokenfst.within_edits(regex("abc"), 10**9, budget=SMALL), BudgetExceeded, "states"),
        (lambda: tokenfst.within_edits(regex("[ab]*c"), 10**100, budget=SMALL), BudgetExceeded, "states"),
    ],
)
def test_what_no_budget_can_hold_is_refused_at_once(
    call: Callable[[], object], error: type[Exception], message: str
) -> None:
    begin = time.process_time()
    with pytest.raises(error, match=message):
        call()
    assert time.process_time() - begin < 1


def test_depths_of_grammars_without_recursion_may_be_any() -> None:
    assert tokenfst.gbnf('root ::= "a" root | "b"').truncate(10**100).accepts("aab")
    assert tokenfst.gbnf(NESTED).truncate(3).accepts("(((a)))")
    assert not tokenfst.gbnf(NESTED).truncate(3).accepts("((((a))))")


@pytest.mark.parametrize("penalty", [10**12, -(10**12), 10**400, float("nan"), float("inf"), 400.0])
def test_length_penalties_beyond_floats(penalty: float) -> None:
    torch = pytest.importorskip("torch")
    vocabulary = Vocabulary([b"a", b""], eos_token_id=1)
    automaton = tokenfst.compile(regex("a+"), vocabulary)

    def search(length_penalty: float) -> object:
        return tokenfst.automata_beam_search(
            lambda ids: torch.zeros(len(ids), 2),
            [[0]],
            automaton,
            width=2,
            num_beams=2,
            max_new_tokens=3,
            length_penalty=length_penalty,
        )

    with pytest.raises(DecodingError, match="length_penalty"):
        search(penalty)
    assert search(300)


def test_edits_beyond_all_letters_are_all_texts() -> None:
    """A universe needs no state for each number of edits."""
    anything = regex("(?s:.*)")
    assert tokenfst.within_edits(anything, 10**100).equivalent(anything)
