"""Lazy automata on a device: masks, limits, choices and advances are those of matchers, whatever is there already and
whatever was evicted; what is refused.
"""

from __future__ import annotations

import random
import warnings
from typing import Any

import pytest
from support.worlds.devices.device_worlds import Row, has_words, ids
from support.worlds.devices.implementations import implementations

from reference.expressions.random_expressions import random_expression
from reference.grammars.random_grammars_wide import GrammarGenerator
from tests.decoding.device import test_device_automaton as flat
from tests.support.worlds.token_worlds import BUDGET, EVERY_BYTE, compose, random_vocabulary
from tokenfst import (
    Budget,
    DeviceSampler,
    GraphedStep,
    TokenAutomaton,
    Vocabulary,
    bundled_grammar,
    compile,
    gbnf,
    json_schema,
    regex,
    special_token,
)
from tokenfst.automata.expressions.program import linearize
from tokenfst.errors import (
    BudgetExceeded,
    ConstraintError,
    EmptyLanguageError,
    StateError,
    TokenfstError,
    TokenIdError,
    TokenLimitError,
    UnspellableWarning,
)

torch = pytest.importorskip("torch")
lazy = pytest.importorskip("tokenfst.decoding.device.lazy.lazy")
LazyDeviceAutomaton = lazy.LazyDeviceAutomaton
VOCABULARY = Vocabulary(
    [*EVERY_BYTE, b"((", b"))", b'"a":', b'{"', b'"},', b"12", b"ab", b"ba", b"aa", b""], 265
)
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "next": {"$ref": "#"}, "of": {"enum": ["x", "yz"]}},
    "required": ["a"],
    "additionalProperties": False,
}


make = implementations(LazyDeviceAutomaton)


def complete_vocabulary(rng: random.Random) -> Vocabulary:
    while True:
        made = random_vocabulary(rng)
        if made.native.complete:
            return made


def finite(rng: random.Random, vocabulary: Vocabulary) -> TokenAutomaton | None:
    expr = random_expression(rng, rng.randint(1, 4))
    native = compose(expr, vocabulary, rng.choice([0, 192]))
    if not has_words(native):
        return None
    return TokenAutomaton(native, vocabulary, "random", Budget(*BUDGET[:2]), program=linearize(expr))


