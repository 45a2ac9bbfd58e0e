"""Automata over symbols, vocabularies of symbols, and every part of the engine on them."""

from __future__ import annotations

import itertools
import json
import pickle
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.programs.command_line import tokenfst as run

import tokenfst
from reference.symbols import clothes
from tokenfst import SymbolAutomaton, TokenAutomaton, Vocabulary, compile, load_vocabulary, ltlf
from tokenfst.automata.symbols.automaton import UNREACHABLE, symbol_codes
from tokenfst.errors import (
    BudgetExceeded,
    ConstraintError,
    DrawingError,
    EmptyLanguageError,
    UnknownSymbolError,
    VocabularyError,
    VocabularyMismatchError,
)

SHORT = [trace for size in range(5) for trace in itertools.product(("a", "b", None), repeat=size)]


@st.composite
def automata(draw: st.DrawFn) -> tuple[list[list[int]], list[bool], int]:
    """Tables over a, b and anything else."""
    states = draw(st.integers(1, 5))
    state = st.integers(0, states - 1)
    table = draw(st.lists(st.lists(state, min_size=3, max_size=3), min_size=states, max_size=states))
    return table, draw(st.lists(st.booleans(), min_size=states, max_size=states)), draw(state)


Tables = tuple[list[list[int]], list[bool], int]


def automaton(tables: Tables) -> SymbolAutomaton:
    return SymbolAutomaton(["a", "b"], *tables)


def accepts(tables: Tables, trace: tuple[str | None, ...]) -> bool:
    """The slow twin: the tables, walked."""
    table, accepting, state = tables
    for symbol in trace:
        state = table[state][{"a": 0, "b": 1, None: 2}[symbol]]
    return accepting[state]


# --- the automaton ------------------------------------------------------------------------------------


@given(automata())
@settings(max_examples=150, deadline=None)
def test_minimizing_keeps_the_sequences_and_is_least(tables: Tables) -> None:
    made = automaton(tables)
    for trace in SHORT:
        assert made.accepts(trace) == accepts(tables, trace)
    # Least: no two states behave alike on all words as long as there are states. Trim: each leads to acceptance.
    words = [word for size in range(5) for word in itertools.product(("a", "b", None), repeat=size)]
    behaviour = {
        tuple(bool(made.accepting[made.run(word, state)]) for word in words)
        for state in range(made.num_states)
    }
    assert len(behaviour) == made.num_states
    for state in range(1, made.num_states):
        way = made.witness(state)
        assert way is not None and len(way) == made.distance[state]
        assert made.accepting[made.run(way, state)]
    assert made.distance[0] == UNREACHABLE and not made.table[0].any()


@given(automata(), automata())
@settings(max_examples=100, deadline=None)
def test_algebra(one: Tables, other: Tables) -> None:
    left, right = automaton(one), automaton(other)
    both, either, without, other_than, closed = left & right, left | right, left - right, ~left, left.closed()
    for trace in SHORT:
        a, b = accepts(one, trace), accepts(other, trace)
        assert both.accepts(trace) == (a and b)
        assert either.accepts(trace) == (a or b)
        assert without.accepts(trace) == (a and not b)
        assert other_than.accepts(trace) == (not a)
        assert closed.accepts(trace) == (a and None not in trace)
    assert left.equivalent(right) == (((left - right) | (right - left)).is_empty())
    assert left.includes(right) == (right - left).is_empty()
    assert left.equivalent(automaton(one))
    counts = [sum(accepts(one, t) for t in itertools.product("ab", repeat=n)) for n in range(4)]
    assert [left.count(n) for n in range(4)] == counts


def test_symbols_of_both_sides_are_joined() -> None:
    both = ltlf("F a") & ltlf("G !b")
    assert both.symbols == ("a", "b")
    assert both.equivalent(ltlf("F a & G !b"))
    assert (ltlf("F a") | ltlf("F b")).equivalent(ltlf("F(a | b)"))
    wide = ltlf("F a").over(["c", "a"])
    assert wide.symbols == ("c", "a") and wide.accepts(["c", "a"]) and not wide.accepts(["c"])
    with pytest.raises(UnknownSymbolError, match="'a'"):
        ltlf("F a").over(["b"])


