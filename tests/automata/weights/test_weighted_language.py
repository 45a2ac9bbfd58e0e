"""Weighted languages beside enumeration of their paths; sums over infinitely many texts beside long partial sums."""

from __future__ import annotations

import math
import pickle
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenfst.fst as fst
from reference.transducers.weighted import prefix_weight, sums, text_weight, texts
from tokenfst import Budget, WeightedLanguage, maximum_entropy, regex
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.weights.machine import without_failures
from tokenfst.automata.weights.sums import onward_sums
from tokenfst.automata.weights.sums import solved as solved_sums
from tokenfst.errors import (
    BudgetExceeded,
    ConstraintError,
    DivergingSumError,
    EmptyLanguageError,
    FstError,
)

ALPHABET = b"ab"


def machine_of(
    arcs: list[tuple[int, int, float, int]], finals: dict[int, float], states: int
) -> fst.VectorFst:
    """A machine of costs over "log64": label 0 is epsilon, 1 is a, 2 is b."""
    made = fst.VectorFst("log64").add_states(states).set_start(0)
    for source, label, cost, target in arcs:
        read = ALPHABET[label - 1] if label else 0
        made.add_arc(source, fst.Arc(read, read, cost, target))
    for state, cost in finals.items():
        made.set_final(state, cost)
    return made


@st.composite
def machines(draw: st.DrawFn) -> tuple[fst.VectorFst, dict[bytes, float]]:
    """An ambiguous machine with epsilons forward only, and the weights of its texts by walking every path."""
    states = draw(st.integers(1, 4))
    costs = st.floats(0.7, 3)
    arcs = draw(
        st.lists(
            st.tuples(st.integers(0, states - 1), st.integers(1, 2), costs, st.integers(0, states - 1)),
            max_size=7,
        )
    )
    if states > 1:
        arcs += [
            (source, 0, cost, source + 1)
            for source, cost in draw(st.lists(st.tuples(st.integers(0, states - 2), costs), max_size=2))
        ]
    finals = draw(st.dictionaries(st.integers(0, states - 1), costs, max_size=3))

    def weight(text: bytes) -> float:
        def walk(state: int, place: int) -> float:
            total = math.exp(-finals[state]) if place == len(text) and state in finals else 0.0
            for source, label, cost, target in arcs:
                if source != state:
                    continue
                if label == 0:
                    total += math.exp(-cost) * walk(target, place)
                elif place < len(text) and text[place] == ALPHABET[label - 1]:
                    total += math.exp(-cost) * walk(target, place + 1)
            return total

        return walk(0, 0)

    return machine_of(arcs, finals, states), sums(weight, ALPHABET, 4)


@given(machines())
@settings(max_examples=30, deadline=None)
def test_paths_add_up(case: tuple[fst.VectorFst, dict[bytes, float]]) -> None:
    made, weights = case
    language = WeightedLanguage.from_fst(made, token_type="byte")
    for text in texts(ALPHABET, 4):
        assert math.exp(language.log_weight(text)) == pytest.approx(weights.get(text, 0.0), rel=1e-9)
        assert text_weight(language.machine, text) == pytest.approx(weights.get(text, 0.0), rel=1e-9)
    again = WeightedLanguage.from_fst(language.to_fst())
    assert [again.log_weight(text) for text in weights] == pytest.approx(
        [math.log(each) for each in weights.values()]
    )


@given(machines(), machines())
@settings(max_examples=15, deadline=None)
def test_algebra_of_weights(
    one: tuple[fst.VectorFst, dict[bytes, float]], other: tuple[fst.VectorFst, dict[bytes, float]]
) -> None:
    left, right = (WeightedLanguage.from_fst(each[0], token_type="byte") for each in (one, other))
    both, either, joined = left & right, left | right, left + right
    for text in texts(ALPHABET, 4):
        p, q = one[1].get(text, 0.0), other[1].get(text, 0.0)
        assert math.exp(both.log_weight(text)) == pytest.approx(p * q, rel=1e-9)
        assert math.exp(either.log_weight(text)) == pytest.approx(p + q, rel=1e-9)
        parts = math.fsum(
            one[1].get(text[:cut], 0.0) * other[1].get(text[cut:], 0.0) for cut in range(len(text) + 1)
        )
        assert math.exp(joined.log_weight(text)) == pytest.approx(parts, rel=1e-9)


