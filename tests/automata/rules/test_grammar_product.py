"""Grammar & Language against the definitions: random small worlds, laws, and what its rules look like."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from contextlib import nullcontext

import pytest
from support.worlds.products import at_most, contains

from reference.expressions.expressions import matches
from reference.expressions.random_expressions import random_expression
from reference.grammars import grammars as slow
from reference.grammars.random_grammars import all_words, random_grammar
from tokenfst import Language, regex
from tokenfst.automata.expressions.expression import (
    ANY_BYTE,
    EMPTY,
    EPSILON,
    UNIVERSE,
    Expr,
    Op,
    byte_set,
    call,
    complement,
    concat,
    intersect,
    literal,
    optional,
    recursive,
    repeat,
    union,
)
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.notations.bundled import bundled_grammar
from tokenfst.automata.notations.gbnf import gbnf
from tokenfst.automata.rules import leaf_walks
from tokenfst.automata.rules.graph import called, inner_nodes
from tokenfst.automata.rules.lint import FindingKind
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, ConstraintError

A, B, X = literal(b"a"), literal(b"b"), literal(b"x")
WORDS = all_words(6)


# --- random small worlds ------------------------------------------------------------------------------


def short_words(grammar: Grammar) -> set[bytes]:
    """Which of ``WORDS`` the grammar has: sets of words, from nothing until nothing
    changes. Quicker than ``slow.accepts`` where there are many rules; compared with it below.
    """
    found: dict[str, set[bytes]] = {name: set() for name in grammar.rules}
    leaves: dict[int, set[bytes]] = {}
    while True:
        before = {name: len(known) for name, known in found.items()}
        for name, body in grammar.rules.items():
            found[name] |= _values(body, found, leaves)
        if before == {name: len(known) for name, known in found.items()}:
            return found[grammar.start]


def _values(body: Expr, found: Mapping[str, set[bytes]], leaves: dict[int, set[bytes]]) -> set[bytes]:
    longest = len(WORDS[-1])
    values: dict[int, set[bytes]] = {}

    def joined(left: set[bytes], right: set[bytes]) -> set[bytes]:
        return {x + y for x in left for y in right if len(x) + len(y) <= longest}

    for node in inner_nodes(body):
        args = [values[id(arg)] for arg in node.args if id(arg) in values]
        if node.op is Op.CALL:
            value = found[str(node.value)]
        elif node.op is Op.UNION:
            value = set().union(*args)
        elif node.op is Op.CONCAT:
            value = {b""}
            for arg in args:
                value = joined(value, arg)
        elif node.op is Op.REPEAT and isinstance(node.value, tuple):
            low, high = node.value
            power, value = {b""}, {b""} if low == 0 else set[bytes]()
            for count in range(1, (low + longest if high < 0 else high) + 1):
                power = joined(power, args[0])
                value = value | power if count >= low else value
        else:
            if id(node) not in leaves:
                leaves[id(node)] = {word for word in WORDS if matches(node, word)}
            value = leaves[id(node)]
        values[id(node)] = value
    return values[id(body)]


def random_pair(seed: int) -> tuple[Grammar, Language]:
    """A recursive grammar with words, and a language of at least half of the short words."""
    rng = random.Random(seed)
    grammar = random_grammar(rng)
    while grammar.is_empty() or not grammar.is_recursive():
        grammar = random_grammar(rng)
    expr = random_expression(rng, rng.randint(1, 3))
    if 2 * sum(matches(expr, word) for word in WORDS) < len(WORDS):
        expr = complement(expr)
    return grammar, Language(expr)


def check(seed: int) -> tuple[int, int]:
    """How many rules the product has, and how many short words."""
    grammar, language = random_pair(seed)
    product = grammar & language
    wanted = {word for word in short_words(grammar) if matches(language.expr, word)}
    found = short_words(product)
    assert found == wanted, (seed, found ^ wanted)
    if not product.is_empty():
        useless = {FindingKind.UNREACHABLE, FindingKind.UNPRODUCTIVE}
        assert not useless & {finding.kind for finding in product.lint()}, seed
    return len(product.rules), len(found)


@pytest.mark.parametrize("block", range(5))
def test_random_pairs(block: int) -> None:
    found = [check(block * 1000 + seed) for seed in range(20)]
    assert any(rules > 10 and words > 10 for rules, words in found)


@pytest.mark.soak
@pytest.mark.parametrize("block", range(20))
def test_random_pairs_soak(block: int) -> None:
    for seed in range(100_000 + block * 1000, 100_100 + block * 1000):
        with pytest.raises(BudgetExceeded) if seed == 115_008 else nullcontext():  # its language counts far
            check(seed)


def test_counted_copies_that_come_round_in_the_automaton() -> None:
    """Repetitions of one rule, counted and not, where copies lead from state to state and back: what is left of a count
    is none when it is used up, though another repetition goes on there.
    """
    bounds = [(low, high) for low in range(3) for high in range(max(low, 1), 4)]
    for (low, high), (other_low, other), count in itertools.product(
        bounds, [(0, -1), (2, -1), (1, 2)], (2, 3)
    ):
        item = union(A, concat(literal(b"("), call("u"), literal(b")")))
        first, second = repeat(call("u"), low, high), repeat(call("u"), other_low, other)
        root = union(concat(first, X), concat(second, literal(b"y")))
        grammar = Grammar({"root": root, "u": item}, "root")
        plain = repeat(union(literal(b"("), literal(b")")))
        turns = repeat(concat(*[plain, A] * count))
        for rest in range(count):
            language = Language(concat(turns, *[plain, A] * rest, plain, union(X, literal(b"y"))))
            product = grammar & language
            for copies in range(8):
                for end, (least, most) in ((b"x", (low, high)), (b"y", (other_low, other))):
                    wanted = least <= copies <= (copies if most < 0 else most) and copies % count == rest
                    for letters in {b"a" * copies, (b"a" * copies).replace(b"a", b"((a))", 1)}:
                        assert product.accepts(letters + end) == wanted, (low, high, other, count, letters)
            if not product.is_empty():
                assert FindingKind.UNREACHABLE not in {finding.kind for finding in product.lint()}


def test_against_the_recognizer() -> None:
    """The same with ``slow.accepts``, word by word, where the product is small enough for it."""
    sizes = []
    for seed in range(40):
        grammar, language = random_pair(seed)
        product = grammar & language
        if len(product.rules) > 6:
            continue
        sizes.append(len(product.rules))
        for word in WORDS:
            wanted = slow.accepts(grammar.rules, "s", word) and matches(language.expr, word)
            assert slow.accepts(product.rules, product.start, word) == wanted, (seed, word)
    assert len(sizes) > 20 and max(sizes) > 3


def test_terminals_of_any_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Terminals with every operator, also those that are too large to be made outside of the automaton."""
    for seed in range(16):
        if seed == 8:
            monkeypatch.setattr(leaf_walks, "QUICK", Budget(states=1))
        rng = random.Random(seed)
        x, y, z = (random_expression(rng, 2) for _ in range(3))
        grammar = Grammar.from_rules(
            {"s": union(concat(x, call("s"), y), concat(z, call("t")), z), "t": y}, "s"
        )
        language = Language(random_expression(rng, 2))
        words = short_words(grammar)
        wanted = {word for word in words if matches(language.expr, word)}
        assert short_words(grammar & language) == wanted, seed
        assert short_words(grammar & ~language) == words - wanted, seed


