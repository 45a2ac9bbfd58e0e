"""Push-down automata on deep and long texts, and on grammars made to hurt: time per step stays flat, whatever is open
below; ambiguity costs a polynomial; a budget raises.
"""

from __future__ import annotations

import itertools
import random
import statistics
import time

import numpy as np
import pytest

from reference.grammars.pushdown import Recognizer
from reference.grammars.random_grammars_wide import GrammarGenerator, Patience
from tokenfst import Budget, Matcher, Vocabulary, compile
from tokenfst.automata.expressions.expression import Expr, call, concat, intersect, literal, optional, union
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.notations.bundled import bundled_grammar
from tokenfst.automata.notations.gbnf import gbnf
from tokenfst.errors import BudgetExceeded, EmptyLanguageError

BRACKETS = gbnf('root ::= "[" root? "]" | "{" root? "}" | "x"')
BYTES = Vocabulary(
    [bytes([byte]) for byte in range(256)] + [b"[[", b"]]", b"[{", b"}]", b"[[[[", b"]]]]", b""], 262
)


# --- depth --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1_000, 10_000, 100_000])
def test_depth_over_bytes(depth: int) -> None:
    kinds = random.Random(depth).choices([b"[]", b"{}"], k=depth)
    opening, closing = b"".join(k[:1] for k in kinds), b"".join(k[1:] for k in reversed(kinds))
    assert BRACKETS.accepts(opening + b"x" + closing)
    assert not BRACKETS.accepts(opening + closing[:-1])
    wrong = closing[: depth // 2] + (b"}" if closing[depth // 2] == b"]"[0] else b"]")
    assert BRACKETS.viable_prefix(opening + wrong) == depth + depth // 2
    assert BRACKETS.next_bytes(opening + closing[:-1]) == (closing[-1:], False)
    assert bundled_grammar("json").accepts(b'[{"a":' * depth + b"[]" + b"}]" * depth)


def steps(matcher: Matcher, tokens: list[int], size: int) -> list[float]:
    """Seconds for the mask and the step of each token."""
    mask = np.zeros((1, (size + 31) // 32), np.int32)
    seconds = []
    for token in tokens:
        begin = time.perf_counter()
        matcher.fill_next_token_bitmask(mask)
        taken = matcher.accept_token(token)
        seconds.append(time.perf_counter() - begin)
        assert taken and mask[0, token >> 5] >> (token & 31) & 1
    return seconds


def assert_flat(seconds: list[float]) -> None:
    """The last quarter costs no more than the first: medians, since others use the machine too."""
    quarter = len(seconds) // 4
    first, last = statistics.median(seconds[:quarter]), statistics.median(seconds[-quarter:])
    assert last < 3 * first + 2e-6, f"{first * 1e6:.2f} µs at first, {last * 1e6:.2f} µs at last"


@pytest.mark.parametrize("max_new_tokens", [None, 30_000])
def test_a_step_at_depth_ten_thousand_costs_what_the_first_does(max_new_tokens: int | None) -> None:
    automaton = compile(BRACKETS, BYTES)
    opening, closing = BYTES.ids(b"[")[0], BYTES.ids(b"]")[0]
    steps(automaton.matcher(max_new_tokens), [opening] * 50 + [closing] * 50, 263)
    matcher = automaton.matcher(max_new_tokens)
    down = steps(matcher, [opening] * 10_000, 263)
    up = steps(matcher, [closing] * 10_000, 263)
    assert matcher.is_accepting()
    assert_flat(down)
    assert_flat(up)


def test_memory_at_depth_and_going_back_far() -> None:
    """Of the configurations only some are kept: whatever is gone back to is what a new matcher finds."""
    automaton, rng = compile(BRACKETS, BYTES), random.Random(7)
    kinds = rng.choices([(b"[", b"]"), (b"{", b"}")], k=1_000)
    tokens = [BYTES.ids(opening)[0] for opening, _ in kinds]
    matcher = automaton.matcher()
    assert matcher.accept_tokens(tokens) and matcher.memory < 16_384
    tokens += [BYTES.ids(b"x")[0], *(BYTES.ids(closing)[0] for _, closing in reversed(kinds))]
    masks = np.zeros((2, 9), np.int32)
    for back in (0, 1, 15, 16, 17, 31, 32, 33, 48, 200, 500, 999):
        assert matcher.accept_tokens(tokens[matcher.num_tokens : 1_500])
        matcher.rollback(back)
        fork, again = matcher.fork(), automaton.matcher()
        assert again.accept_tokens(tokens[: 1_500 - back])
        for step in range(1_500 - back, min(1_520 - back, 1_500)):
            for row, each in enumerate((fork, again)):
                each.fill_next_token_bitmask(masks, row)
                assert each.accept_token(tokens[step])
            assert (masks[0] == masks[1]).all()
    matcher.rollback(matcher.num_tokens)
    assert matcher.accept_tokens(tokens) and matcher.is_accepting()


def test_more_nodes_than_sixteen_bits_count() -> None:
    matcher = compile(BRACKETS, BYTES).matcher()
    opening, closing = BYTES.ids(b"[")[0], BYTES.ids(b"]")[0]
    assert matcher.accept_tokens([opening] * 70_000)
    held = matcher.memory
    matcher.rollback(10_000)
    assert matcher.accept_tokens([opening] * 10_000 + [closing] * 70_000) and matcher.is_accepting()
    assert held < 40 * 70_000


def test_tokens_that_open_and_close_several_at_once() -> None:
    matcher = compile(BRACKETS, BYTES).matcher()
    two, four = BYTES.ids(b"[[")[0], BYTES.ids(b"[[[[")[0]
    close_two, close_four = BYTES.ids(b"]]")[0], BYTES.ids(b"]]]]")[0]
    steps(matcher, [four, two] * 1_000, 263)
    steps(matcher, [close_two, close_four] * 999 + [close_two], 263)
    mask = np.zeros((1, 9), np.int32)
    matcher.fill_next_token_bitmask(mask)
    allowed = set(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist())
    assert allowed == {BYTES.ids(text)[0] for text in (b"]", b"]]", b"]]]]")}
    assert matcher.validate_tokens([close_four, 262]) == 2
    assert matcher.validate_tokens([close_two, close_four]) == 1


def test_a_document_of_ten_thousand_tokens(tekken: Vocabulary) -> None:
    rng = random.Random(5)
    rows = [
        f'{{"id": {k}, "name": "n{rng.randrange(10**6)}", "tags": ["a b", null, {{"x": {k / 8}}}]}}'
        for k in range(600)
    ]
    tokens = tekken.encode_greedy(f"[{', '.join(rows)}]".encode())
    assert len(tokens) > 10_000
    automaton = compile(bundled_grammar("json"), tekken)
    steps(automaton.matcher(), tokens[:500], len(tekken))
    matcher = automaton.matcher()
    assert_flat(steps(matcher, tokens, len(tekken)))
    assert matcher.is_accepting()
    mask = np.zeros((1, len(tekken) // 32 + 1), np.int32)
    for _ in range(3):
        matcher.rollback(5_000)
        matcher.fill_next_token_bitmask(mask[:, : (len(tekken) + 31) // 32])
        assert matcher.accept_tokens(tokens[-5_000:]) and matcher.is_accepting()


def test_forks_at_depth_do_not_share_what_they_push() -> None:
    matcher = compile(BRACKETS, BYTES).matcher()
    square, curly = (BYTES.ids(text)[0] for text in (b"[", b"{"))
    closing = {square: BYTES.ids(b"]")[0], curly: BYTES.ids(b"}")[0]}
    assert matcher.accept_tokens([square] * 2_000)
    forks = [matcher.fork() for _ in range(8)]
    rng = random.Random(1)
    for fork in forks:
        opened = rng.choices([square, curly], k=50)
        assert fork.accept_tokens(opened)
        assert fork.accept_tokens([closing[token] for token in reversed(opened)])
        assert fork.accept_tokens([closing[square]] * 2_000) and fork.is_accepting()
    assert matcher.num_tokens == 2_000 and not matcher.is_accepting()


# --- hostile grammars ---------------------------------------------------------------------------------

HOSTILE = {
    "infinitely ambiguous": ("root ::= root root | root | a | \"\"\na ::= root | \"x\"", b"x"),
    "all binary trees": ('root ::= root root | "x"', b"x"),
    "all ternary trees": ('root ::= root root root | root root | "x"', b"x"),
    "nullable trees": ('root ::= root root root | "x" | ""', b"x"),
    "right and left": ('root ::= "x" root | root "x" | "x"', b"x"),
    "middle": ('root ::= "x" root "x" | "x"', b"x"),
    "prefix trees": ('root ::= "x" root root | "x"', b"x"),
    "hidden left": ('root ::= a root "x" | "x"\na ::= "x"?', b"x"),
    "palindromes": ('root ::= "a" root "a" | "b" root "b" | ""', b"ab"),
    "dangling else": ('root ::= "i" root | "i" root "e" root | "x"', b"iex"),
    "lookahead": ('root ::= a | b\na ::= "x" a "y" | "z"\nb ::= "x" b "w" | "z"', b"xyzw"),
    "two counts": ('root ::= a b | c d\na ::= ("x" a "y")?\nb ::= "z"*\nc ::= "x"*\nd ::= ("y" d "z")?', b"xyz"),
    "equal halves": ('root ::= root root | "a" root "b" | "b" root "a" | ""', b"ab"),
    "counted calls": ('root ::= a{3,40}\na ::= "x" root? "y" | "x"', b"xy"),
}  # fmt: skip

LENGTH = 120
"""Bytes of the longer texts."""


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_grammars_on_all_short_words(name: str) -> None:
    text, letters = HOSTILE[name]
    grammar = gbnf(text)
    slow = Recognizer(grammar.rules, grammar.start)
    longest = {1: 40, 2: 9, 3: 6, 4: 5}[len(letters)]
    for length in range(longest + 1):
        for word in map(bytes, itertools.product(letters, repeat=length)):
            assert grammar.next_bytes(word) == slow.next_bytes(word), word


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_grammars_cost_a_polynomial(name: str) -> None:
    """Eight times the work for twice the text is cubic; sixteen leaves room for the noise."""
    text, letters = HOSTILE[name]
    grammar, rng = gbnf(text), random.Random(name)
    matcher, mask = compile(grammar, BYTES).matcher(), np.zeros((1, 9), np.int32)
    while matcher.num_tokens < LENGTH:
        matcher.fill_next_token_bitmask(mask)
        following = [byte for byte in letters if mask[0, byte >> 5] >> (byte & 31) & 1]
        if not following:
            break
        assert matcher.accept_token(rng.choice(following))
    word, taken = bytes(matcher.tokens), []
    for length in (len(word) // 2, len(word)):
        begin = time.process_time()
        assert grammar.viable_prefix(word[:length]) == length
        taken.append(time.process_time() - begin)
    assert taken[1] < 16 * taken[0] + 0.05, taken
    assert taken[1] < 3


def check_long_text(rng: random.Random, budget: Budget) -> None:
    grammar = GrammarGenerator(rng).grammar().with_budget(budget)
    slow, word = Recognizer(grammar.rules, grammar.start), b""
    while len(word) < 30:
        wanted = slow.next_bytes(word)
        assert grammar.next_bytes(word) == wanted, (word, dict(grammar.rules))
        letters = [byte for byte in wanted[0] if byte in b"ab"]
        if not letters:
            break
        word += bytes([rng.choice(letters)])


def test_long_texts_of_random_grammars() -> None:
    """One of them is too ambiguous for any budget; a small one says so soon, and the others need less."""
    rng, patience, budget = random.Random(11), Patience(1), Budget(states=30_000, bytes=64 << 20)
    for _ in range(40):
        with patience():
            check_long_text(rng, budget)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(50))
def test_long_texts_of_many_random_grammars(seed: int) -> None:
    rng, patience = random.Random(6000 + seed), Patience(4)
    for _ in range(150):
        with patience():
            check_long_text(rng, Budget())


# --- grammars that are large or say nothing -----------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        call("root"),
        concat(call("root"), literal(b"x")),
        concat(literal(b"x"), call("root")),
        concat(optional(call("root")), call("root")),
        concat(literal(b"x"), intersect(literal(b"y"), literal(b"z"))),
    ],
)
def test_what_has_no_word(body: Expr) -> None:
    nothing = Grammar({"root": body}, "root")
    assert nothing.viable_prefix(b"x") == -1 and nothing.next_bytes(b"") == (b"", False)
    assert not nothing.accepts(b"")
    with pytest.raises(EmptyLanguageError):
        compile(nothing, BYTES)
    # The same alternative beside one that has a word must not be entered, nor looked for an end in.
    beside = Grammar({"root": union(body, literal(b"y"))}, "root", budget=Budget(states=1_000))
    assert beside.next_bytes(b"")[1] is False and beside.accepts(b"y")


def test_dead_ends_are_not_entered() -> None:
    """``x`` begins nothing, since what must follow has no word; without that known, x x x ... would be tried."""
    never = intersect(literal(b"y"), literal(b"z"))
    rules = {"root": union(concat(literal(b"x"), call("root"), never), literal(b"y"))}
    grammar = Grammar(rules, "root", budget=Budget(states=1_000))
    assert grammar.next_bytes(b"") == (b"y", False) and grammar.viable_prefix(b"xx") == 0


def test_many_levels_of_precedence() -> None:
    """As expression grammars are written: each level calls the next, and the last one calls the first in brackets."""
    count = 60
    levels = [f'e{k} ::= e{k} "{chr(97 + k % 26)}" "{k}" e{k + 1} | e{k + 1}' for k in range(count)]
    grammar = gbnf("\n".join(["root ::= e0", *levels, f'e{count} ::= "(" e0 ")" | "x"']))
    assert grammar.accepts(b"(" * 300 + b"x" + b")" * 300)
    assert grammar.accepts(b"(xa0x)b1((x)c2x)") and not grammar.accepts(b"xb0x")
    assert grammar.viable_prefix(b"(" * 50 + b"x" + b")" * 51) == 101


def test_many_alternatives() -> None:
    words = [f"k{k}" for k in range(2_000)]
    grammar = gbnf("root ::= " + " | ".join(f'"{word}" "(" root? ")"' for word in words))
    assert grammar.accepts(b"".join(word.encode() + b"(" for word in words) + b")" * 2_000)
    assert grammar.next_bytes(b"k1999(k")[0] == b"0123456789"


# --- budgets ------------------------------------------------------------------------------------------


def test_budgets_raise() -> None:
    wide = gbnf("root ::= " + " | ".join(f'"{k:04}" root "x{k:04}" | "y"' for k in range(300)))
    for budget in (Budget(states=50), Budget(bytes=20_000), Budget(positions=100)):
        with pytest.raises(BudgetExceeded) as error:
            automaton = compile(wide.with_budget(budget), BYTES, budget)
            matcher = automaton.matcher(max_new_tokens=100)
            for k in range(300):
                matcher.accept_tokens(list(f"{k:04}".encode()))
        assert error.value.limit in (50, 20_000, 100)
        with pytest.raises(BudgetExceeded):
            limited = wide.with_budget(budget)
            limited.accepts("".join(f"{k:04}" for k in range(300)))  # one question: others begin anew


def test_a_budget_that_was_exceeded_leaves_a_matcher_usable() -> None:
    automaton = compile(BRACKETS, BYTES, Budget(states=12))
    matcher = automaton.matcher()
    mask = np.zeros((1, 9), np.int32)
    accepted = 0
    for byte in b"[[{{x}}]]":
        try:
            matcher.fill_next_token_bitmask(mask)
            assert matcher.accept_token(byte)
            accepted += 1
        except BudgetExceeded:
            break
        assert matcher.num_tokens == accepted
    matcher.rollback(accepted)
    assert matcher.num_tokens == 0


def test_stacks_stay_within_the_budgets_bytes() -> None:
    """The table of open brackets is not doubled beyond the budget, and the matcher is as it was before the call."""
    automaton = compile(BRACKETS, BYTES, budget=Budget(bytes=4_000_000))
    matcher, opened = automaton.matcher(), 0
    with pytest.raises(
        BudgetExceeded, match="4,000,000 bytes; it grew in the stacks of one sequence of tokens"
    ):
        while matcher.accept_token(260):  # four brackets
            opened += 4
    assert opened > 50_000 and len(matcher.tokens) == opened // 4
    assert matcher.accept_token(ord("x")) and not matcher.is_accepting()
    assert matcher.accept_token(261) and matcher.rollback(2) is None and len(matcher.tokens) == opened // 4
