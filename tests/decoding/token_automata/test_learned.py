"""Learned state: what one automaton has found out, others take up; their masks are those of an automaton made anew."""

from __future__ import annotations

import multiprocessing
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reference.grammars.random_grammars import random_grammar
from reference.json.json_schema_worlds import schemas
from reference.tokens.learned import every_mask, masks_along
from reference.tokens.small_automata import small_automaton
from tests.decoding.artifacts.test_program_artifacts import BYTES, CLASSES, CONSTRAINTS, SMALL
from tests.support.worlds.token_worlds import random_vocabulary
from tokenfst import Budget, TokenAutomaton, Vocabulary, compile, gbnf, json_schema, regex
from tokenfst.decoding.artifacts import artifact
from tokenfst.decoding.token_automata import learned as learning
from tokenfst.errors import (
    ArtifactCorruptError,
    ArtifactError,
    ArtifactVocabularyError,
    BudgetExceeded,
    TokenfstError,
)

pytestmark = pytest.mark.filterwarnings("ignore::tokenfst.errors.UnspellableWarning")
PLAIN = [seed for seed in range(20) if seed % 3]  # without a limit of tokens
SLOW_WORLD = [HealthCheck.too_slow, HealthCheck.filter_too_much]


def composed(name: str) -> TokenAutomaton:
    return compile(CONSTRAINTS[name], SMALL, token_classes=CLASSES if name == "token class" else None)


def walk(automaton: TokenAutomaton, seeds: Any) -> list[Any]:
    return [masks_along(automaton, random.Random(seed), 10, None if seed % 3 else 12) for seed in seeds]


def again(automaton: TokenAutomaton) -> TokenAutomaton:
    data = automaton.serialize(learned=True)
    return TokenAutomaton.of_artifact(
        artifact.parse("it", data), "it", automaton.vocabulary, automaton.budget
    )


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_what_is_loaded_starts_warm(name: str, tmp_path: Path) -> None:
    worker = composed(name)
    walk(worker, range(10))
    worker.save(tmp_path / "it", learned=True)
    warm = TokenAutomaton.load(tmp_path / "it", SMALL)
    assert artifact.read(tmp_path / "it").version == 5
    assert walk(warm, reversed(range(10))) == walk(composed(name), reversed(range(10)))
    assert warm.stats().masks_composed == 0
    assert warm.stats().masks_recalled > 0
    assert walk(warm, range(10, 20)) == walk(composed(name), range(10, 20))


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_what_two_workers_learned_is_one(name: str) -> None:
    one, other = composed(name), composed(name)
    walk(one, range(5)), walk(other, range(5, 10))
    merged, reverse = again(one), again(other)
    merged.learn(other), reverse.learn(one)
    assert merged.serialize(learned=True) == reverse.serialize(learned=True)
    assert walk(merged, range(10)) == walk(composed(name), range(10))
    assert merged.stats().masks_composed == 0
    data = merged.serialize(learned=True)
    merged.learn(one), merged.learn(merged)
    assert merged.serialize(learned=True) == data


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_the_same_knowledge_has_the_same_bytes(name: str, tmp_path: Path) -> None:
    forward, backward = composed(name), composed(name)
    walk(forward, range(10)), walk(backward, reversed(range(10)))
    data = forward.serialize(learned=True)
    assert data == backward.serialize(learned=True) == again(forward).serialize(learned=True)


def test_tables_do_not_depend_on_what_was_learned() -> None:
    worker = composed("schema")
    walk(worker, range(5))
    assert again(worker).serialize() == composed("schema").serialize()
    expanded = worker.expand()
    assert artifact.parse("it", expanded.serialize(learned=True)).version == 1


