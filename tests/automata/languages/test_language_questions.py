"""What a Language answers, and how it behaves as a value."""

from __future__ import annotations

import pickle
import sys
import threading
from itertools import product

import numpy as np
import pytest

from tokenfst.automata.expressions import expression
from tokenfst.automata.expressions.expression import Dfa
from tokenfst.automata.expressions.tables import trim
from tokenfst.automata.languages.answer import Answer, Side
from tokenfst.automata.languages.language import Language, Size
from tokenfst.automata.regex.translate import regex
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, ConstraintError, MissingDependencyError

A, B = Language.literal("a"), Language.literal(b"b")


def test_constructors() -> None:
    assert Language.empty().is_empty()
    assert Language.epsilon().accepts("")
    assert not Language.epsilon().accepts("a")
    assert Language.literal("é").accepts(b"\xc3\xa9")
    assert Language.literal(b"\x00\xff").accepts(b"\x00\xff")
    assert Language.literal("").equivalent(Language.epsilon())
    assert Language.any_bytes().accepts(b"\xff\x00")
    assert Language.byte_range(0, 255).repeat(3, 3).accepts(b"\x00\x80\xff")
    assert Language.union_of([]).is_empty()
    assert Language.union_of(map(Language.literal, ["x", "yz"])).accepts("yz")


def test_any_text_is_utf8() -> None:
    text = Language.any_text()
    for data in (
        b"",
        b"\x00",
        "é日😀".encode(),
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xc0\x80",
        b"\xf4\x90\x80\x80",
        b"\xff",
    ):
        try:
            data.decode()
            valid = True
        except UnicodeDecodeError:
            valid = False
        assert text.accepts(data) == valid, data
    assert (~A & text).accepts("b")
    assert not (~A & text).accepts(b"\xff")


def test_text_with_surrogates() -> None:
    assert not Language.any_bytes().accepts("\ud800")
    with pytest.raises(ConstraintError, match="surrogate"):
        Language.literal("a\ud800")


def test_wrong_arguments() -> None:
    for bounds in ((-1, None), (2, 1)):
        with pytest.raises(ConstraintError, match="cannot repeat"):
            A.repeat(*bounds)
    for first, last in ((3, 2), (0, 256), (-1, 4)):
        with pytest.raises(ConstraintError, match="byte range"):
            Language.byte_range(first, last)
    for operation in ("__and__", "__or__", "__sub__", "__add__"):
        assert getattr(A, operation)(1) is NotImplemented
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = A | 1  # type: ignore[operator]


def test_answers() -> None:
    yes = A.equivalent(A)
    assert yes
    assert (yes.witness, yes.text, yes.side, str(yes)) == (None, None, None, "yes")
    no = A.equivalent(A | B)
    assert not no
    assert (no.witness, no.text, no.side) == (b"b", "b", Side.RIGHT)
    assert str(no) == "no: 'b' is in the right language only"
    assert (A | B).equivalent(A).side is Side.LEFT
    assert (A | B).includes(A)
    assert A.includes(A | B) == Answer(False, b"b", Side.RIGHT)
    assert Language.any_text().includes(Language.any_bytes()).text == r"\x80"


def test_witness_is_readable_where_it_can_be() -> None:
    assert Language.byte_range(0, 255).repeat(3).witness() == b"000"
    assert regex(r"[^a-z0-9]{2}\W").witness() is not None
    assert regex(r"[\x00-\x20]!").witness() == b" !"
    assert regex(r"[\x00-\x08]x").witness() == b"\x00x"
    assert (Language.any_text() - regex("[\x00-~\x7f]*")).witness() is not None
    assert regex("[\u0300-\u0400]").witness() == "\u0300".encode()
    assert Language.empty().witness() is None
    assert Language.epsilon().witness() == b""
    assert Language.literal("a" * 5_000).witness() == b"a" * 5_000