def geometric() -> WeightedLanguage:
    """Texts of a and b that end in c, with cycles between two states: an ambiguous, infinite language."""
    made = fst.VectorFst("real64").add_states(2).set_start(0).set_final(1, 0.3)
    for source, label, weight, target in [
        (0, "a", 0.2, 0), (0, "a", 0.3, 1), (1, "b", 0.25, 0), (1, "b", 0.1, 1), (0, "b", 0.1, 1),
    ]:  # fmt: skip
        made.add_arc(source, fst.Arc(ord(label), ord(label), weight, target))
    return WeightedLanguage.from_fst(made, token_type="byte")


def test_infinite_sums_are_exact() -> None:
    language = geometric()
    matrix = np.array([[0.2, 0.4], [0.25, 0.1]])
    exact = np.linalg.solve(np.eye(2) - matrix, [0.0, 0.3])[0]
    assert language.mass() == pytest.approx(exact, rel=1e-12)
    weights = sums(lambda text: text_weight(language.machine, text), ALPHABET, 9)
    total = math.fsum(weights.values())
    assert language.mass() == pytest.approx(total, rel=2e-2) and language.mass() > total
    length = math.fsum(len(text) * weight for text, weight in weights.items()) / total
    assert language.expected_length() == pytest.approx(length, rel=1e-1)
    even = regex("(..)*")
    assert language.mass(even) == pytest.approx(
        math.fsum(weight for text, weight in weights.items() if len(text) % 2 == 0), rel=5e-2
    )
    assert language.mass(even) + language.mass(~even) == pytest.approx(language.mass(), rel=1e-12)


def test_normalized_is_a_distribution_by_state() -> None:
    language = geometric().normalized()
    machine = language.machine
    leaving = np.exp(machine.finals)
    np.add.at(leaving, machine.sources(), np.exp(machine.weights))
    assert leaving == pytest.approx(1.0, abs=1e-12)
    assert language.mass() == pytest.approx(1.0)
    whole = geometric()
    for text in texts(ALPHABET, 4):
        assert text_weight(machine, text) == pytest.approx(text_weight(whole.machine, text) / whole.mass())
        # What a beginning weighs is now the probability of all texts that begin so.
        onward = WeightedLanguage.of(regex(text.decode() + ".*"))
        assert prefix_weight(machine, text) == pytest.approx((language & onward).mass())


def test_alternatives_add_up_and_many_are_linear() -> None:
    """Each label was added to a copy of the machine of those before."""
    mixed = WeightedLanguage.alternatives(
        [("ab", 1), ("ab", 2.0), (b"", 0.5), ("", 0.25), (regex("a."), 4.0), ("zz", 0), (regex("q"), 0)]
    )
    for text, due in {"ab": 7, "": 0.75, "ac": 4, "zz": 0, "q": 0, "a": 0}.items():
        assert math.exp(mixed.log_weight(text)) == pytest.approx(due)
    many = WeightedLanguage.alternatives({f"label number {number}": 2.0 for number in range(5000)})
    assert many.mass() == pytest.approx(10_000)
    assert WeightedLanguage.alternatives({"a": 10**400}).log_mass() == pytest.approx(400 * math.log(10))
    with pytest.raises(ConstraintError, match="lone surrogate"):
        WeightedLanguage.alternatives({"\ud800": 1})
    with pytest.raises(TypeError, match=r"alternatives: choices\[0\] must be text or bytes"):
        WeightedLanguage.alternatives([(3, 1.0)])  # type: ignore[list-item]


def test_entropy_and_marginals_of_a_finite_language() -> None:
    choices = {"a": 3, "ab": 2, "b": 1, "aab": 2.5}
    language = WeightedLanguage.alternatives(choices).determinize()
    total = sum(choices.values())
    assert language.mass() == pytest.approx(total)
    assert language.entropy() == pytest.approx(
        -sum(w / total * math.log(w / total) for w in choices.values())
    )
    assert language.expected_length() == pytest.approx(sum(w * len(x) for x, w in choices.items()) / total)
    arcs, ends = language.marginals()
    assert ends.sum() == pytest.approx(1.0)
    firsts = arcs[language.plain.sources() == language.plain.start]
    assert sorted(firsts) == pytest.approx(sorted([1 / total, 1 - 1 / total]))


def test_entropy_of_a_geometric_language() -> None:
    machine = fst.VectorFst("real64").add_states(1).set_start(0).set_final(0, 0.25)
    machine.add_arc(0, fst.Arc(97, 97, 0.75, 0))
    language = WeightedLanguage.from_fst(machine, token_type="byte")
    assert language.mass() == pytest.approx(1.0)
    assert language.entropy() == pytest.approx(-(0.25 * math.log(0.25) + 0.75 * math.log(0.75)) / 0.25)
    assert language.expected_length() == pytest.approx(3.0)