def test_from_transitions() -> None:
    made = SymbolAutomaton.from_transitions([(0, "a", 1), (1, "b", 0), (1, None, 1)], 0, [1])
    assert made.accepts(["a", "x", "b", "a"]) and not made.accepts(["b"])
    assert made.next_symbols(made.run(["a"])) == (["b"], True)
    with pytest.raises(ConstraintError, match="state 0 has no one next state"):
        SymbolAutomaton.from_transitions([(0, "a", 1), (0, "a", 0)], 0, [1])
    with pytest.raises(UnknownSymbolError):
        SymbolAutomaton.from_transitions([(0, "a", 1)], 0, [1], ["b"])


def test_bad_tables_are_refused() -> None:
    with pytest.raises(ConstraintError, match="a column for each symbol"):
        SymbolAutomaton(["a"], [[0]], [True], 0)
    with pytest.raises(ConstraintError, match="not one of the 1"):
        SymbolAutomaton(["a"], [[0, 1]], [True], 0)
    with pytest.raises(ConstraintError, match="not one of the 1"):
        SymbolAutomaton(["a"], [[0, 0]], [True], 5)


def test_it_is_a_value() -> None:
    made = ltlf("G(a -> F b)")
    assert pickle.loads(pickle.dumps(made)).equivalent(made)
    assert "2 states, 2 symbols" in repr(made)
    with pytest.raises(ValueError, match="read-only"):
        made.table[0, 0] = 1
    with pytest.raises(TypeError):
        made & "a"  # type: ignore[operator]


def test_its_description_stays_short() -> None:
    made = ltlf("X" * 1000 + " a")
    for _ in range(40):
        made = made | made
    assert len(made.source) <= 240 and "source" not in repr(made)


def test_drawings_show_names() -> None:
    dot = ltlf('G("ankle boot" -> F b)').draw().dot
    assert '"ankle boot"' in dot and '"not b"' in dot and '"not ankle boot"' in dot
    assert '[label="any"]' in ltlf("F a").draw().dot
    only_other = SymbolAutomaton.from_transitions([(0, None, 1)], 0, [1], ["a"])
    assert '[label="…"]' in only_other.draw("title").dot
    with pytest.raises(DrawingError):
        ltlf("existence(a, 30)").draw(max_states=10)


# --- codes --------------------------------------------------------------------------------------------


def test_codes_have_one_length_and_are_different() -> None:
    for count, width in ((1, 1), (2, 1), (256, 1), (257, 2), (65_536, 2), (65_537, 3)):
        codes = symbol_codes(count)
        assert len(set(codes)) == count and {len(code) for code in codes} == {width}


