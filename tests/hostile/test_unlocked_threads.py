"""Objects that Python's lock would protect, used by several threads at once: what they give stays right, and nothing
crashes. Under a Python with its lock these tests show little; a free-threaded one runs the calls at the same time.
"""

from __future__ import annotations

import random
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable
from typing import Any

import pytest

import tokenfst.fst as fst
from tokenfst import _native, json_schema, regex
from tokenfst.automata.json_schema.documents.schema_texts import own_copy
from tokenfst.automata.json_schema.sets.strings import name_texts
from tokenfst.errors import TokenfstError

THREADS = 4


def at_once(work: Callable[[int], None], threads: int = THREADS) -> None:
    """Calls ``work`` with the number of each thread, in all of them at once; raises what one of them raised."""
    ready, errors = threading.Barrier(threads), list[BaseException]()

    def run(number: int) -> None:
        ready.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    started = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for each in started:
        each.start()
    for each in started:
        each.join()
    if errors:
        raise errors[0]


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"),
    reason="this Python has a lock that no module can do without",
)
def test_the_core_leaves_the_lock_off() -> None:
    shown = "import sys, tokenfst, tokenfst.fst; print(sys._is_gil_enabled())"
    assert (
        subprocess.run(
            [sys.executable, "-W", "error", "-c", shown], capture_output=True, text=True, check=True
        ).stdout
        == "False\n"
    )


def test_a_transducer_is_changed_and_read() -> None:
    machine = fst.VectorFst()
    start = machine.add_state()
    machine.set_start(start)

    def work(number: int) -> None:
        for step in range(300):
            if number % 2:
                state = machine.add_state()
                machine.add_arc(start, fst.Arc(number, step + 1, 0, state))
                machine.set_final(state)
            else:
                found = machine.copy()
                assert sum(found.num_arcs(state) for state in found.states()) >= found.num_arcs(start)
                found.connect()
                assert machine.num_arcs(start) <= 300 * THREADS

    at_once(work)
    arcs = sorted((arc.ilabel, arc.olabel) for arc in machine.arcs(start))
    assert arcs == [(number, step + 1) for number in range(1, THREADS, 2) for step in range(300)]
    assert machine.num_states() == 1 + 300 * THREADS // 2


def test_a_lazy_transducer_counts_while_it_works() -> None:
    word, letters = fst.accep("ab" * 200), fst.accep("a").union(fst.accep("b")).closure()
    lazy = fst.lazy.compose(word, letters, cache_bytes=2000)

    def work(number: int) -> None:
        if number:
            lazy.expand()
        else:
            for _ in range(2000):
                assert lazy.counts().named >= 0

    at_once(work)
    assert fst.isomorphic(lazy.expand(), fst.compose(word, letters, connect=False))


def test_names_are_kept_once_for_all_threads() -> None:
    names = [
        f"name {k} of test_names_are_kept_once_for_all_threads" for k in range(6000)
    ]  # more than are kept
    texts = name_texts("plain")

    def work(number: int) -> None:
        rng = random.Random(number)
        for _ in range(3000):
            name = rng.choice(names)
            assert texts.of(name).value == f'"{name}"'.encode()
        assert texts.without(frozenset(names[number : number + 3])) is not None

    at_once(work)


def test_a_walk_of_bytes() -> None:
    automaton = _native.ByteAutomaton(regex("(a|b)*a(a|b){7}").program().native(), 10_000, 1 << 28, 60.0)
    walk = _native.ByteWalk(automaton)

    def work(number: int) -> None:
        rng = random.Random(number)
        for _ in range(200):
            at = 0
            for _ in range(20):
                at = walk.advance(at, rng.choice(b"ab"))
                assert 0 <= at < len(walk)
                walk.accepting(at), walk.arcs(at), walk.memory

    at_once(work)
    assert len(walk) == 256  # a state for the last eight letters


def test_a_schema_changes_while_it_is_read() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {f"p{k}": {"type": "array", "items": {"enum": [k, "x"]}} for k in range(60)},
        "required": ["p1"],
    }
    over = threading.Event()

    def change() -> None:
        rng = random.Random(0)
        while not over.is_set():
            k = rng.randrange(60)
            schema["properties"].pop(f"p{k}", None)
            schema["properties"][f"p{k}"] = {
                "type": "array",
                "items": {"enum": [k, "x"]},
                "minItems": rng.randrange(3),
            }
            schema["properties"][f"q{rng.randrange(100_000)}"] = {"type": "string"}
            if len(schema["properties"]) > 300:
                schema["properties"] = {"p1": True}
            schema["required"][:] = ["p1"] * rng.randrange(3)

    changing = threading.Thread(target=change)
    changing.start()

    def work(_: int) -> None:
        for _ in range(20):
            try:
                json_schema(schema)
            except (TokenfstError, RuntimeError, KeyError):
                continue  # what it says meanwhile may be wrong, and a loop may see that the dict has changed

    try:
        at_once(work, 2)
    finally:
        over.set()
        changing.join()


def test_a_copy_of_a_document_is_its_own() -> None:
    shared = {"type": "string"}
    document: dict[str, Any] = {"a": shared, "b": [shared, [1, 2]], "c": (shared,), "d": 1}
    document["self"] = document
    copy = own_copy(document)
    assert copy["self"] is copy and copy["a"] is copy["b"][0] and copy["a"] is not shared
    assert copy["c"] is document["c"] and copy["b"] == document["b"] and copy["b"] is not document["b"]
    assert list(copy) == list(document)
    shared["type"] = "null"
    document["b"][1].append(3)
    assert copy["a"] == {"type": "string"} and copy["b"][1] == [1, 2]
    deep: Any = {}
    for _ in range(100_000):
        deep = [deep]
    copied = own_copy(deep)
    while deep:
        assert type(copied) is type(deep) and copied is not deep
        deep, copied = deep[0], copied[0]