def test_ambiguous_machines_have_no_entropy_until_they_are_determinized() -> None:
    twice = WeightedLanguage.alternatives({"ab": 1}) | WeightedLanguage.alternatives({"ab": 1, "b": 2})
    with pytest.raises(ConstraintError, match="determinize"):
        twice.entropy()
    assert twice.determinize().entropy() == pytest.approx(math.log(2))


@pytest.mark.parametrize(("weight", "shift"), [(1.0, 0.0), (1.5, 0.0), (1.0, 400.0)])
def test_a_sum_that_diverges_names_its_cycle(weight: float, shift: float) -> None:
    made = fst.VectorFst("log64").add_states(3).set_start(0).set_final(2, 0.0)
    made.add_arc(0, fst.Arc(120, 120, 0.0, 1))
    made.add_arc(1, fst.Arc(97, 97, shift, 2))
    made.add_arc(2, fst.Arc(98, 98, -math.log(weight) - shift, 1))
    with pytest.raises(DivergingSumError, match=r"'(ab|ba)'") as caught:
        WeightedLanguage.from_fst(made, token_type="byte").mass()
    assert sorted(caught.value.cycle) == [97, 98]
    assert caught.value.weight == pytest.approx(math.log(weight), abs=1e-9)
    assert pickle.loads(pickle.dumps(caught.value)).cycle == caught.value.cycle


def test_extreme_weights_of_a_cycle_do_not_overflow() -> None:
    made = fst.VectorFst("log64").add_states(2).set_start(0).set_final(1, 0.0)
    made.add_arc(0, fst.Arc(97, 97, -800.0, 1))
    made.add_arc(1, fst.Arc(98, 98, 800.0 + math.log(2), 0))
    language = WeightedLanguage.from_fst(made, token_type="byte")
    assert language.log_mass() == pytest.approx(800.0 + math.log(2))  # 1 + 1/2 + 1/4 + ... of e^800


def test_texts_of_a_cycle_that_are_nearly_impossible_stay_in_the_distribution() -> None:
    ring = [(state, 1, 9.0, (state + 1) % 100) for state in range(100)]
    language = WeightedLanguage.from_fst(machine_of(ring, {0: 0.0}, 100), token_type="byte").normalized()
    assert language.machine.num_states == 100
    assert language.log_weight("a" * 200) == pytest.approx(-1800)
    found = maximum_entropy(regex("(a{300}b|c{2,200}d)*"), 50.0)
    assert found.log_weight("a" * 300 + "b") > -math.inf


def test_a_long_cycle_takes_no_more_time_than_the_budget_has() -> None:
    known = np.append(0.0, np.full(99, -np.inf))
    ring = np.arange(100), (np.arange(100) + 1) % 100, np.full(100, -9.0)
    found = solved_sums(known, ring, Deadline(Budget(), "a test"))
    assert found is not None and found[1] == pytest.approx(-891)
    with pytest.raises(BudgetExceeded, match="second"):
        solved_sums(known, ring, Deadline(Budget(seconds=1e-9), "a test"))


@pytest.mark.parametrize("seed", [*range(6), 58, 265, 371, 493])
def test_small_sums_of_a_cycle_are_as_accurate_as_large_ones(seed: int) -> None:
    """Against fractions: weights are powers of two that are far apart."""
    draw = random.Random(seed)
    count = draw.randint(2, 6)
    ends = [(at, (at + 1) % count) for at in range(count)] + [
        (draw.randrange(count), draw.randrange(count)) for _ in range(count)
    ]
    arcs = [(source, target, draw.choice([-1, -2, -5, -20, -60, 3, 20])) for source, target in ends]
    finals = {at: draw.choice([0, -3, -100, 5]) for at in range(count) if not at or draw.random() < 0.5}
    table = [[Fraction(int(row == column)) for column in range(count)] for row in range(count)]
    for source, target, power in arcs:
        table[source][target] -= Fraction(2) ** power
    exact, ones = ([row[-1] for row in each] for each in (
        solved([[*row, Fraction(2) ** finals[at] if at in finals else 0] for at, row in enumerate(table)]),
        solved([[*row, Fraction(1)] for row in table]),
    ))  # fmt: skip
    costs = [(source, 1, -power * math.log(2), target) for source, target, power in arcs]
    made = machine_of(costs, {at: -power * math.log(2) for at, power in finals.items()}, count)
    language = WeightedLanguage.from_fst(made, token_type="byte")
    if min(ones) <= 0:
        with pytest.raises(DivergingSumError):
            language.log_mass()
        return
    due = [math.log(each.numerator) - math.log(each.denominator) for each in exact]
    found = onward_sums(language.plain, Deadline(Budget(), "a test"))
    assert found.tolist() == pytest.approx(due, rel=1e-12, abs=1e-12)