def test_walks_cut_a_terminal_into_disjoint_parts() -> None:
    for seed in range(25):
        rng = random.Random(seed)
        leaf = random_expression(rng, 2)
        dfa = Language(complement(random_expression(rng, 2))).determinize()
        walks = leaf_walks.LeafWalks(dfa, Budget(), lambda _: None)
        for state in range(1, dfa.num_states):
            ends = walks.ends(leaf, state)
            parts = [walks.words(leaf, state, end) for end in range(1, dfa.num_states)]
            last = walks.words(leaf, state, leaf_walks.ACCEPTING)
            for word in WORDS[:31]:
                at = state
                for byte in word:
                    at = int(dfa.table[at, dfa.classes[byte]])
                inside = matches(leaf, word)
                assert not inside or ends >> at & 1
                found = [end for end, part in enumerate(parts, 1) if matches(part, word)]
                assert found == ([at] if inside and at else []), (seed, state, word)
                assert matches(last, word) == (inside and bool(dfa.accepting[at])), (seed, state, word)
            assert all((part is EMPTY) == (not ends >> end & 1) for end, part in enumerate(parts, 1))


# --- repetitions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("low", range(4))
@pytest.mark.parametrize("more", [0, 1, 2, None])
def test_bounds_are_exact(low: int, more: int | None) -> None:
    high = None if more is None else low + more
    grammar = Grammar.from_rules(
        {"s": concat(repeat(call("t"), low, high), optional(B)), "t": union(A, concat(B, call("t"), B))}, "s"
    )
    for pattern in (
        "(aa)*b?",
        "a*",
        "(?!.*aa).*",
        "(ab|ba|aa)*",
        ".{0,5}",
        "(..)*",
        "[ab]*bb[ab]*",
        "a{3}b*",
    ):
        product = grammar & regex(pattern)
        wanted = {word for word in short_words(grammar) if regex(pattern).accepts(word)}
        assert short_words(product) == wanted, pattern