def test_prefixes() -> None:
    words = Language.union_of(map(Language.literal, ["cat", "car", "ca", "dog"]))
    assert words.next_bytes(b"") == (b"cd", False)
    assert words.next_bytes(b"ca") == (b"rt", True)
    assert words.next_bytes(b"cx") == (b"", False)
    assert words.viable_prefix(b"cabin") == 2
    assert words.viable_prefix(b"zebra") == 0
    assert Language.empty().viable_prefix(b"zebra") == -1
    # Live means that a word can be completed: not just that the parts go on.
    assert (words & Language.literal("dog").repeat(1, 9)).next_bytes(b"") == (b"d", False)


def test_size() -> None:
    assert Language.empty().size().states == 0
    assert Language.empty().size().transitions == 0
    assert Language.literal("ab").minimize().size() == Size(states=3, transitions=2, classes=3)
    assert regex(r"[0-9]+").minimize().size() == Size(states=2, transitions=20, classes=2)
    assert Language.any_bytes().minimize().size() == Size(1, 256, 1)


def test_budget() -> None:
    hard = (A | B).star() + A + (A | B).repeat(20, 20)
    small = hard.with_budget(Budget(states=500))
    with pytest.raises(BudgetExceeded, match="500 states"):
        small.determinize()
    with pytest.raises(BudgetExceeded, match="500 states"):
        (small & small).size()
    with pytest.raises(BudgetExceeded, match="500 states"):
        (~small).star().optional().repeat(1, 2).minimize()
    # Combined, the wider bounds hold; what is walked lazily needs few states.
    wide = small | Language.literal("x").with_budget(Budget(states=3_000_000, seconds=1.0))
    assert wide.budget == Budget(states=3_000_000)
    assert small.accepts("ab" * 20 + "b")
    assert hard.budget == Budget()


def test_machines_with_large_results_stay_lazy() -> None:
    """2^60 states as a table, a handful where they are walked."""
    third_from_end = Language.union_of([(A | B).star() + A + (A | B).repeat(n, n) for n in range(40, 61)])
    assert third_from_end.accepts("b" * 9 + "a" + "b" * 50)
    assert not third_from_end.accepts("b" * 60)
    assert third_from_end.witness() == b"a" + b"a" * 40


def test_value() -> None:
    c = (A | B).star() - regex("a+(?=b)b")
    assert c == c
    assert c != (A | B).star() - regex("a+(?=b)b")
    assert len({c, c, A}) == 2
    copy = pickle.loads(pickle.dumps(c))
    assert copy.equivalent(c)
    assert copy.source == c.source
    with pytest.raises(AttributeError):
        c.expr = expression.EMPTY  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        c.determinize().table[0, 0] = 1


def test_source_and_repr() -> None:
    c = regex("a|b") & ~Language.literal("b")
    assert c.source == "(regex('a|b')) & (~(literal('b')))"
    assert repr(c) == "<Language (regex('a|b')) & (~(literal('b')))>"
    assert repr(Language(expression.EPSILON)) == "<Language of an expression>"
    for _ in range(50):
        c = c + c
    assert len(c.source) <= 240
    assert len(Language.literal("x" * 10_000).source) <= 240
    assert A.repeat(2, 3).source == "(literal('a')).repeat(2, 3)"
    assert Language.literal("{}").star().source == "(literal('{}')).star()"


