"""Two threads over one automaton: their speed-up over one thread, and their waits for each other.

``python -m benchmarks.workers.threads [--runs N] [--save]``. Each line is one piece of work, done by one thread and
then shared by two. Cold work has a new automaton in each run. A line has the least seconds of one thread and of two,
their ratio, the CPU time of two threads divided by that of one, and the waits for locks of the core: their number,
their sum and the longest. The seconds depend on other work on the computer. CPU time hardly does; waits depend on
whether both threads run at once. The work of the first line shares nothing, so its speed-up is the best that this
computer can give.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Barrier, Thread
from time import perf_counter, thread_time
from typing import Any

import numpy as np

import tokenfst
from benchmarks.measuring.measure import Figure
from benchmarks.measuring.record import report
from tokenfst import Vocabulary, _native, allocate_token_bitmask, fill_bitmasks

TEKKEN = "mistral:tekken_240911"
BRANCHES, LISTS = 192, 24
ROWS = 128
"""The rows of a batch whose masks are known: more than 64, so that the call releases Python's lock."""

Texts = Sequence[Sequence[int]]
Job = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of one run: seconds by the clock, CPU seconds of the threads, and their waits for locks (their
    number, all seconds, the longest).
    """

    seconds: float
    cpu: float
    waits: tuple[int, float, float]


def measure(jobs: Sequence[Job]) -> Measured:
    """Run each job in a thread of its own, all at once, and measure them."""
    barrier, cpu = Barrier(len(jobs) + 1), [0.0] * len(jobs)

    def run(number: int) -> None:
        barrier.wait()
        begun = thread_time()
        jobs[number]()
        cpu[number] = thread_time() - begun

    threads = [Thread(target=run, args=(number,)) for number in range(len(jobs))]
    for thread in threads:
        thread.start()
    _native.lock_waits()
    barrier.wait()
    begun = perf_counter()
    for thread in threads:
        thread.join()
    seconds = perf_counter() - begun
    return Measured(seconds, sum(cpu), _native.lock_waits())


def walk(automaton: Any, texts: Texts) -> None:
    """Masks and advances along each text, with a matcher for each text, in one call that releases Python's lock."""
    longest = max(map(len, texts))
    bitmask = allocate_token_bitmask(longest + 1, len(automaton.vocabulary))
    for tokens in texts:
        nodes = len(tokens) + 1
        children, siblings = np.arange(1, nodes + 1), np.full(nodes, -1)
        children[-1] = -1
        matcher = automaton.matcher()
        matcher.traverse_draft_tree(children, siblings, np.array([0, *tokens]), bitmask)
        assert bitmask[nodes - 1].any()


def branches(encode: Callable[[str], list[int]]) -> tuple[dict[str, Any], Texts]:
    """A schema whose branches have no state in common after their first member, and a text for each."""
    options, texts = [], []
    for k in range(BRANCHES):
        members: dict[str, Any] = {
            "kind": {"const": f"k{k:02}"},
            f"name_{k}": {"type": "string", "maxLength": 20 + k},
            f"amount_{k}": {"type": "integer", "minimum": k, "maximum": 1000 + 7 * k},
            f"flags_{k}": {
                "type": "array",
                "items": {"enum": [f"red{k}", f"green{k}", f"blue{k}"]},
                "maxItems": 3,
            },
            f"when_{k}": {"type": "string", "format": "date-time"},
            f"code_{k}": {
                "type": "string",
                "pattern": f"^[A-Z]{{2,{3 + k % 5}}}-[0-9a-f]{{4}}(/[a-z ]+){{0,{2 + k}}}$",
            },
        }
        options.append(
            {
                "type": "object",
                "properties": members,
                "required": list(members),
                "additionalProperties": False,
            }
        )
        value = {
            "kind": f"k{k:02}",
            f"name_{k}": f"Zoë number {k}",
            f"amount_{k}": 500 + k,
            f"flags_{k}": [f"red{k}", f"blue{k}"],
            f"when_{k}": "2026-11-23T04:05:06Z",
            f"code_{k}": f"AB-{k:04x}/some words/and others",
        }
        texts.append(encode(json.dumps(value, ensure_ascii=False)))
    return {"anyOf": options}, texts


def nested(encode: Callable[[str], list[int]]) -> tuple[Any, Texts]:
    """A grammar with a stack (lists of lists) whose branches have names of their own, and a text for each branch."""
    rules, texts = [f"root ::= {' | '.join(f'list-{k}' for k in range(LISTS))}"], []
    for k in range(LISTS):
        rules.append(f'list-{k} ::= "[k{k:02}" ("," (list-{k} | name-{k}))* "]"')
        rules.append(f'name-{k} ::= "n{k}=" [a-z]{{1,{9 + k}}} ("/" [0-9a-f]{{1,{4 + k % 9}}})?')
        inner = f"[k{k:02},n{k}=some,[k{k:02},n{k}=words/{k:x},n{k}=more],n{k}=and/0f]"
        texts.append(encode(f"[k{k:02},{inner},n{k}=others,{inner}]"))
    return tokenfst.gbnf("\n".join(rules)), texts


