"""Members in any order against the union of all their sequences: small worlds, grammars, tokens, and many members."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

from reference.expressions.expressions import matches
from reference.grammars.pushdown import TokenModel
from reference.json.unordered import without_unordered
from tests.support.worlds.pushdown_worlds import compose, walk
from tests.support.worlds.token_worlds import allowed
from tokenfst import (
    Budget,
    Grammar,
    Language,
    Vocabulary,
    compile,
    delimited_list,
    multi_choice,
    regex,
    unordered,
)
from tokenfst.automata.expressions import expression
from tokenfst.automata.expressions.expression import (
    EMPTY,
    EPSILON,
    Expr,
    call,
    concat,
    literal,
    repeat,
    union,
)
from tokenfst.automata.json_values.strings import json_string
from tokenfst.automata.languages.display.readable import readable
from tokenfst.automata.rules.permutations import written_out
from tokenfst.errors import BudgetExceeded, ConstraintError

A, B, COMMA = literal(b"a"), literal(b"b"), literal(b",")
BODIES = (A, B, literal(b"ab"), union(A, literal(b"ba")), repeat(A, 1, 2), concat(A, repeat(B)))
SEPARATORS = (EPSILON, COMMA, union(COMMA, EPSILON), literal(b",a"), EMPTY)
BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [b""], 256)


def words(alphabet: bytes, longest: int) -> Iterator[bytes]:
    for length in range(longest + 1):
        yield from map(bytes, itertools.product(alphabet, repeat=length))


def random_members(rng: random.Random, part: list[Expr]) -> Expr:
    options = [rng.choice(part) for _ in range(rng.randint(0, 3))]
    low = rng.randint(0, 4)
    return expression.unordered(
        options,
        rng.choice(SEPARATORS),
        required=rng.randint(0, len(options)),
        other=rng.choice([EMPTY, EMPTY, *part]),
        counts=rng.random() < 0.6,
        low=low,
        high=rng.choice([None, None, low, low + 1, low + 3]),
    )


# --- languages ----------------------------------------------------------------------------------------


def check_languages(seeds: range) -> None:
    for seed in seeds:
        rng = random.Random(seed)
        expr = random_members(rng, list(BODIES))
        if rng.random() < 0.3:
            no_pair = expression.complement(concat(expression.UNIVERSE, literal(b"aa"), expression.UNIVERSE))
            expr = expression.intersect(expr, no_pair)
        if rng.random() < 0.3:
            expr = concat(A, expr, rng.choice([EPSILON, B]))
        language = Language(expr)
        wanted = {word for word in words(b"ab,", 5) if matches(expr, word)}
        assert {word for word in words(b"ab,", 5) if language.accepts(word)} == wanted, seed
        reverse = language.reverse()
        assert all(reverse.accepts(word[::-1]) == (word in wanted) for word in words(b"ab,", 4)), seed
        automaton = Language(expr).automaton
        for prefix in words(b"ab,", 3):  # trim: what can be begun can be finished
            if automaton.viable_prefix(prefix) == len(prefix):
                onward = concat(literal(prefix), expression.UNIVERSE)
                assert not Language(expression.intersect(expr, onward)).is_empty(), (seed, prefix)


def test_random_members_are_the_union_of_their_sequences() -> None:
    check_languages(range(25))


@pytest.mark.soak
@pytest.mark.parametrize("first", range(25, 2025, 250))
def test_many_random_members(first: int) -> None:
    check_languages(range(first, first + 250))


def test_members_of_all_sizes_are_counted() -> None:
    names = [f"k{number:03}" for number in range(200)]
    language = unordered(names[20:], required=names[:20], separator=",", low=25, high=30)
    rng = random.Random(0)
    for count, good in ((24, False), (25, True), (30, True), (31, False)):
        chosen = names[:20] + rng.sample(names[20:], count - 20)
        rng.shuffle(chosen)
        assert language.accepts(",".join(chosen)) is good, count
    chosen = names[:25]
    assert not language.accepts(",".join([*chosen, chosen[3]]))
    assert not language.accepts(",".join(names[1:27]))
    text = ",".join(names[20:30]) + ","
    live, _ = language.next_bytes(text.encode())
    assert live == b"k"
    # Thirty at most, twenty required: after ten others only required ones are left.
    assert language.viable_prefix((text + names[31]).encode()) == len(text) + 2


def test_a_thousand_members_are_walked_in_bounded_memory() -> None:
    names = [f"name_{number}" for number in range(1000)]
    language = unordered(names, separator=", ", other=regex("x[0-9]+")).with_budget(Budget(bytes=200 << 20))
    chosen = random.Random(1).sample(names, 100)
    assert language.accepts(", ".join(["x1", *chosen, "x1", "x2"]))
    assert not language.accepts(", ".join([*chosen, chosen[50]]))
    with pytest.raises(BudgetExceeded):
        unordered(names, separator=", ").with_budget(Budget(states=20_000)).determinize()


def test_a_budget_names_the_members() -> None:
    language = unordered([f"n{number}" for number in range(30)]).with_budget(Budget(states=2_000))
    with pytest.raises(BudgetExceeded, match=r"unordered\(literal"):
        language.determinize()


def test_the_public_function_checks_its_arguments() -> None:
    flags = unordered(["-v", "-q"], required=[regex("-o [a-z]+")], separator=" ", other="-x")
    for text in ("-o f", "-x -o f -v -x", "-v -q -o f"):
        assert flags.accepts(text)
    for text in ("", "-v", "-o f -o g", "-v -v -o f", "-o f ", "-o f-v"):
        assert not flags.accepts(text)
    assert unordered().accepts("") and unordered(["a"]).witness() == b""
    assert unordered(required=["b", "a"], separator=",").witness() == b"a,b"
    with pytest.raises(ConstraintError, match="empty word"):
        unordered([regex("a*")])
    with pytest.raises(ConstraintError, match="number of members"):
        unordered(["a"], low=2, high=1)
    for bounds in ({"low": 3}, {"high": 0}):
        with pytest.raises(ConstraintError, match="1 required member, 1 optional"):
            unordered(["a"], required=["b"], **bounds)


def test_numbers_beyond_those_of_the_core_are_refused() -> None:
    """They were read modulo 2^32: at most 2^32 members were none."""
    for made in (
        lambda: unordered(["a"], other="b", high=2**32),
        lambda: unordered(["a"], other="b", low=2**40),
        lambda: delimited_list("a", ",", 0, 2**32 + 1),
        lambda: multi_choice(["a", "b"], max=2**32 + 1, unique=False),
    ):
        with pytest.raises(
            ConstraintError, match=r"(unordered|delimited_list|multi_choice): .* at most 2147483647"
        ):
            made()
    assert multi_choice(["a", "b"], max=2**40).accepts("b, a")


def test_members_are_read_and_spelled_like_other_expressions() -> None:
    expr = expression.unordered([literal("é".encode()), B, A], COMMA, required=1, other=literal(b"c"))
    assert readable(expr) == "⟨é, b?, a?, c* in any order, with , between⟩"
    spelled = json_string(Language(expr), spelling="any")
    assert spelled.accepts('"b,\\u00e9,c,c"') and not spelled.accepts('"b,é,b"')
    fixed = Language(expr) & regex(".{5}")
    assert fixed.accepts("a,é,b") and not fixed.accepts("a,b,a")


# --- grammars -----------------------------------------------------------------------------------------


def random_rules(rng: random.Random) -> dict[str, Expr]:
    names = ["s", "x", "y"]
    calls = [call(name) for name in names]

    def part() -> Expr:
        some = rng.choice(calls)
        return rng.choice([A, B, some, concat(A, some), concat(some, B), literal(b"ab")])

    def body() -> Expr:
        kind = rng.random()
        if kind < 0.6:
            inner = [random_members(rng, [part(), part()])] if rng.random() < 0.3 else []
            return random_members(rng, [part(), part(), part(), *inner])
        return concat(part(), part()) if kind < 0.8 else repeat(part(), rng.randint(0, 1))

    ends = [A, B, concat(literal(b"["), call("s"), literal(b"]"))]
    return {name: union(body(), rng.choice(ends)) for name in names}


def pairs_of_grammars(seeds: range) -> Iterator[tuple[int, random.Random, Grammar, Grammar]]:
    """Random grammars and the same without members in any order; without those that are refused."""
    for seed in seeds:
        rng = random.Random(seed)
        rules = random_rules(rng)
        try:
            plain = Grammar({name: without_unordered(body, 9) for name, body in rules.items()}, "s")
            grammar = Grammar(rules, "s", budget=Budget(seconds=10))
            grammar.automaton.next_bytes(b"")
        except (ConstraintError, BudgetExceeded):
            continue
        yield seed, rng, grammar, plain


def check_grammars(seeds: range) -> int:
    count = 0
    for seed, rng, grammar, plain in pairs_of_grammars(seeds):
        count += 1
        assert grammar.is_empty() == plain.is_empty(), seed
        assert grammar.witness() == plain.witness(), seed
        for word in words(b"ab,[]", 3):
            assert grammar.accepts(word) == plain.accepts(word), (seed, word)
            assert grammar.viable_prefix(word) == plain.viable_prefix(word), (seed, word)
        for _ in range(3):
            text = b""
            while len(text) < 6:
                live, accepted = plain.next_bytes(text)
                assert grammar.next_bytes(text) == (live, accepted), (seed, text)
                if not live:
                    break
                text += bytes([rng.choice(live)])
        cut = grammar.truncate(1)
        assert all(plain.accepts(word) for word in words(b"ab,", 4) if cut.accepts(word)), seed
        deep = grammar.truncate(3)  # two bytes cannot be split more often than that
        assert all(deep.accepts(word) for word in words(b"ab,", 2) if plain.accepts(word)), seed
        try:
            product = grammar & Language(concat(repeat(union(A, COMMA), 0, 3), repeat(B)))
        except ConstraintError:
            continue
        assert all(
            product.accepts(word) == (plain.accepts(word) and matches_product(word))
            for word in words(b"ab,", 4)
        ), seed
    return count


def matches_product(word: bytes) -> bool:
    head = word.rstrip(b"b")
    return len(head) <= 3 and b"b" not in head


def test_random_grammars_are_those_with_all_sequences() -> None:
    assert check_grammars(range(60)) > 10


@pytest.mark.soak
@pytest.mark.parametrize("first", range(60, 3060, 500))
def test_many_random_grammars(first: int) -> None:
    check_grammars(range(first, first + 500))


def check_masks(seeds: range) -> None:
    for _, rng, grammar, _ in pairs_of_grammars(seeds):
        if grammar.is_empty():
            continue
        rules = {name: written_out(body, lambda _: True, "") for name, body in grammar.rules.items()}
        plain = Grammar(rules, "s")
        longer = [bytes(rng.choices(b"ab,[]", k=rng.randint(2, 4))) for _ in range(12)]
        vocabulary = Vocabulary([*(bytes([byte]) for byte in range(256)), *longer, b""], 268)
        model = TokenModel(plain, vocabulary)
        for narrow in (192, 0):
            walk(rng, compose(grammar, vocabulary, narrow), model)


def test_masks_of_members_are_those_of_their_sequences() -> None:
    check_masks(range(100, 108))


@pytest.mark.soak
def test_many_masks_of_members() -> None:
    check_masks(range(108, 1500))


def test_token_budgets_end_with_all_required_members() -> None:
    """Sixty members of nested values: distances are bounds by form, and every budget they allow is kept."""
    options = [concat(literal(f'"{number:02}":'.encode()), call("v")) for number in range(60)]
    rules = {
        "v": union(literal(b"1"), concat(literal(b"{"), call("o"), literal(b"}"))),
        "o": expression.unordered(options, COMMA, required=5, low=8),
    }
    automaton = compile(Grammar(rules, "o"), BYTES)
    rng = random.Random(3)
    for limit in (60, 75, 140):
        matcher = automaton.matcher(max_new_tokens=limit)
        text = b""
        for _ in range(limit):
            choices = sorted(allowed(matcher, 257))
            token = rng.choice(choices)
            assert matcher.accept_token(token)
            if token == 256:
                break
            text += bytes([token])
        assert Grammar(rules, "o").accepts(text), text


def test_members_with_the_empty_word_are_refused() -> None:
    with pytest.raises(ConstraintError, match="empty word"):
        Grammar({"s": expression.unordered([call("x"), A], COMMA), "x": union(EPSILON, B)}, "s").accepts("")
    with pytest.raises(ConstraintError, match="empty word"):
        Language(expression.unordered([repeat(A), B], COMMA)).accepts(b"")


def test_what_needs_every_set_is_refused_for_many() -> None:
    options = [concat(literal(bytes([97 + number])), call("s")) for number in range(9)]
    rules = {
        "s": union(literal(b"."), concat(literal(b"("), expression.unordered(options, COMMA), literal(b")")))
    }
    grammar = Grammar(rules, "s")
    assert grammar.accepts("(b.,a(c.))") and not grammar.accepts("(b.,b.)")
    with pytest.raises(ConstraintError, match="at most 6 options"):
        grammar & regex(".{1,9}")
    with pytest.raises(ConstraintError, match="at most 6 options"):
        grammar.draw()
    first = {"s": union(literal(b"."), expression.unordered([call("s"), *options[1:]], COMMA, low=2))}
    with pytest.raises(ConstraintError, match="left recursion"):
        Grammar(first, "s").accepts("")
