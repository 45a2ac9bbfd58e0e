"""Push-down automata on a device against matchers: masks, budgets, distances, advances; overflow; what is refused."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import pytest
from support.worlds.devices.device_worlds import Row, ids
from support.worlds.devices.implementations import implementations, in_plain_torch

from reference.grammars.random_grammars_wide import GrammarGenerator
from tests.decoding.artifacts.test_pushdown_artifact import GRAMMARS, VOCABULARY
from tokenfst import (
    Budget,
    TokenAutomaton,
    Vocabulary,
    bundled_grammar,
    compile,
    gbnf,
    json_schema,
    regex,
)
from tokenfst.errors import (
    BudgetExceeded,
    ConstraintError,
    NondeterministicError,
    StackDepthError,
    StateError,
    TokenfstError,
    TokenIdError,
    TokenLimitError,
    UnspellableWarning,
)

torch = pytest.importorskip("torch")
PushDownDeviceAutomaton = pytest.importorskip(
    "tokenfst.decoding.device.automata.pushdown"
).PushDownDeviceAutomaton
tables = pytest.importorskip("tokenfst.decoding.device.tables.stacks")
DEPTH = 12


Plain = in_plain_torch(PushDownDeviceAutomaton)
make = implementations(PushDownDeviceAutomaton)


def automata() -> list[TokenAutomaton]:
    grammars = [*map(gbnf, GRAMMARS.values()), *map(bundled_grammar, ("json", "arithmetic", "sexpr"))]
    return [compile(grammar, VOCABULARY) for grammar in grammars] + [compile(regex("a+b?"), VOCABULARY)]


def walk(
    rng: random.Random,
    device: Any,
    made: list[TokenAutomaton],
    vocabulary: Vocabulary,
    steps: int,
    batch: int,
) -> int:
    """Random texts beside matchers, a row each, until they end or their stacks outgrow the device; how many did."""
    which = [rng.randrange(len(made)) for _ in range(batch)]
    rows = []
    for index in which:
        least = made[index].distance()
        left = rng.choice([None, least, least + 1, least + 3, least + 9]) if device.token_limits else None
        rows.append(Row(made[index], vocabulary, left))
    states = device.start_states(which)
    overflown = [False] * batch
    for _ in range(steps):
        limits = [-1 if row.over or row.left is None else row.left for row in rows]
        budget = torch.tensor(limits, dtype=torch.int32) if device.token_limits else None
        wanted = [
            set(vocabulary.eos_token_ids) if gone else row.allowed()
            for row, gone in zip(rows, overflown, strict=True)
        ]
        assert [ids(words, len(vocabulary)) for words in device.bitmask(states, budget).numpy()] == wanted
        look(rng, device, rows, states, budget, wanted, overflown)
        tokens = []
        for choices in wanted:
            inner = choices - set(vocabulary.eos_token_ids)
            tokens.append(rng.choice(sorted(inner if inner and rng.random() < 0.8 else choices)))
            if rng.random() < 0.04:
                tokens[-1] = rng.randrange(len(vocabulary))
        states = device.advance(states, torch.tensor(tokens))
        for r, (row, token) in enumerate(zip(rows, tokens, strict=True)):
            row.accept(token, unbounded=True)
            overflown[r] |= bool(device.is_overflown(states)[r])
            if not overflown[r]:
                assert bool(device.is_dead(states)[r]) == row.dead, (r, token)
                assert bool(device.is_ended(states)[r]) == (row.over and not row.dead)
        assert canonical(device, states)
    return sum(overflown)


def look(
    rng: random.Random, device: Any, rows: list[Row], states: Any, budget: Any, wanted: Any, overflown: Any
) -> None:
    """The other functions of a batch."""
    distances, accepting = device.distance(states).tolist(), device.is_accepting(states).tolist()
    for r, row in enumerate(rows):
        if overflown[r] or row.dead:
            assert distances[r] == 2**31 - 1 and not accepting[r]
        elif not row.over:
            assert distances[r] == row.matcher.distance() and accepting[r] == row.matcher.is_accepting()
    logits = torch.randn(len(rows), len(device.vocabulary) + rng.choice([0, 3]))
    tokens, reached = device.step(logits, states, budget)
    masked = device.mask_logits_(logits.clone(), states, budget)
    assert torch.equal(tokens, masked.argmax(1)) and torch.equal(reached, device.advance(states, tokens))
    assert [set(row.isfinite().nonzero()[:, 0].tolist()) for row in masked] == wanted
    drawn = device.choose(logits, states, budget, temperature=1.0, top_k=3).tolist()
    assert all(token in choices for token, choices in zip(drawn, wanted, strict=True))


def canonical(device: Any, states: Any) -> bool:
    """Equal configurations are equal rows: nothing stands after a stack, nor in rows that are over."""
    depth = torch.where(device.is_dead(states) | device.is_ended(states), 0, states[:, 1])
    after = torch.arange(device.depth) >= depth[:, None]
    return not bool((states[:, 2:] * after).any())


@pytest.mark.parametrize("seed", range(3))
def test_as_matchers(make: Any, seed: int) -> None:
    made = automata()
    walk(random.Random(seed), make(made, depth=DEPTH), made, VOCABULARY, 14, 8)


def random_automata(rng: random.Random, vocabulary: Vocabulary, count: int) -> list[TokenAutomaton]:
    """Of random grammars, those that one stack is enough for and the vocabulary spells."""
    found: list[TokenAutomaton] = []
    while len(found) < count:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnspellableWarning)
                made = compile(GrammarGenerator(rng).grammar(), vocabulary, Budget(states=2_000, seconds=2.0))
            if made.is_pushdown and made.distance() < 2**31 and made.expand().matcher():
                found.append(made.expand())
        except TokenfstError:
            continue
    return found


def check_random(seed: int, make: Any, count: int, depth: int = 8) -> int:
    rng, overflown = random.Random(seed), 0
    for _ in range(count):
        vocabulary = letters(rng)
        made = random_automata(rng, vocabulary, 2)
        try:
            device = make(made, depth=depth)
        except TokenLimitError:
            device = make(made, depth=depth, token_limits=False)
        overflown += walk(rng, device, made, vocabulary, 8, 5)
    return overflown


def letters(rng: random.Random) -> Vocabulary:
    """Both letters of random grammars, and words of them."""
    words = {bytes(rng.choices(b"ab", k=rng.randint(2, 6))) for _ in range(rng.randint(0, 30))}
    tokens = [b"a", b"b", *sorted(words), b"", b""]
    return Vocabulary(tokens, len(tokens) - rng.randint(1, 2))


@pytest.mark.parametrize("seed", range(2))
def test_random_grammars(make: Any, seed: int) -> None:
    check_random(seed, make, 8)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 120))
def test_random_grammars_at_length(make: Any, seed: int) -> None:
    check_random(seed, make, 60, depth=4)


def test_json_over_a_real_vocabulary(tekken: Vocabulary, tmp_path: Path) -> None:
    """Documents by both implementations, from a file, under budgets: every mask, every row."""
    compile(bundled_grammar("json"), tekken).save(tmp_path / "json.safetensors")
    made = TokenAutomaton.load(tmp_path / "json.safetensors", tekken)
    device = PushDownDeviceAutomaton(tmp_path / "json.safetensors", vocabulary=tekken)
    plain = Plain(made)
    text = b'{"a": [[1, {"x": []}], "y", [[[[{"deep": [null]}]]]]], "b": {"c": -0.5e3}}'
    tokens = tekken.encode_greedy(text)
    rows = [Row(made, tekken, left) for left in (None, 60)]
    states = device.start_states(2)
    for step, token in enumerate([*tokens, tekken.eos_token_ids[0]]):
        budget = torch.tensor(
            [-1 if row.over or row.left is None else row.left for row in rows], dtype=torch.int32
        )
        masks = device.bitmask(states, budget)
        assert [ids(words, len(tekken)) for words in masks.numpy()] == [row.allowed() for row in rows]
        assert torch.equal(masks, plain.bitmask(states, budget))
        reached = device.advance(states, torch.tensor([token] * 2))
        if step % 5 == 0:
            assert torch.equal(reached, plain.advance(states, torch.tensor([token] * 2)))
        states = reached
        for row in rows:
            row.accept(token)
    assert device.is_ended(states).all() and device.check_stacks(states) is None


def test_rows_are_values(make: Any) -> None:
    """Forks, beams, rollback, and trees of drafts."""
    device = make(compile(gbnf(GRAMMARS["brackets"]), VOCABULARY), depth=6)
    steps = [device.start_states(2)]
    for token in ([40, 40], [40, 120], [120, 41]):
        steps.append(device.advance(steps[-1], torch.tensor(token)))
    beams = steps[2][torch.tensor([1, 0, 1])]
    assert beams[:, 1].tolist() == [0, 1, 0]  # the outermost pair takes no symbol
    assert torch.equal(device.advance(beams, torch.tensor([41, 120, 41]))[1], steps[3][0])
    tokens, parents = torch.tensor([40, 120, 41, 41]), torch.tensor([-1, 0, 1, -2])
    reached = device.advance_tree(steps[0], parents, tokens, depth=3)
    assert device.is_dead(reached).tolist() == [False, False, False, True]
    assert device.is_accepting(reached).tolist() == [False, False, True, False]


def test_a_stack_without_room(make: Any) -> None:
    """The row dies and says so; the others go on. That a token needs room only for a while does not help it."""
    device = make(compile(gbnf(GRAMMARS["counted"]), VOCABULARY), depth=3)
    a, b, aa = 97, 98, VOCABULARY.tokens.index(b"aa")
    states = device.start_states(2)
    while int(states[0, 1]) < 3:
        states = device.advance(states, torch.tensor([a, a]))
    device.check_stacks(states)
    states = device.advance(states, torch.tensor([a, b]))
    assert device.is_overflown(states).tolist() == [True, False] and device.is_dead(states).tolist() == [
        True,
        False,
    ]
    assert states[0].tolist() == [0, -1, 0, 0, 0]
    with pytest.raises(StackDepthError, match=r"row 0 needs more than 3 symbols.*depth=6"):
        device.check_stacks(states)
    end = set(VOCABULARY.eos_token_ids)
    assert ids(device.bitmask(states).numpy()[0], len(VOCABULARY)) == end
    logits = device.mask_logits_(torch.zeros(2, len(VOCABULARY)), states)
    assert logits[0].isfinite().nonzero()[:, 0].tolist() == sorted(end)
    for token in (a, b, *end):  # for good
        after = device.advance(states, torch.tensor([token, b]))
        assert torch.equal(after[0], states[0])
    deep = device.start_states(1)
    for _ in range(3):
        deep = device.advance(deep, torch.tensor([aa]))
    assert device.is_overflown(deep).tolist() == [True]


def test_anything_in_a_row_is_harmless(make: Any) -> None:
    made = [compile(bundled_grammar("json"), VOCABULARY), compile(regex("a+b?"), VOCABULARY)]
    device, native = make(made, depth=5), PushDownDeviceAutomaton(made, depth=5)
    torch.manual_seed(0)
    near = torch.randint(-3, 12, (400, 7), dtype=torch.int32)
    near[:, 0] = torch.randint(-2, device.num_states + 3, (400,))
    wild = torch.randint(-(2**31), 2**31 - 1, (100, 7), dtype=torch.int32)
    wild[:50, 0] = near[:50, 0]
    wild[:50, 1] = near[:50, 1]
    states, tokens = torch.cat([near, wild]), torch.randint(-1, len(VOCABULARY) + 1, (500,))
    budget = torch.randint(-1, 9, (500,), dtype=torch.int32)
    assert torch.equal(device.advance(states, tokens), native.advance(states, tokens))
    assert torch.equal(device.bitmask(states, budget), native.bitmask(states, budget))
    assert torch.equal(device.distance(states), native.distance(states))
    assert torch.equal(device.is_accepting(states), native.is_accepting(states))
    rows = ids_of(device.bitmask(states))
    assert all(rows)
    checked = make(made, depth=5, debug=True)
    with pytest.raises(StateError, match="row 1 has a stack of 6 symbols, and there is room for 5"):
        checked.bitmask(torch.tensor([[2, 0, 0, 0, 0, 0, 0], [2, 6, 0, 0, 0, 0, 0]], dtype=torch.int32))


def ids_of(bitmask: Any) -> list[set[int]]:
    return [ids(words, len(VOCABULARY)) for words in bitmask.numpy()]


def test_what_is_refused(make: Any) -> None:
    with pytest.raises(NondeterministicError):
        make(compile(gbnf('root ::= "a" root "a" | "b"?'), VOCABULARY))
    schema = {"anyOf": [{"type": "array", "items": {"$ref": "#"}}, {"type": "object"}]}
    with pytest.raises(ConstraintError, match=r"must differ.*repeated_names"):
        make(compile(json_schema(schema), VOCABULARY))
    with pytest.raises(ValueError, match="depth must be at least 1"):
        make(automata()[:1], depth=0)
    device = make(automata()[:2], depth=5)
    states = device.start_states([0, 1])
    for bad in (states[:, 0], states[:, :6], states.long(), states.T.contiguous().T, states.to("meta")):
        with pytest.raises(StateError, match=r"states must be"):
            device.advance(bad, torch.zeros(2, dtype=torch.int64))
    with pytest.raises(TokenIdError, match="tokens must be"):
        device.advance(states, torch.zeros(2, 1, dtype=torch.int64))
    with pytest.raises(StateError, match="max_new_tokens must be"):
        device.bitmask(states, torch.zeros(3, dtype=torch.int32))
    with pytest.raises(ConstraintError, match="looked up"):
        device.compose(states)
    with pytest.raises(TokenLimitError, match="token_limits=True"):
        make(automata()[:1], depth=5, token_limits=False).bitmask(states, 3)
    size = device.memory().total
    small = make(automata()[:2], depth=5, capacity=size)
    with pytest.raises(BudgetExceeded, match="bytes"):
        small.add(automata()[3])
    assert len(small) == 2 and torch.equal(small.bitmask(states), device.bitmask(states))


def test_budgets_that_need_all_of_the_stack() -> None:
    """Where a text may end by itself or with what its stack asks for, distances are not sums."""
    both = compile(gbnf('root ::= "("* "." | nest\nnest ::= "(" nest ")" | "a"'), VOCABULARY)
    with pytest.raises(TokenLimitError, match="token_limits=False"):
        PushDownDeviceAutomaton(both)
    rng = random.Random(0)
    walk(rng, PushDownDeviceAutomaton(both, token_limits=False, depth=DEPTH), [both], VOCABULARY, 12, 6)


def test_look_ups_do_not_collide() -> None:
    rng = random.Random(0)
    for _ in range(30):
        entries = {
            (0, owner): {answer: rng.randint(1, 99) for answer in rng.sample(range(9), rng.randint(0, 9))}
            for owner in range(rng.randint(0, 40))
        }
        comb = tables.Comb.of(entries, 9, Budget())
        assert len(set(comb.place.values())) == len(entries)
        for owner, place in comb.place.items():
            found = {a: int(comb.values[place + a]) for a in range(10) if comb.owners[place + a] == place}
            assert found == entries[owner]


@pytest.mark.parametrize(
    "text",
    [
        'root ::= "(" root ")" | "a"',
        'root ::= "(" root? ")" "!"?',
        'root ::= "[" root ("," root)* "]" | "1"',
        'root ::= "(" ("ab" | "a") root ")" | "ab)"',
    ],
)
@pytest.mark.parametrize("longer", [[], [b"))", b"(a", b")!", b"]]", b"1,", b"ab)"]])
def test_budgets_where_not_every_byte_is_a_token(text: str, longer: list[bytes], make: Any) -> None:
    """Tokens that take symbols off the stack are in the masks of a budget, as they are in a matcher's."""
    few = [bytes([sign]) for sign in b"()[]ab1,!" if f"{chr(sign)}" in text]
    tokens = [*few, *(token for token in longer if all(bytes([sign]) in few for sign in token)), b""]
    vocabulary = Vocabulary(tokens, len(tokens) - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnspellableWarning)
        made = [compile(gbnf(text), vocabulary)]
    rng = random.Random(text)
    for _ in range(2):
        walk(rng, make(made, depth=DEPTH), made, vocabulary, 12, 8)