@pytest.mark.parametrize("count", [3, 256, 257, 700, 66_000])
def test_language_over_codes(count: int) -> None:
    names = [f"s{number}" for number in range(count)]
    made = ltlf(f"G(s0 -> F s{count - 1}) & !last", ["s0", f"s{count - 1}"])
    language, codes = made.language(names), symbol_codes(count)
    rng = random.Random(count)
    for _ in range(60):
        trace = rng.choices([0, 1, count // 2, count - 2, count - 1], k=rng.randrange(5))
        word = b"".join(codes[number] for number in trace)
        assert language.accepts(word) == made.accepts([names[number] for number in trace])
        if count % 256:
            assert not language.accepts(word + b"\xff" * len(codes[0]))
    assert language.source == made.source


def test_codes_between_and_beyond_are_dead() -> None:
    language = ltlf("true").language(["a", None, "c"])
    assert [language.accepts(bytes([byte])) for byte in range(5)] == [True, False, True, False, False]
    with pytest.raises(UnknownSymbolError):
        ltlf("F a").language(["b"])
    with pytest.raises(BudgetExceeded):
        ltlf("existence(s0, 9)").language([f"s{k}" for k in range(600)], tokenfst.Budget(states=12))


# --- vocabularies -------------------------------------------------------------------------------------


def test_of_symbols() -> None:
    vocabulary = Vocabulary.of_symbols(["a", "b"])
    assert len(vocabulary) == 3 and vocabulary.eos_token_ids == (2,)
    assert vocabulary.symbols == ("a", "b", None) and vocabulary.special_tokens == {"</s>": 2}
    assert vocabulary.encode_symbols(["b", "a"]) == [1, 0]
    assert vocabulary.decode_symbols([1, 0, 2]) == ("b", "a")
    assert vocabulary.shown([1, 0, 2]) == b"b a" and vocabulary.decode([1, 0, 2]) == b"\1\0"
    within = Vocabulary.of_symbols(["a", "stop", "b"], end="stop", size=40)
    assert len(within) == 40 and within.eos_token_ids == (1,)
    assert within.symbols is not None and within.symbols[:4] == ("a", None, "b", None)
    assert pickle.loads(pickle.dumps(within)) == within


def test_names_are_part_of_the_value() -> None:
    assert Vocabulary.of_symbols(["a", "b"]) != Vocabulary.of_symbols(["b", "a"])
    same = Vocabulary([b"\0", b"\1", b""], 2, {"</s>": 2})
    assert same != Vocabulary.of_symbols(["a", "b"])


def test_bad_vocabularies() -> None:
    for names in ([], ["a", "a"], [""], "ab"):
        with pytest.raises(VocabularyError):
            Vocabulary.of_symbols(names)
    with pytest.raises(VocabularyError, match="symbol of its own"):
        Vocabulary([b"\0", b"\1", b""], 2, symbols=["a", "a", None])
    with pytest.raises(VocabularyError, match="give one for each"):
        Vocabulary([b"\0", b""], 1, symbols=["a"])
    with pytest.raises(VocabularyError, match="spells text"):
        Vocabulary([b"a", b""], 1).decode_symbols([0])
    with pytest.raises(UnknownSymbolError, match="did you mean 'stop'"):
        Vocabulary.of_symbols(["stop", "go"]).encode_symbols(["stp"])


def test_by_name_and_file(tmp_path: Path) -> None:
    listed = tmp_path / "labels.txt"
    listed.write_text("ankle boot\n\n  b \n", encoding="utf-8")
    from_file = load_vocabulary(f"symbols:@{listed}")
    assert from_file == Vocabulary.of_symbols(["ankle boot", "b"])
    assert load_vocabulary("symbols:ankle boot, b") == from_file
    assert load_vocabulary("symbols:a,b", eos_token_id=0).symbols == (None, "b")
    with pytest.raises(VocabularyError, match="cannot read"):
        load_vocabulary("symbols:@no such file")
    saved = tmp_path / "v.json"
    from_file.to_json(saved)
    again = load_vocabulary(f"tokens:{saved}")
    assert again == from_file and again.symbols == from_file.symbols
    assert load_vocabulary(f"tokens:{saved}", size=9).symbols == (*from_file.symbols, *[None] * 6)  # type: ignore[misc]
    saved.write_text(json.dumps({"tokens": ["a", ""], "eos_token_id": 1, "symbols": "a"}))
    with pytest.raises(VocabularyError, match="symbols must be a list"):
        load_vocabulary(f"tokens:{saved}")


# --- the engine ---------------------------------------------------------------------------------------

WIDE = (*(f"class {number}" for number in range(300)), *clothes.SYMBOLS)


@pytest.mark.parametrize("symbols", [clothes.SYMBOLS, WIDE], ids=["one byte", "two bytes"])
@pytest.mark.parametrize("kind", ["lazy", "expanded", "loaded"])
def test_masks_and_budgets_are_exact(symbols: tuple[str, ...], kind: str, tmp_path: Path) -> None:
    automaton, vocabulary = ltlf(clothes.FORMULAS, clothes.SYMBOLS), Vocabulary.of_symbols(symbols)
    walked = compile(automaton, vocabulary)
    if kind != "lazy":
        walked = walked.expand()
    if kind == "loaded":
        walked.save(tmp_path / "a.safetensors")
        walked = TokenAutomaton.load(tmp_path / "a.safetensors", vocabulary)
    assert walked.distance() == 2
    rng = random.Random(3)
    mask = tokenfst.allocate_token_bitmask(1, len(vocabulary))
    for _ in range(15):
        left = rng.randrange(2, 7)
        matcher, state = walked.matcher(max_new_tokens=left), automaton.start
        while not matcher.is_terminated() and left:
            matcher.fill_next_token_bitmask(mask, 0)
            bits = np.unpackbits(mask.view(np.uint8), bitorder="little", count=len(vocabulary))
            targets = [automaton.step(state, symbol) for symbol in symbols]
            fits = [automaton.distance[target] <= left - 1 for target in targets]
            assert bits[:-1].tolist() == fits
            assert bool(bits[-1]) == bool(automaton.accepting[state])
            token = int(rng.choice(np.flatnonzero(bits)))
            assert matcher.accept_token(token)
            left -= 1
            state = state if token == len(symbols) else targets[token]
        assert automaton.accepting[state]
        assert automaton.accepts(vocabulary.decode_symbols(matcher.tokens))


def test_the_end_token_is_no_letter() -> None:
    vocabulary = Vocabulary.of_symbols(["a", "b", "eos"], end="eos")
    assert compile(ltlf("F b"), vocabulary).expand().stats().states == 3
    with pytest.raises(UnknownSymbolError, match="'eos'"):
        compile(ltlf("F eos"), vocabulary)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(VocabularyMismatchError, match="spells text"):
        compile(ltlf("F a"), Vocabulary([b"a", b""], 1))
    with pytest.raises(UnknownSymbolError, match="'c'"):
        compile(ltlf("F c"), Vocabulary.of_symbols(["a", "b"]))
    with pytest.raises(EmptyLanguageError):
        compile(ltlf("F(!a & !b)"), Vocabulary.of_symbols(["a", "b"]))


def test_openfst_export_counts_the_same() -> None:
    automaton, vocabulary = ltlf(clothes.FORMULAS, clothes.SYMBOLS), Vocabulary.of_symbols(clothes.SYMBOLS)
    source, _, target, states, start, final = compile(automaton, vocabulary).arcs()
    matrix = np.zeros((states, states), np.int64)
    np.add.at(matrix, (source, target), 1)
    row, ends, found = np.eye(states, dtype=np.int64)[start], np.zeros(states, np.int64), []
    ends[final] = 1
    for _ in range(9):
        found.append(int(row @ ends))
        row = row @ matrix
    assert found == [0, 0, 6, 45, 156, 210, 90, 0, 0]


def test_the_transformers_adapter() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    vocabulary = Vocabulary.of_symbols(clothes.SYMBOLS)
    automaton = ltlf(clothes.FORMULAS, clothes.SYMBOLS)
    processor = tokenfst.ConstraintLogitsProcessor(compile(automaton, vocabulary), max_new_tokens=5)
    generator = torch.Generator().manual_seed(0)
    ids = torch.full((4, 1), len(vocabulary) - 1)
    for _ in range(5):
        scores = processor(ids, torch.randn(4, len(vocabulary), generator=generator))
        ids = torch.cat([ids, scores.argmax(1, keepdim=True)], 1)
    for row in ids[:, 1:].tolist():
        assert automaton.accepts(vocabulary.decode_symbols(row))


# --- the command line ---------------------------------------------------------------------------------

SHOP = ["--ltlf", "G(order -> F delivery)", "--symbols", "order,delivery,refund"]


def test_command_line_check() -> None:
    done = run("check", *SHOP, "order refund delivery", "order,order")
    assert done.code == 1
    assert "yes  order, refund, delivery" in done.out and "no   order, order" in done.out
    assert "stops too early, after order, order" in done.out
    assert "a shortest way on: delivery" in done.out
    answer = json.loads(run("check", *SHOP, "order", "--json").out)
    assert answer["results"][0]["ending"] == ["delivery"]
    strict = run("check", "--ltlf", "G(a | b) & !b", "a c")
    assert strict.code == 1 and "symbol 1 (c) is not allowed after a" in strict.out


def test_command_line_compile_and_tokens(tmp_path: Path) -> None:
    path = str(tmp_path / "shop.safetensors")
    assert run("compile", *SHOP, "--output", path).code == 0
    done = run("check", path, "--tokens", "0,1", "--tokens", "0", "-v", "symbols:order,delivery,refund")
    assert done.code == 1
    assert '"order delivery"' in done.out and 'after "order"' in done.out and '1 "delivery"' in done.out
    wrong = run("check", path, "--tokens", "0,1", "-v", "symbols:order,refund,delivery")
    assert wrong.code == 2


def test_command_line_sample_and_draw() -> None:
    done = run("sample", *SHOP, "--number", "20", "--seed", "1")
    assert done.code == 0
    for line in done.out.splitlines():
        assert ltlf("G(order -> F delivery)").accepts(line.split())
    assert '"not order"' in run("draw", *SHOP).out
    assert "delivery, refund, x" in run("draw", *SHOP, "-v", "symbols:order,delivery,refund,x").out


@pytest.mark.parametrize(
    "words",
    [
        ["check", "--symbols", "a", "a"],
        ["check", "--ltlf", "F b", "--symbols", "a", "a"],
        ["check", "--ltlf", "F (", "a"],
        ["check", "--ltlf", "F a", "--grammar", "json", "a"],
        ["compile", "--ltlf", "F a & G !a", "--output", "x.safetensors"],
        ["compile", "--ltlf", "F a", "extra", "--output", "x.safetensors"],
    ],
)
def test_command_line_refuses(words: list[str]) -> None:
    done = run(*words)
    assert done.code == 2 and done.err.startswith("error: ")
