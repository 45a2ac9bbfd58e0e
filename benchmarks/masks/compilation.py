"""From the text of a regex to masks: the first mask; all masks ahead of time; the artifact, saved and loaded."""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
from collections.abc import Iterator
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter

import tokenfst
from benchmarks.measuring import patterns
from benchmarks.measuring.libraries import Library, Outlines, World, version
from benchmarks.measuring.measure import OURS, Figure, figure, sample
from tokenfst import Vocabulary

OUTLINES_LIMIT = 180.0
"""The seconds after which the construction of outlines-core's Index is stopped."""

TEKKEN = "mistral:tekken_240911"


def first_mask(world: World) -> Iterator[Figure]:
    """From source to the first mask, for patterns that allow few tokens; each run has another pattern."""
    what = "first mask from source: [0-9]{3}-[0-9]{N}"

    def run(library: Library, pattern: str) -> None:
        library.walk(library.compile(pattern)).fill()

    for library in (world.ours, *world.peers("xgrammar", "llguidance", "outlines-core")):
        sources = iter([(library, f"[0-9]{{3}}-[0-9]{{{n}}}") for n in range(1, 100)])
        runs = 5 if library.name == "outlines-core" else 51
        seconds = sample(run, runs=runs, setup=sources.__next__, warm_up=2)
        yield figure(what, library.name, seconds, target=1e-3 if library is world.ours else None)


def object_regex(world: World) -> Iterator[Figure]:
    """A JSON object of 20 properties, compiled and expanded, beside what the peers compute ahead of time."""
    pattern = patterns.object_with_20_properties()
    what = f"20-property object regex ({tokenfst.regex(pattern).size().states} byte states), all masks"

    def ours(vocabulary: Vocabulary) -> None:
        tokenfst.compile(tokenfst.regex(pattern), vocabulary).expand()

    cold = sample(ours, setup=lambda: (fresh(world.vocabulary),), runs=7)
    warm = sample(ours, setup=lambda: (world.vocabulary,), runs=7)
    yield figure(what, OURS, cold, note="vocabulary never used before; its trie built, no fragment")
    yield figure(what, f"{OURS}, again", warm, note="fragments known from an earlier constraint")
    for peer in world.peers("xgrammar"):
        yield figure(what, peer.name, sample(peer.compile, setup=lambda: (pattern,), runs=5), at_least=1)
    yield _outlines_index(what, pattern)


def object_regex_lazily(world: World) -> Iterator[Figure]:
    """The same object without expansion, from source to the first mask."""

    def run(library: Library) -> None:
        walk = library.walk(library.compile(patterns.object_with_20_properties()))
        walk.fill()

    for library in (world.ours, *world.peers("llguidance")):
        seconds = sample(partial(run, library), runs=21)
        yield figure("20-property object regex, source to first mask", library.name, seconds)


def artifact(world: World) -> Iterator[Figure]:
    """The expanded automaton of the same regex as a file."""
    automaton = world.ours.compile(patterns.object_with_20_properties()).expand()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "object.safetensors"
        saving = sample(automaton.save, setup=lambda: (path,), runs=11)
        size = path.stat().st_size
        loading = sample(lambda: tokenfst.load(path, world.vocabulary), runs=101)
        yield Figure("artifact of the 20-property object: size", OURS, size, size, unit="bytes", target=2e6)
        yield figure("artifact of the 20-property object: load", OURS, loading, target=2e-3)
        yield figure("artifact of the 20-property object: save", OURS, saving)


def vocabulary(world: World) -> Iterator[Figure]:
    """The time that a process spends once for the vocabulary."""
    what = "Tekken, once per process: file to ready"

    def ours() -> None:
        assert tokenfst.load_vocabulary(TEKKEN).native.trie_nodes

    yield figure(what, OURS, sample(ours, runs=3), note="read, native tables, trie")
    for peer in world.peers("xgrammar", "llguidance", "outlines-core"):
        seconds = sample(lambda peer=peer: type(peer)(world.vocabulary), runs=3)
        yield figure(
            what, peer.name, seconds, note="from token bytes in memory; reading the file not counted"
        )


def fresh(old: Vocabulary) -> Vocabulary:
    """A copy of a vocabulary that has its trie, and nothing else that was computed for it."""
    special = old.special_tokens or old.special_token_ids
    new = Vocabulary(old.tokens, old.eos_token_ids, special, name=old.name)
    assert new.native.trie_nodes
    return new


def _outlines_index(what: str, pattern: str) -> Figure:
    """The figure of outlines-core's Index, made in a process of its own because it may take minutes and gigabytes."""
    if version("outlines-core") is None:
        return Figure(what, "outlines-core", None, note="not installed")
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_build_outlines_index, args=(sender, pattern))
    child.start()
    begin = perf_counter()
    while child.is_alive() and perf_counter() - begin < OUTLINES_LIMIT and not receiver.poll(0.5):
        pass
    found = receiver.recv() if receiver.poll() else None
    child.kill()
    child.join()
    if found is None:
        return Figure(what, "outlines-core", None, note=f"no result in {OUTLINES_LIMIT:.0f} s")
    seconds, megabytes = found
    return figure(what, "outlines-core", seconds, at_least=20, note=f"peak memory {megabytes} MB")


def _build_outlines_index(sender: Connection, pattern: str) -> None:
    library = Outlines(tokenfst.load_vocabulary(TEKKEN))
    seconds = sample(library.compile, setup=lambda: (pattern,), runs=2, warm_up=0)
    sender.send((seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024))