def solved(rows: list[list[Fraction]]) -> list[list[Fraction]]:
    """The rows in reduced echelon form."""
    for at in range(len(rows)):
        place = next(row for row in range(at, len(rows)) if rows[row][at])
        rows[at], rows[place] = rows[place], rows[at]
        rows[at] = [value / rows[at][at] for value in rows[at]]
        for other in range(len(rows)):
            if other != at:
                by = rows[other][at]
                rows[other] = [value - by * own for value, own in zip(rows[other], rows[at], strict=True)]
    return rows


def test_samples_have_their_shares() -> None:
    language = WeightedLanguage.alternatives({"a": 3, "bb": 1, "ab": 4})
    found = language.sample(4000, generator=np.random.default_rng(3))
    shares = {text: found.count(text) / len(found) for text in set(found)}
    assert shares[b"ab"] == pytest.approx(0.5, abs=0.05) and shares[b"a"] == pytest.approx(0.375, abs=0.05)
    assert language.sample(5, generator=np.random.default_rng(3)) == found[:5]
    assert set(language.sample(300, length=2, generator=np.random.default_rng(1))) == {b"bb", b"ab"}
    with pytest.raises(EmptyLanguageError, match="3 bytes"):
        language.sample(1, length=3)


def test_uniform_samples_of_one_length() -> None:
    language = WeightedLanguage.of(regex("(ab|b)*"))
    found = language.sample(3000, length=5, generator=np.random.default_rng(0))
    counts = {text: found.count(text) for text in set(found)}
    assert len(counts) == len(
        [text for text in texts(ALPHABET, 5) if len(text) == 5 and text.decode() in regex("(ab|b)*")]
    )
    assert min(counts.values()) > 0.7 * 3000 / len(counts)


def test_what_is_refused() -> None:
    with pytest.raises(FstError, match="say which"):
        WeightedLanguage.from_fst(fst.accep("a"))
    with pytest.raises(FstError, match="acceptor"):
        WeightedLanguage.from_fst(fst.cross("a", "b"), token_type="byte")
    with pytest.raises(FstError, match="min-max"):
        WeightedLanguage.from_fst(fst.VectorFst("minmax"), token_type="byte")
    with pytest.raises(ValueError, match=r"weight of choices\[0\]"):
        WeightedLanguage.alternatives({"a": -1})
    with pytest.raises(ValueError, match="not negative"):
        WeightedLanguage.alternatives({"a": math.nan})
    with pytest.raises(EmptyLanguageError):
        WeightedLanguage.alternatives({}).sample()
    assert WeightedLanguage.alternatives({}).mass() == 0
    long = WeightedLanguage.of(regex("a{60}(b{60}a{60})*"))
    with pytest.raises(BudgetExceeded, match="cycle of 120 states"):
        long.scaled(0.0).mass(budget=Budget(bytes=1000))


def test_failures_are_what_their_arcs_say() -> None:
    from tokenfst import boost

    language = boost({"ab": 1.0, "ba": -0.5, "abb": 2.0})
    plain = without_failures(language.machine, Budget())
    assert not plain.has_failures
    for text in texts(b"abc", 5):
        assert text_weight(plain, text) == pytest.approx(text_weight(language.machine, text))
    with pytest.raises(BudgetExceeded, match="bytes"):
        without_failures(language.machine, Budget(bytes=1000))
    assert pickle.loads(pickle.dumps(language)).log_weight("abab") == language.log_weight("abab")


def test_the_distribution_of_highest_entropy() -> None:
    found = maximum_entropy(regex("(a|b)*"), 3.0)
    assert found.expected_length() == pytest.approx(3.0, rel=1e-6)
    # Geometric in length with mean 3, even at each length.
    for text in texts(ALPHABET, 4):
        assert found.log_weight(text) == pytest.approx(math.log(0.25 * (0.75 / 2) ** len(text)), rel=1e-5)
    finite = maximum_entropy(regex("a|bb|ab|aaa"), 2.0)
    assert finite.entropy() == pytest.approx(math.log(4)) and finite.expected_length() == pytest.approx(2.0)
    for mean in (0.5, 3.5):
        with pytest.raises(ValueError, match="shortest and longest"):
            maximum_entropy(regex("a|bb|ab|aaa"), mean)
    with pytest.raises(ValueError, match="mean_length"):
        maximum_entropy(regex("a"), -1.0)