def with_stack(rng: random.Random, vocabulary: Vocabulary) -> TokenAutomaton | None:
    """Of a random grammar, ambiguous ones too."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnspellableWarning)
            made = compile(GrammarGenerator(rng).grammar(), vocabulary, Budget(states=2_000, seconds=2.0))
            return made if made.is_pushdown and made.distance() < 60 else None
    except TokenfstError:
        return None


def some(rng: random.Random, vocabulary: Vocabulary, one: Any, count: int) -> list[TokenAutomaton]:
    found: list[TokenAutomaton] = []
    while len(found) < count:
        if (made := one(rng, vocabulary)) is not None:
            found.append(made)
    return found


def options(rng: random.Random) -> dict[str, Any]:
    """Ways to page: what is there before, how many masks fit, where they are made."""
    return {
        "ahead": rng.choice([0, 0, 3, 64]),
        "composes": rng.random() < 0.5,
        **rng.choice([{"slots": 1}, {"slots": 64, "overflow": "evict"}, {}]),
    }


def follow(
    rng: random.Random, device: Any, automata: list[TokenAutomaton], vocabulary: Vocabulary, steps: int
) -> None:
    """Random texts beside matchers: masks, limits, choices, distances; rows that are kept and taken up again."""
    which = [rng.randrange(len(automata)) for _ in range(rng.randint(1, 5))]
    rows = []
    for index in which:
        left = None if rng.random() < 0.3 else automata[index].distance() + rng.choice([0, 0, 1, 2, 5])
        rows.append(Row(automata[index], vocabulary, left))
    states = device.start_states(which)
    kept = states.clone(), [ids(words, len(vocabulary)) for words in device.bitmask(states.clone()).numpy()]
    for _ in range(steps):
        if rng.random() < 0.7:
            flat.walk(rng, device, rows, states, vocabulary)
        tokens = []
        for row in rows:
            choices = sorted(row.allowed())
            tokens.append(rng.choice(choices) if rng.random() < 0.9 else rng.randrange(len(vocabulary)))
            row.accept(tokens[-1], unbounded=True)
        states = device.advance(states, torch.tensor(tokens))
        if rng.random() < 0.5:
            assert device.is_dead(states).tolist() == [row.dead for row in rows]
            assert device.settle(states)[:, 1:].any() == 0
    again = device.bitmask(kept[0]).numpy()
    assert [ids(words, len(vocabulary)) for words in again] == kept[1]


def check(make: Any, seed: int, count: int) -> None:
    rng, done = random.Random(seed), 0
    while done < count:
        vocabulary = complete_vocabulary(rng)
        automata = some(rng, vocabulary, finite, rng.randint(1, 3))
        try:
            device = make(automata, **options(rng))
        except ConstraintError:  # not every byte is a token at the start
            assert vocabulary.initial_tokens is not None
            continue
        follow(rng, device, automata, vocabulary, 7)
        done += 1


def check_grammars(make: Any, seed: int, count: int) -> None:
    rng = random.Random(seed)
    words = {bytes(rng.choices(b"ab", k=rng.randint(2, 6))) for _ in range(12)}
    tokens = [*EVERY_BYTE, *sorted(words), b"", b""]
    vocabulary = Vocabulary(tokens, len(tokens) - rng.randint(1, 2))
    exceeded = 0
    for _ in range(count):
        automata = some(rng, vocabulary, with_stack, 2)
        device = make(automata, **options(rng))
        try:
            follow(rng, device, automata, vocabulary, 6)
        except (
            BudgetExceeded
        ):  # an ambiguous grammar that compiles within 2,000 states can need more in a later mask
            exceeded += 1
    assert exceeded <= count // 4


@pytest.mark.parametrize("seed", range(4))
def test_as_matchers(make: Any, seed: int) -> None:
    check(make, seed, 6)


@pytest.mark.parametrize("seed", range(2))
def test_grammars_as_matchers(make: Any, seed: int) -> None:
    """Deterministic or not: the states include the stacks."""
    check_grammars(make, seed, 4)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 140))
def test_at_length(make: Any, seed: int) -> None:
    check(make, seed, 40)
    check_grammars(make, seed, 12)


def schemas() -> list[TokenAutomaton]:
    kinds = [
        SCHEMA,
        {"type": "array", "items": {"type": ["integer", "null"]}},
        {"anyOf": [SCHEMA, {"type": "string"}]},
    ]
    return [compile(json_schema(kind), VOCABULARY) for kind in kinds]


@pytest.mark.parametrize("seed", range(3))
def test_schemas_without_expansion(make: Any, seed: int) -> None:
    """No state of the automata is known but those that texts lead to."""
    rng, automata = random.Random(seed), schemas()
    device = make(automata, slots=24, overflow="evict", ahead=0)
    for _ in range(3):
        follow(rng, device, automata, VOCABULARY, 12)
    assert not any(automaton.is_expanded for automaton in automata)


def test_nondeterministic_grammars() -> None:
    """Even palindromes, whose middle a text shows only at its end, decode to complete texts within their limit."""
    made = compile(gbnf('root ::= "a" root "a" | "b" root "b" | ""'), VOCABULARY)
    device, states = LazyDeviceAutomaton(made), None
    torch.manual_seed(0)
    texts: list[list[int]] = [[] for _ in range(6)]
    states = device.start_states(6, 16)
    for left in range(16, 0, -1):
        tokens, states = device.step(torch.randn(6, len(VOCABULARY)), states, left, temperature=1.0)
        for text, token in zip(texts, tokens.tolist(), strict=True):
            text.append(token)
    assert device.is_accepting(states).all()
    words = [VOCABULARY.decode(text) for text in texts]
    assert all(word == word[::-1] for word in words) and max(map(len, words)) > 3


def test_a_full_pool() -> None:
    """Evictions are bounded by what is copied; masks of one batch that do not fit are refused, and nothing changes."""
    automaton = compile(regex("abcdefghij"), VOCABULARY)
    device = LazyDeviceAutomaton(automaton, slots=2, overflow="evict", ahead=0, token_limits=False)
    states = device.start_states(1)
    kept = [states]
    for byte in b"abcdefghi":
        states = device.advance(states, torch.tensor([byte]))
        assert ids(device.bitmask(states).numpy()[0], len(VOCABULARY)) >= {byte + 1}
        kept.append(states)
    residence = device.residence
    assert residence.copied == 9 and residence.evictions == 7 and residence.states == 10
    several = torch.cat(kept)
    before = several.clone()
    with pytest.raises(BudgetExceeded, match="one batch"):
        device.bitmask(several)
    assert torch.equal(several, before)
    for state, byte in zip(kept, b"abcdefghij", strict=True):  # all are still right, one at a time
        assert byte in ids(device.bitmask(state).numpy()[0], len(VOCABULARY))
    raising = LazyDeviceAutomaton(automaton, slots=1, overflow="raise", token_limits=False)
    states = raising.advance(raising.start_states(1), torch.tensor([97]))
    raising.bitmask(states)
    with pytest.raises(BudgetExceeded, match="more than 1 slot"):
        raising.bitmask(raising.advance(states, torch.tensor([98])))
    with pytest.raises(BudgetExceeded, match="bytes"):
        LazyDeviceAutomaton(automaton, slots=100_000, capacity=100_000)
    whole = LazyDeviceAutomaton(automaton)
    whole.bitmask(whole.start_states(1))
    small = LazyDeviceAutomaton(automaton, capacity=whole.memory().total)
    with pytest.raises(BudgetExceeded, match="bytes"):
        for _ in range(99):
            small.add(compile(regex("[a-d]{40}"), VOCABULARY))
    assert torch.equal(small.bitmask(small.start_states([0])), device.bitmask(device.start_states([0])))


def test_where_masks_are_made() -> None:
    """On the device once all states that bytes lead to are there; on the host before."""
    automaton = compile(regex("[0-9]{2}-(yes|no)"), VOCABULARY)
    near = LazyDeviceAutomaton(automaton, ahead=99, composes=True)
    far = LazyDeviceAutomaton(automaton, ahead=0, composes=True)
    states = [device.start_states(1) for device in (near, far)]
    for token in VOCABULARY.encode_greedy(b"12-yes"):
        masks = [device.bitmask(row) for device, row in zip((near, far), states, strict=True)]
        assert torch.equal(*masks) and torch.equal(near.compose(states[0]), masks[0])
        states = [
            device.advance(row, torch.tensor([token]))
            for device, row in zip((near, far), states, strict=True)
        ]
    assert near.residence.copied == 0 and near.residence.composed > 2
    assert far.residence.copied > 2 and far.residence.composed == 0
    with pytest.raises(ConstraintError, match=r"the device lacks .* state"):
        far.compose(states[1])


def test_rows_are_values(make: Any) -> None:
    """Forks, beams, trees of drafts; rows that wait for the host among them."""
    device = make(compile(bundled_grammar("json"), VOCABULARY), ahead=0)
    states = device.start_states(2)
    reached = device.advance(states, torch.tensor([91, 123]))
    assert (reached[:, 0] == lazy.MISSING).all() and reached[:, 2].tolist() == [91, 123]
    beams = reached[torch.tensor([1, 0, 1])]
    settled = device.settle(beams)
    assert torch.equal(settled, device.settle(reached)[torch.tensor([1, 0, 1])]) and settled is beams
    tokens, parents = torch.tensor([91, 93, 93, 125]), torch.tensor([-1, 0, 1, -1])
    tree = device.advance_tree(states, parents, tokens, depth=3)
    assert device.is_dead(tree).tolist() == [False, False, True, True]
    assert device.is_accepting(tree).tolist() == [False, True, False, False]


def test_anything_in_a_row_is_harmless(make: Any) -> None:
    device = make(schemas()[:2], ahead=2)
    torch.manual_seed(0)
    near = torch.randint(-3, 12, (200, 3), dtype=torch.int32)
    near[:, 0] = torch.randint(-2, 90, (200,))
    near[:60, 0] = lazy.MISSING
    near[:60, 1] = torch.randint(-2, 9, (60,))
    wild = torch.randint(-(2**31), 2**31 - 1, (40, 3), dtype=torch.int32)
    states = torch.cat([near, wild])
    assert (device.bitmask(states.clone(), 3) != 0).any(1).all()
    logits, tokens = torch.randn(240, len(VOCABULARY)), torch.randint(-1, len(VOCABULARY) + 1, (240,))
    chosen, _ = device.step(logits, states.clone())
    masked = device.mask_logits_(logits.clone(), states.clone())
    assert torch.equal(chosen, masked.argmax(1))
    assert device.advance(states, tokens).shape == (240, 3)


def test_flags_of_an_earlier_step() -> None:
    """What advance sent to the host counts until the rows are changed in place, or masks were brought."""

    class Arrived:
        def synchronize(self) -> None:
            pass

    automaton = compile(regex("[a-c]{9}"), VOCABULARY)
    device = LazyDeviceAutomaton(automaton, ahead=0, slots=1, overflow="evict", token_limits=False)
    states = device.settle(device.advance(device.start_states(1), torch.tensor([97])))
    flags = torch.zeros(3, dtype=torch.bool), Arrived()
    device._early = states, states._version, *flags
    assert device._surely_settled(states, None, True)
    states.add_(0)
    assert not device._surely_settled(states, None, True)
    device._early = states, states._version, *flags
    device.settle(device.advance(states, torch.tensor([98])))  # might evict
    assert not device._surely_settled(states, None, True)
    assert device.bitmask(states).any()
    with torch.inference_mode():
        reached = device.advance(states.clone(), torch.tensor([98]))
        device._early = reached, 0, *flags
        assert not device._surely_settled(reached, None, True)


def test_samplers() -> None:
    """A sampler draws the tokens that it draws with all tables, and verifies drafts by them."""
    automata = [compile(regex(pattern), VOCABULARY) for pattern in ("[a-f]{2,5}", "(ab)+|b")]
    given = {"temperature": 0.7, "top_k": 9, "presence_penalty": 0.3, "seeds": [5, 6]}
    devices = [LazyDeviceAutomaton(automata, ahead=0), flat.DeviceAutomaton(automata)]
    samplers = [DeviceSampler(device, 2, **given) for device in devices]
    states = [device.start_states([0, 1]) for device in devices]
    torch.manual_seed(1)
    for left in range(9, 3, -1):
        logits = torch.randn(2, len(VOCABULARY))
        drawn = [sampler.step(logits, row, left) for sampler, row in zip(samplers, states, strict=True)]
        assert torch.equal(drawn[0][0], drawn[1][0])
        states = [one[1] for one in drawn]
    states = [device.start_states([0, 1]) for device in devices]
    drafts, parents, logits = (
        torch.tensor([97, 98, 97]),
        torch.tensor([-1, 0, -2]),
        torch.randn(5, len(VOCABULARY)),
    )
    found = [
        sampler.verify(logits, row, parents, drafts, 2, 9)
        for sampler, row in zip(samplers, states, strict=True)
    ]
    assert torch.equal(found[0].tokens, found[1].tokens) and torch.equal(found[0].counts, found[1].counts)


def test_what_is_refused() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    special = Vocabulary([*EVERY_BYTE, b"", b""], 256, {"<tool>": 257})
    for made, message in (
        (compile(regex("ab"), VOCABULARY).expand(), "finished tables"),
        (compile(json_schema(schema), VOCABULARY), r"must differ.*repeated_names"),
        (flat.automaton("ab"), "not every byte is a token"),
        (compile(special_token("<tool>") + regex("a"), special), "tokens, not only bytes"),
    ):
        with pytest.raises(ConstraintError, match=message):
            LazyDeviceAutomaton(made)
    good = compile(regex("ab*"), VOCABULARY)
    with pytest.raises(ConstraintError, match="no CUDA graph"):
        GraphedStep(LazyDeviceAutomaton(good))
    for wrong in ({"ahead": -1}, {"slots": 0}, {"overflow": "forget"}):
        with pytest.raises(ValueError, match=r"must|overflow is"):
            LazyDeviceAutomaton(good, **wrong)  # type: ignore[arg-type]
    device = LazyDeviceAutomaton(good)
    states = device.start_states(2)
    for bad in (states[:, 0], states[:, :2], states.long(), states.T.contiguous().T, states.to("meta")):
        with pytest.raises(StateError, match="states must be"):
            device.settle(bad)
    with pytest.raises(StateError, match="max_new_tokens must be"):
        device.settle(states, torch.zeros(3, dtype=torch.int32))
    with pytest.raises(TokenIdError, match="tokens must be"):
        device.advance(states, torch.zeros(2, 1, dtype=torch.int64))
    with pytest.raises(TokenLimitError, match="token_limits=True"):
        LazyDeviceAutomaton(good, token_limits=False).bitmask(states, 3)
    with pytest.raises(TokenLimitError, match="least number from here is 1"):
        device.start_states(1, 0)
    failed = compile(regex("(a|b){40}c"), VOCABULARY, Budget(states=9))
    with pytest.raises((BudgetExceeded, EmptyLanguageError)):
        device.add(failed)
    assert len(device) == 1 and device.bitmask(states).any()
    assert device.add(compile(regex("xy"), VOCABULARY)) == 1
    tokens = device.choose(torch.zeros(2, len(VOCABULARY)), device.start_states([1, 0]))
    assert tokens.tolist() == [120, 97]


def test_it_is_compiled() -> None:
    """The operators of torch keep the calls that have one; sampling waits for the host and says so."""
    device = LazyDeviceAutomaton(compile(regex("[ab]{3}"), VOCABULARY), ahead=0)
    states, logits = device.start_states(2), torch.randn(2, len(VOCABULARY))

    def steps(states: Any) -> Any:
        for _ in range(3):
            states = device.advance(states, device.step(logits, states)[0])
        return states

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = torch.compile(steps, backend="eager", fullgraph=True)(states)
    assert torch.equal(device.settle(compiled), device.settle(steps(states)))