# --- small worlds -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_every_mask_of_small_worlds(seed: int) -> None:
    """Three workers: one walks, one walks elsewhere, the third has both and is asked for everything."""
    one, other = small_automaton(random.Random(seed)), small_automaton(random.Random(seed))
    if not one.native.spellable:
        return
    walk(one, range(3)), walk(other, range(3, 6))
    merged = again(one)
    merged.learn(other)
    depth = 1 if len(one.vocabulary) > 60 else 2
    assert every_mask(merged, depth) == every_mask(small_automaton(random.Random(seed)), depth)


def of_grammar(seed: int) -> TokenAutomaton | None:
    rng = random.Random(seed)
    try:
        return compile(
            random_grammar(rng), random_vocabulary(rng, letters=True), Budget(states=500, seconds=60)
        )
    except TokenfstError:
        return None


def check_grammars(seeds: range) -> tuple[int, int]:
    """How many masks were known when they were saved, and how many of those were composed again."""
    known = composed_again = 0
    for seed in seeds:
        one, other, cold = (of_grammar(seed) for _ in range(3))
        if one is None or other is None or cold is None:
            continue
        try:
            walk(one, [1, 2]), walk(other, [4, 5])
            warm = again(one)
            walk(warm, [2])
            known += warm.stats().masks_recalled
            composed_again += warm.stats().masks_composed
            warm.learn(other)
            assert walk(warm, [1, 2, 4, 5, 7]) == walk(cold, [1, 2, 4, 5, 7]), seed
        except BudgetExceeded:
            continue
    return known, composed_again


def test_random_grammars() -> None:
    known, composed_again = check_grammars(range(25))
    assert known > 30
    assert composed_again < known / 2  # several stacks may come in another order: docs/decisions/009


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1000, 3000, 250))
def test_many_random_grammars(first: int) -> None:
    check_grammars(range(first, first + 250))


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1000, 5000, 500))
def test_many_small_worlds(first: int) -> None:
    for seed in range(first, first + 500):
        test_every_mask_of_small_worlds(seed)


@settings(max_examples=15, deadline=None, suppress_health_check=SLOW_WORLD)
@given(schemas(), st.sampled_from(["schema", "any"]), st.integers(0, 1 << 16))
def test_random_schemas(schema: Any, order: Any, seed: int) -> None:
    try:
        constraint = json_schema(schema, property_order=order)
        one, other, cold = (compile(constraint, SMALL) for _ in range(3))
    except TokenfstError:
        return
    walk(one, [seed, seed + 1]), walk(other, [seed + 2])
    # Of stacks and marks bounds on the tokens left depend on what was asked before, with learning and without.
    plain = [
        each for each in range(seed, seed + 4) if each % 3 or not (one.is_pushdown or one.native.has_marks)
    ]
    warm = again(one)
    assert walk(warm, plain[:2]) == walk(cold, plain[:2])
    warm = again(one)
    walk(warm, [seed + 1, seed])
    # Several stacks may come in another order, and then their state is not found again: docs/decisions/009.
    assert warm.stats().masks_composed == 0 or one.is_pushdown
    warm.learn(other)
    assert walk(warm, plain) == walk(cold, plain)


def test_a_real_vocabulary(tekken: Vocabulary) -> None:
    member = {"type": "object", "properties": {"name": {"type": "string", "pattern": "^[A-Z][a-z ]*$"}}}
    texts = ['{"members": [{"name": "Ada"}, {"name": "Eve of ur"}], "unique": ["a", "b"]}', '{"unique": []}']
    schema = {
        "type": "object",
        "properties": {
            "members": {"type": "array", "items": member},
            "unique": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        },
    }
    grammar = gbnf('root ::= "(" root ")" | word (" " root)?\nword ::= [a-z]+ | "\\"" [^"]* "\\""')
    for constraint, spelled in (json_schema(schema), texts), (grammar, ['("two words" and (more))']):
        worker, cold = compile(constraint, tekken), compile(constraint, tekken)
        assert [follow(worker, text) for text in spelled] == [follow(cold, text) for text in spelled]
        warm = again(worker)
        assert [follow(warm, text) for text in spelled] == [follow(cold, text) for text in spelled]
        assert warm.stats().masks_composed == 0
        assert warm.stats().masks_recalled > 5