def test_threads_share_a_language() -> None:
    language = (A | B).star() + A + (A | B).repeat(9, 9)
    words = [bytes(word) for word in product(b"ab", repeat=10)]
    expected = [word[0] == ord("a") for word in words]
    results: list[list[bool]] = []

    def work(order: int) -> None:
        found = {word: language.accepts(word) for word in words[::order]}
        results.append([found[word] for word in words])

    threads = [threading.Thread(target=work, args=(order,)) for order in (1, -1, 1, -1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4


def test_reverse_of_leaves_with_direction() -> None:
    """Automata, look-behind and recursion are reversed as wholes, also within other parts."""
    word = regex(r"\w+") + Language.literal("-") + regex(r"(?<!a)b|ab(?=c)c")
    turned = word.reverse()
    rng = np.random.default_rng(3)
    for _ in range(30):
        sample = word.sample(rng)
        assert turned.accepts(sample[::-1])
    assert not turned.accepts("ba-x")
    assert turned.reverse().equivalent(word)
    recursion = Language(
        expression.recursive(lambda x: expression.union(expression.concat(A.expr, B.expr, x), B.expr))
    )
    assert recursion.accepts("ababb")
    assert recursion.reverse().accepts("bbaba")
    assert (A + recursion).reverse().equivalent(recursion.reverse() + A)


def test_deep_expressions() -> None:
    """A chain of operators far deeper than Python's recursion limit."""
    language = A
    for _ in range(5_000):
        language = language + A
    for _ in range(5_000):
        language = language | B
    assert language.accepts("a" * 5_001)
    assert not language.accepts("a" * 5_000)
    assert language.reverse().accepts("b")
    assert (language & ~language).is_empty()


def table(rows: list[list[int]], accepting: list[int], start: int = 1) -> Dfa:
    classes = np.ones(256, np.uint8)
    classes[ord("a")] = 0
    return Dfa(classes, np.array(rows, np.uint32), np.isin(np.arange(len(rows)), accepting), start)


def test_from_dfa_trims() -> None:
    """State 2 cannot reach acceptance, state 4 is never reached."""
    dfa = table([[0, 0], [3, 2], [2, 2], [3, 2], [3, 3]], [3, 4])
    trimmed = trim(dfa)
    assert trimmed.table.tolist() == [[0, 0], [2, 0], [2, 0]]
    assert trimmed.accepting.tolist() == [False, False, True]
    assert Language.from_dfa(dfa).equivalent(A.repeat(1))
    assert Language.from_dfa(table([[0, 0], [2, 2], [2, 2]], [])).is_empty()
    assert Language.from_dfa(table([[0, 0], [1, 1]], [1], start=0)).is_empty()


@pytest.mark.parametrize(
    ("dfa", "message"),
    [
        (table([[0, 0], [2, 0]], [1]), "names state 2"),
        (table([[0], [0]], [1]), "names class 1"),
        (table([[0, 1], [0, 0]], [1]), "state 0 must be DEAD"),
        (table([[0, 0], [0, 0]], [0]), "state 0 must be DEAD"),
        (table([[0, 0], [0, 0]], [1], start=2), "start 2"),
        (table([[0, 0], [0, 0]], [1], start=-1), "start -1"),
        (Dfa(np.zeros(255, np.uint8), np.zeros((1, 1), np.uint32), np.zeros(1, np.bool_), 0), "shapes"),
        (Dfa(np.zeros(256, np.uint8), np.zeros((2, 1), np.uint32), np.zeros(1, np.bool_), 0), "shapes"),
        (Dfa(np.zeros(256, np.uint8), np.zeros((0, 1), np.uint32), np.zeros(0, np.bool_), 0), "shapes"),
        (
            Dfa(np.zeros(256, np.uint8), np.zeros((1, 1), np.float32), np.zeros(1, np.bool_), 0),
            "table must hold",
        ),
    ],
)
def test_from_dfa_refuses(dfa: Dfa, message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        Language.from_dfa(dfa)


def test_without_pynini(monkeypatch: pytest.MonkeyPatch) -> None:
    """Boolean algebra and questions work; what needs OpenFst says so."""
    monkeypatch.setitem(sys.modules, "pynini", None)
    language = (A | B).star() - A
    assert language.includes(B)
    assert (A + B).reverse().accepts("ba")
    assert language.size().states > 0
    assert language.minimize().size().states == language.size().states
    for needs in (language.to_fst, regex(r"\w").reverse):
        with pytest.raises(MissingDependencyError, match=r"tokenfst\[fst\]"):
            needs()