def test_unbounded_and_large_bounds_are_not_written_out() -> None:
    for high in (None, 100_000):
        grammar = Grammar.from_rules(
            {"s": repeat(call("t"), 50_000, high), "t": union(A, concat(B, call("t"), B))}, "s"
        )
        product = grammar & ~contains("c")
        (start, _) = product.rules.values()
        assert start.op is Op.REPEAT and start.value == (50_000, high or -1)
    sums = gbnf('root ::= item ("," item)*\nitem ::= [0-9]+ | "(" root ")"') & ~contains("11")
    assert len(sums.rules) < 20
    assert sums.truncate(2).accepts(",".join(["(101)"] * 300))
    assert not sums.truncate(2).accepts(",".join(["(101)"] * 300) + ",11")


def test_counts_along_the_way() -> None:
    """Copies counted while the language counts something else."""
    pairs = Grammar.from_rules(
        {"s": repeat(call("t"), 3, 3), "t": concat(literal(b"("), optional(call("t")), literal(b")"))}, "s"
    )
    product = pairs & regex(r"[()]{10}")
    words = {word for depth in range(6) for word in ["(" * depth + ")" * depth] if depth}
    wanted = {x + y + z for x in words for y in words for z in words if len(x + y + z) == 10}
    language = product.truncate(5)
    assert all(language.accepts(word) for word in wanted)
    assert language.equivalent(Language.union_of(map(Language.literal, wanted)))


# --- laws ---------------------------------------------------------------------------------------------


def test_laws() -> None:
    for seed in range(8):
        grammar, left = random_pair(seed)
        _, right = random_pair(seed + 500)
        both = short_words(grammar & (left & right))
        assert short_words((grammar & left) & right) == both == short_words(right & grammar & left), seed
        assert short_words(grammar & Language.any_bytes()) == short_words(grammar), seed
        assert (grammar & Language.empty()).is_empty()
        assert short_words(grammar & left) | short_words(grammar & ~left) == short_words(grammar), seed
        assert not short_words(grammar & left & ~left)


def test_without_recursion_it_is_the_intersection_of_languages() -> None:
    found = 0
    for seed in range(300):
        rng = random.Random(seed)
        grammar = random_grammar(rng)
        if grammar.is_recursive() or grammar.is_empty():
            continue
        found += 1
        language = Language(random_expression(rng, 2))
        assert (grammar & language).to_language().equivalent(grammar.to_language() & language), seed
    assert found > 20