def follow(automaton: TokenAutomaton, text: str) -> list[bytes]:
    mask, found = np.zeros((1, (len(automaton.vocabulary) + 31) // 32), np.int32), []
    matcher = automaton.matcher()
    for token in automaton.vocabulary.encode_greedy(text.encode()):
        matcher.fill_next_token_bitmask(mask)
        found.append(mask.tobytes())
        assert matcher.accept_token(token)
    return found


def test_lengths_are_known_as_well() -> None:
    worker = composed("schema")
    assert worker.distance() == again(worker).distance()
    rows = worker.native.learned()["learned_states"]
    assert (rows[:, 5] < 1 << 31).any()


def test_threads_walk_while_others_learn() -> None:
    one, other = composed("two stacks"), composed("two stacks")
    walk(other, range(1, 30))
    wanted = walk(composed("two stacks"), PLAIN)
    with ThreadPoolExecutor(4) as pool:
        walks = [pool.submit(walk, one, PLAIN) for _ in range(3)]
        learning_too = [pool.submit(one.learn, other) for _ in range(5)]
        saved = [pool.submit(one.serialize, learned=True) for _ in range(5)]
        assert all(each.result() == wanted for each in walks)
        assert all(each.result() is None for each in learning_too)
    assert saved[-1].result()
    assert walk(again(one), PLAIN) == wanted


# --- files ----------------------------------------------------------------------------------------------------


def test_update_makes_a_file_and_adds_to_it(tmp_path: Path) -> None:
    first, second = composed("schema"), composed("schema")
    walk(first, [1])
    first.update(tmp_path / "it")
    before = artifact.read(tmp_path / "it").arrays["learned_states"].shape[0]
    walk(second, range(4, 8))
    second.update(tmp_path / "it")
    assert artifact.read(tmp_path / "it").arrays["learned_states"].shape[0] > before
    assert walk(second, [1]) == walk(composed("schema"), [1])  # it has learned, too
    warm = TokenAutomaton.load(tmp_path / "it", SMALL)
    walk(warm, [1, *range(4, 8)])
    assert warm.stats().masks_composed == 0
    assert [path.name for path in tmp_path.iterdir()] == ["it"]


def test_a_file_of_a_program_is_updated(tmp_path: Path) -> None:
    worker = composed("two stacks")
    worker.save(tmp_path / "it", expand=False)
    walk(worker, range(5))
    worker.update(tmp_path / "it")
    assert artifact.read(tmp_path / "it").version == 5


def update_often(path: Path, seeds: range) -> None:
    worker = composed("schema")
    for seed in seeds:
        walk(worker, [seed])
        worker.update(path)


def test_processes_that_update_one_file_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    parts = [range(4), range(4, 8), range(8, 12)]
    workers = [context.Process(target=update_often, args=(tmp_path / "it", part)) for part in parts]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    warm = TokenAutomaton.load(tmp_path / "it", SMALL)
    walk(warm, range(12))
    assert warm.stats().masks_composed == 0


def test_what_another_release_learned_is_left_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = composed("regex")
    walk(worker, range(5))
    monkeypatch.setattr(learning, "release", lambda: "tokenfst 0.0.1")
    data = worker.serialize(learned=True)
    monkeypatch.undo()
    cold = TokenAutomaton.of_artifact(artifact.parse("it", data), "it", SMALL)
    assert walk(cold, range(5)) == walk(worker, range(5))
    assert cold.stats().masks_recalled == 0


def test_others_are_refused(tmp_path: Path) -> None:
    worker, other = composed("regex"), composed("schema")
    other.save(tmp_path / "other", learned=True)
    with pytest.raises(ArtifactError, match="is of another constraint"):
        worker.learn(tmp_path / "other")
    with pytest.raises(ArtifactError, match="is of another constraint"):
        worker.update(tmp_path / "other")
    with pytest.raises(ArtifactVocabularyError):
        worker.learn(compile(regex("a"), Vocabulary([*BYTES, b""], 256)))
    with pytest.raises(ArtifactError, match="not expanded"):
        worker.learn(worker.expand())
    with pytest.raises(ArtifactError, match="not expanded"):
        worker.expand().learn(worker)
    with pytest.raises(ArtifactError, match="no file"):
        worker.learn(tmp_path / "none")
    with pytest.raises(ArtifactError, match="cannot open the folder"):
        worker.update(tmp_path / "none" / "it")
    with pytest.raises(TypeError):
        worker.learn(3)  # type: ignore[arg-type]
    (tmp_path / "other").write_bytes(b"")
    with pytest.raises(ArtifactError, match="empty"):
        worker.update(tmp_path / "other")


# --- false ones ------------------------------------------------------------------------------------------------


def changed(name: str, edit: Any, seeds: Any = range(6)) -> artifact.Artifact:
    worker = composed(name)
    walk(worker, seeds)
    found = artifact.parse("it", worker.serialize(learned=True))
    arrays = {key: value.copy() for key, value in found.arrays.items()}
    edit(arrays)
    data = artifact.serialize(
        arrays, SMALL.fingerprint, len(SMALL), "x", None, found.token_names, learning.release()
    )
    return artifact.parse("it", data)


def test_a_mask_that_cannot_be_is_composed() -> None:
    """One that allows nothing, or ends no text that is complete; others are false, and walked."""

    def every(arrays: dict[str, Any]) -> None:
        arrays["learned_states"][:, 4] = len(arrays["learned_mask_row"])

    for name in ("regex", "schema", "unique items"):
        false = TokenAutomaton.of_artifact(changed(name, every), "it", SMALL)
        wander(false, random.Random(3))

    def none(arrays: dict[str, Any]) -> None:
        arrays["learned_states"][:, 4] = 1

    false = TokenAutomaton.of_artifact(changed("regex", none), "it", SMALL)
    assert walk(false, range(9)) == walk(composed("regex"), range(9))
    assert false.stats().masks_recalled == 0


def put(name: str, place: Any, value: int) -> Any:
    def edit(arrays: dict[str, Any]) -> None:
        arrays[name][place] = value

    return edit


BROKEN = [
    ("one stack", put("learned_answers", (0, 5), 0), "learned answers lead to masks"),
    ("one stack", put("learned_answers", (-1, 5), 1 << 31), "learned answers lead to masks"),
    ("one stack", put("learned_answers", (0, 5), 99), "learned answers lead to masks"),
    ("one stack", put("learned_answers", (-1, 0), 1 << 20), "learned answers lead to masks"),
    ("one stack", put("learned_answers", (slice(None), slice(0, 5)), 0), "learned answers ascend"),
    ("one stack", put("learned_states", (0, 4), 1 << 20), "learned states have masks"),
    ("one stack", put("learned_states", (0, 4), (1 << 31) + 99), "learned states have masks"),
    ("one stack", put("learned_states", (slice(None), 4), 1 << 31), "each learned state has its own tree"),
    ("one stack", put("learned_states", slice(None), 0), "learned states ascend"),
    ("regex", put("learned_flip_offsets", -1, 1 << 20), "flip ranges cover"),
    ("regex", put("learned_flips", 0, 1 << 20), "flips are token ids"),
    ("regex", put("learned_mask_row", -1, 9), "masks have rows that exist"),
]


@pytest.mark.parametrize(("name", "edit", "says"), BROKEN)
def test_broken_rules(name: str, edit: Any, says: str) -> None:
    with pytest.raises(ArtifactCorruptError, match=says):
        TokenAutomaton.of_artifact(changed(name, edit), "it", SMALL)


def test_a_deep_tree_is_bounded() -> None:
    """A chain of look-ups as long as the file: what is held of it is counted."""
    depth = 4_000

    def edit(arrays: dict[str, Any]) -> None:
        arrays["learned_nodes"] = np.zeros(depth, np.uint32)
        rows = np.zeros((2 * depth, 6), np.uint32)
        rows[:, 0] = np.arange(2 * depth) // 2
        rows[:, 1] = np.arange(2 * depth) % 2
        rows[::2, 5] = 1
        rows[1::2, 5] = (np.arange(1, depth + 1)) + (1 << 31)
        rows[-1, 5] = 1
        arrays["learned_answers"] = rows
        arrays["learned_states"] = np.array([[9, 9, 9, 9, 1 << 31, 0, 0]], np.uint32)

    deep = TokenAutomaton.of_artifact(changed("one stack", edit), "it", SMALL, Budget(bytes=16 << 20))
    walk(deep, range(3))
    with pytest.raises(BudgetExceeded, match="what was learned"):
        deep.serialize(learned=True)


@pytest.mark.parametrize("name", ["one stack", "two stacks", "schema", "unique items", "token class"])
def test_any_numbers_under_a_right_digest(name: str) -> None:
    """Whatever stands there, it is refused or walked: the process lives, and writes what it has."""
    rng = random.Random(name)
    ends = {"refused": 0, "walked": 0}
    worker = composed(name)
    walk(worker, range(6))
    good = artifact.parse("it", worker.serialize(learned=True))
    for _ in range(60):
        arrays = {key: value.copy() for key, value in good.arrays.items()}
        for _ in range(rng.randint(1, 3)):
            keys = [key for key, value in arrays.items() if value.size and key.startswith("learned")]
            array = arrays[rng.choice(keys)].reshape(-1)
            near = int(array[place := rng.randrange(array.size)]) + rng.choice([-1, 1, 2])
            value = rng.choice([0, 1, near, rng.randrange(1 << 8), (1 << 31) + rng.randrange(9)])
            array[place] = value % (1 << 32)
        data = artifact.serialize(
            arrays, SMALL.fingerprint, len(SMALL), "x", None, good.token_names, good.learned_by
        )
        try:
            found = TokenAutomaton.of_artifact(artifact.parse("it", data), "it", SMALL)
        except ArtifactCorruptError:
            ends["refused"] += 1
            continue
        try:
            wander(found, rng)
        except TokenfstError:
            continue
        found.learn(worker)
        found.serialize(learned=True)
        ends["walked"] += 1
    assert ends["refused"] and ends["walked"], ends


def wander(automaton: TokenAutomaton, rng: random.Random) -> None:
    """A walk that goes on where a false mask allows what no step does."""
    mask = np.zeros((1, (len(SMALL) + 31) // 32), np.int32)
    for limit in (None, rng.randrange(1, 20)):
        matcher = automaton.matcher(limit)
        for _ in range(10):
            matcher.fill_next_token_bitmask(mask)
            tokens = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            assert (tokens < len(SMALL)).all()
            if (
                matcher.is_terminated()
                or not len(tokens)
                or not matcher.accept_token(int(rng.choice(tokens)))
            ):
                break


def test_damage_is_refused(tmp_path: Path) -> None:
    worker, rng = composed("schema"), random.Random(5)
    walk(worker, range(6))
    data = worker.serialize(learned=True)
    for _ in range(100):
        broken = bytearray(data)
        if rng.random() < 0.5:
            del broken[rng.randrange(len(data)) :]
        else:
            broken[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        (tmp_path / "it").write_bytes(broken)
        with pytest.raises(ArtifactError):
            TokenAutomaton.load(tmp_path / "it", SMALL)
        with pytest.raises(ArtifactError):
            worker.learn(tmp_path / "it")
    assert worker.serialize(learned=True) == data