def hashing(threads: int) -> list[Job]:
    """Work that shares nothing and releases Python's lock: the best speed-up that this computer can give now."""
    data = bytes(1 << 20)

    def digest() -> None:
        for _ in range(32 // threads):
            hashlib.sha256(data)

    return [digest for _ in range(threads)]


def warm_batch(vocabulary: Vocabulary, schema: Any, texts: Texts, threads: int) -> list[Job]:
    """Batches of known masks by the threads of ``fill_bitmasks`` itself: 100 calls for 1,024 rows."""
    automaton = tokenfst.compile(tokenfst.json_schema(schema), vocabulary)
    walk(automaton, texts)
    bitmask = allocate_token_bitmask(8 * ROWS, len(vocabulary))
    matchers = [automaton.matcher() for _ in range(8 * ROWS)]
    for row, matcher in enumerate(matchers):
        tokens = texts[row % len(texts)]
        assert matcher.accept_tokens(tokens[: 5 + row % (len(tokens) - 5)])

    def fill() -> None:
        for _ in range(100):
            fill_bitmasks(matchers, bitmask, threads=threads)

    return [fill]


def warm_masks(vocabulary: Vocabulary, schema: Any, texts: Texts, threads: int) -> list[Job]:
    """Batches of known masks: 2,000 calls for 128 rows, divided among the threads."""
    automaton = tokenfst.compile(tokenfst.json_schema(schema), vocabulary)
    walk(automaton, texts)
    jobs = []
    for _ in range(threads):
        matchers = []
        for row in range(ROWS):
            matcher = automaton.matcher()
            tokens = texts[row % len(texts)]
            matcher.accept_tokens(tokens[: 5 + row % (len(tokens) - 5)])
            matchers.append(matcher)
        bitmask = allocate_token_bitmask(ROWS, len(vocabulary))

        def fill(matchers: list[Any] = matchers, bitmask: Any = bitmask) -> None:
            for _ in range(2000 // threads):
                fill_bitmasks(matchers, bitmask, threads=1)

        jobs.append(fill)
    return jobs


def known_states(vocabulary: Vocabulary, schema: Any, texts: Texts, threads: int) -> list[Job]:
    """Masks and advances along texts, over known states."""
    automaton = tokenfst.compile(tokenfst.json_schema(schema), vocabulary)
    walk(automaton, texts)
    return [partial(walk, automaton, texts[number::threads] * 8) for number in range(threads)]


def cold_states(vocabulary: Vocabulary, constraint: Any, texts: Texts, threads: int) -> list[Job]:
    """Masks and advances over new states; each thread has texts of its own."""
    automaton = tokenfst.compile(constraint, vocabulary)
    walk(automaton, [texts[0][:3]])  # what all texts begin with, and the fragments of one
    return [partial(walk, automaton, texts[number::threads]) for number in range(threads)]


def cold_batch(vocabulary: Vocabulary, schema: Any, texts: Texts, threads: int) -> list[Job]:
    """New masks of a batch with a row for each branch, by the threads of ``fill_bitmasks`` itself."""
    automaton = tokenfst.compile(tokenfst.json_schema(schema), vocabulary)
    bitmask = allocate_token_bitmask(len(texts), len(vocabulary))
    batches = []
    for length in range(4, min(map(len, texts)), 3):
        batches.append([automaton.matcher() for _ in texts])
        for matcher, tokens in zip(batches[-1], texts, strict=True):
            assert matcher.accept_tokens(tokens[:length])

    def fill() -> None:
        for matchers in batches:
            fill_bitmasks(matchers, bitmask, threads=threads)

    return [fill]


def measured(make: Callable[[int], list[Job]], runs: int) -> Iterator[tuple[int, Measured]]:
    for _ in range(runs):
        for threads in (1, 2):
            jobs = make(threads)
            gc.collect()
            gc.disable()
            yield threads, measure(jobs)
            gc.enable()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", help="part of the name of the work to measure")
    parser.add_argument("--save", action="store_true", help="also write docs/data/threads.json")
    options = parser.parse_args()
    vocabulary = tokenfst.load_vocabulary(TEKKEN)
    schema, texts = branches(lambda text: vocabulary.encode_greedy(text.encode()))
    grammar, lists = nested(lambda text: vocabulary.encode_greedy(text.encode()))
    works: dict[str, Callable[[int], list[Job]]] = {
        "the computer: SHA-256": hashing,
        "warm masks, batches of 128": partial(warm_masks, vocabulary, schema, texts),
        "a warm batch of 1,024, its own threads": partial(warm_batch, vocabulary, schema, texts),
        "known states": partial(known_states, vocabulary, schema, texts),
        "cold states, a schema": partial(cold_states, vocabulary, tokenfst.json_schema(schema), texts),
        "cold states, a grammar with a stack": partial(cold_states, vocabulary, grammar, lists),
        f"cold batches of {BRANCHES}": partial(cold_batch, vocabulary, schema, texts),
    }
    works = {name: make for name, make in works.items() if not options.only or options.only in name}
    report("threads", figures(works, options.runs), keep=options.save)


def figures(works: dict[str, Callable[[int], list[Job]]], number: int) -> Iterator[Figure]:
    """The figures of each piece of work by one thread and by two: the least of the runs. The waits are those of the run
    that waited least.
    """
    for name, make in works.items():
        runs: dict[int, list[Measured]] = {1: [], 2: []}
        for threads, run in measured(make, number):
            runs[threads].append(run)
        one, two = (min(runs[threads], key=lambda run: run.seconds) for threads in (1, 2))
        cpu = min(run.cpu for run in runs[2]) / min(run.cpu for run in runs[1])
        waits, waited, longest = min((run.waits for run in runs[2]), key=lambda waits: waits[1])
        yield Figure(name, "one thread", one.seconds, runs=number)
        yield Figure(name, "two threads", two.seconds, runs=number)
        yield Figure(name, "speed-up", one.seconds / two.seconds, runs=number, unit="x")
        yield Figure(name, "CPU time", cpu, runs=number, unit="x")
        yield Figure(name, "waits", waits, unit="count")
        yield (
            Figure(name, "waited in all", waited)
            if waits
            else Figure(name, "waited in all", None, note="none")
        )
        yield (
            Figure(name, "longest wait", longest)
            if waits
            else Figure(name, "longest wait", None, note="none")
        )


if __name__ == "__main__":
    main()