def test_right_recursion_stays_regular() -> None:
    grammar = Grammar.from_rules(
        {"s": union(concat(A, call("t")), B), "t": union(concat(X, call("s")), A)}, "s"
    )
    language = regex("(a|x){0,4}.*") & ~contains("xax")
    product = grammar & language
    assert product.is_regular()
    assert product.to_language().equivalent(grammar.to_language() & language)


# --- what it looks like -------------------------------------------------------------------------------


def test_small_cases_stay_small() -> None:
    json = bundled_grammar("json")
    whole, text = json & Language.any_bytes(), json & Language.any_text()
    assert len(whole.rules) == len(text.rules) == len(json.rules)
    without = json & ~contains("foo")
    assert len(without.rules) == len(json.rules)  # only strings can hold it
    numbers = [name for name, rule in without.rules.items() if rule is json.rules["NUMBER"]]
    assert numbers == ["NUMBER[1→1]"] and without.start == "start"
    assert len((json & regex(r"[^\[]*(\[[^\[]*){0,5}")).rules) < 300


def test_ambiguity_is_not_added() -> None:
    """Left-to-right recognition stays cheap: alternatives through different states have no word in common."""
    grammar = gbnf('root ::= digits ";" digits\ndigits ::= [0-9] | [0-9] digits')
    product = grammar & regex("[0-9;]{6}")
    alternatives = [
        product.truncate(6) if name == product.start else Grammar(product.rules, name).truncate(6)
        for name in product.rules
    ]
    assert len(alternatives) > 6
    digits = {name: each for name, each in zip(product.rules, alternatives, strict=True) if "digits" in name}
    for name, each in digits.items():
        for other, another in digits.items():
            same_beginning = name.split("[")[1].split("→")[0] == other.split("[")[1].split("→")[0]
            if name < other and same_beginning and "#" not in name + other:
                assert (each & another).is_empty(), (name, other)


def test_names_and_places() -> None:
    grammar = gbnf('root ::= "[" item "]"\nitem ::= [0-9] root?')
    product = grammar & regex(r"(\[[0-9]){0,2}\]*")
    assert product.start == "root" and next(iter(product.rules)) == "root"
    assert all(name.split("[")[0].split("#")[0] in ("root", "item") for name in product.rules)
    assert any(name.startswith("item[") and "→" in name for name in product.rules)
    for name, position in product.positions.items():
        assert product.text[position:].startswith("item" if name.startswith("item") else "root")
    assert set(product.positions) == set(product.rules)
    assert repr(product).startswith("<Grammar (gbnf(") and " & (" in repr(product)


def test_names_are_never_taken_twice() -> None:
    rules = {
        "s[1→1]": union(concat(A, call("s"), call("s"), B), call("s[1→1]#1[1→2]"), X),
        "s": union(concat(A, call("s[1→1]"), A, call("s[1→1]"), B), B),
        "s[1→1]#1[1→2]": concat(A, A),
    }
    grammar = Grammar.from_rules(rules, "s[1→1]")
    product = grammar & ~contains("aab") & ~contains("xx")
    assert product.start == "s[1→1]"
    wanted = {word for word in short_words(grammar) if b"aab" not in word and b"xx" not in word}
    assert short_words(product) == wanted


def test_same_input_same_rules() -> None:
    first, second = (bundled_grammar("json") & regex(r"(?s).{0,6}") for _ in range(2))
    assert list(first.rules) == list(second.rules)
    assert first.truncate(3).equivalent(second.truncate(3))
    for one, other in zip(first.rules.values(), second.rules.values(), strict=True):
        assert [(node.op, called(node)) for node in inner_nodes(one)] == [
            (node.op, called(node)) for node in inner_nodes(other)
        ]


# --- limits -------------------------------------------------------------------------------------------


def test_a_terminal_larger_than_the_glance() -> None:
    large = repeat(byte_set(0b11 << 97), 20_000, 40_000)
    grammar = Grammar.from_rules({"s": union(concat(A, call("s"), B), concat(X, large), A)}, "s")
    product = (grammar & regex("a{0,3}xa*|aab|aaabb")).truncate(4)
    assert product.witness() == b"aab" and product.accepts("x" + 20_000 * "a")
    assert not product.accepts("x" + 20_000 * "b") and not product.accepts("x" + 2_000 * "a")
    assert not (grammar & at_most(10)).truncate(4).accepts("x" + 20_000 * "a")


def test_budgets() -> None:
    json = bundled_grammar("json")
    with pytest.raises(BudgetExceeded, match=r"positions.*the rule '[A-Za-z%]+'"):
        json.with_budget(Budget(positions=100_000)) & at_most(40)
    with pytest.raises(BudgetExceeded, match=r"seconds.*the rule '[A-Za-z%]+'"):
        json.with_budget(Budget(seconds=0.05, positions=10**9)) & at_most(60)
    with pytest.raises(BudgetExceeded, match="states"):
        json & at_most(1000).with_budget(Budget(states=500))
    with pytest.raises(BudgetExceeded, match=r"states.*the rule 's'"):
        large = intersect(*(repeat(concat(UNIVERSE, A, repeat(ANY_BYTE, n, n))) for n in (9, 11)))
        Grammar.from_rules({"s": union(concat(large, call("s")), A)}, "s", Budget(states=300)) & regex(
            "(a|b)*a"
        )
    narrow = json.with_budget(Budget(states=700)) & at_most(3).with_budget(Budget(states=500, seconds=7))
    assert narrow.budget == Budget(states=700, seconds=30)
    assert (json & at_most(3)).budget == Budget()


def test_two_grammars_are_refused() -> None:
    json = bundled_grammar("json")
    with pytest.raises(ConstraintError, match=r"undecidable.*truncate\(depth\)"):
        json & json  # type: ignore[operator]
    with pytest.raises(TypeError):
        json & "a"  # type: ignore[operator]
    with pytest.raises(TypeError):
        1 & json  # type: ignore[operator]
    assert (regex(r"\[*1\]*") & json).truncate(3).accepts("[[1]]")


def test_empty_products() -> None:
    grammar = gbnf('root ::= "(" root ")" | "x"')
    for language in (Language.empty(), regex("y*"), regex(r"\(\(+x\)")):
        product = grammar & language
        assert product.is_empty() and product.truncate(3).is_empty() and list(product.rules) == ["root"]
        assert product.positions == {"root": 0}
    nothing = Grammar.from_rules({"s": concat(A, call("s")), "t": A}, "s")
    assert (nothing & Language.any_bytes()).is_empty()
    only = grammar & Language.literal("((x))")
    assert only.truncate(5).equivalent(Language.literal("((x))"))
    assert short_words(Grammar.from_rules({"s": EPSILON}, "s") & regex("a*")) == {b""}


def test_recursion_of_expressions_and_deep_rules() -> None:
    """Nothing recurses in Python: a chain of 3,000 rules, a body 3,000 deep, a thousand calls in a row."""
    size = 3_000
    rules = {f"r{k}": union(concat(A, call(f"r{k + 1}"), B), call(f"r{k + 1}")) for k in range(size)}
    chain = Grammar.from_rules({**rules, f"r{size}": X}, "r0")
    assert len((chain & ~contains("c")).rules) == size + 1
    assert (chain & regex("a?xb?")).to_language().equivalent(regex("x|axb"))
    body = A
    for _ in range(size):
        body = union(concat(B, body), concat(call("s"), X))
    assert not (Grammar.from_rules({"s": body}, "s") & ~contains("c")).is_empty()
    row = Grammar.from_rules({"s": concat(*[call("t"), B] * 1000), "t": union(A, X)}, "s") & regex(
        "(ab)*x?b?"
    )
    assert row.to_language().equivalent(
        Language.literal("ab" * 999 + "ab") | Language.literal("ab" * 999 + "xb")
    )
    tail = recursive(lambda again: union(concat(A, again), B))
    assert short_words(
        Grammar.from_rules({"s": concat(call("t"), tail), "t": A}, "s") & ~contains("aaa")
    ) == {
        b"ab",
        b"aab",
    }
