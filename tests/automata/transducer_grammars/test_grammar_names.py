"""pynini's names and operators: the same machines as pynini's, and one grammar under both imports."""

from __future__ import annotations

import math
import types
from pathlib import Path
from typing import Any

import pynini
import pytest
from pynini.lib import byte, pynutil, rewrite, utf8
from support.worlds.transducer_worlds import adopted, same

import tokenfst.grm as grm
from tokenfst import Budget
from tokenfst.errors import BudgetExceeded, FstArgError, FstIOError, FstOpError

PYNINI = types.SimpleNamespace(
    **{name: getattr(pynini, name) for name in grm.__all__ if hasattr(pynini, name)},
    insert=pynutil.insert, delete=pynutil.delete, add_weight=pynutil.add_weight, join=pynutil.join,
    one_top_rewrite=rewrite.one_top_rewrite, top_rewrites=rewrite.top_rewrites, matches=rewrite.matches,
    optimal_rewrites=rewrite.optimal_rewrites,
)  # fmt: skip

EXPRESSIONS: list[Any] = [
    lambda p: p.accep("ab") + "c",
    lambda p: "a" + p.accep("b"),
    lambda p: p.accep("a") | "b" | p.accep("ab", weight=1.5),
    lambda p: "x" | p.accep("a"),
    lambda p: (p.accep("a") | "b").star @ p.cross("ab", "c"),
    lambda p: (p.accep("a") | "b") - "b",
    lambda p: p.accep("ab").ques + p.accep("c").plus,
    lambda p: p.accep("a") ** 3,
    lambda p: p.accep("a") ** (1, 3),
    lambda p: p.accep("a") ** (2, ...),
    lambda p: p.closure("ab", 1, 2),
    lambda p: p.union("a", "b").closure(2),
    lambda p: p.union("a[98]", "\\[x\\]", "[BOS]b"),
    lambda p: p.cross("ab", "x") + p.insert("y", weight=0.5) + p.delete("z"),
    lambda p: p.add_weight("a", 2.0),
    lambda p: p.join(p.union("a", "b"), ","),
    lambda p: p.string_map([("a", "b"), ("b", "c", "2.5"), "c"]),
    lambda p: p.invert(p.cross("a", "bc")),
    lambda p: p.project(p.cross("a", "bc"), "output"),
    lambda p: p.optimize(p.union("ab", "ac", "ad")),
    lambda p: p.shortestpath(p.union(p.accep("a", weight=2), "b")),
    lambda p: p.determinize(p.union("ab", "ac")) + "d",
    lambda p: p.minimize(p.determinize(p.union("ab", "cb"))) | "x",
    lambda p: p.rmepsilon(p.accep("a") + "b"),
    lambda p: p.reverse(p.cross("ab", "c")),
    lambda p: p.push(p.accep("ab", weight=2), push_weights=True),
    lambda p: p.connect(p.topsort(p.arcsort("ab", "olabel"))),
    lambda p: p.arcmap(p.accep("a", weight=2), map_type="rmweight"),
    lambda p: p.prune(p.accep("a", weight=3) | "b", weight=1),
    lambda p: p.epsnormalize(p.cross("ab", "c")),
    lambda p: p.synchronize(p.cross("ab", "c")),
    lambda p: p.relabel_pairs("ab", [(97, 99)], [(98, 97)]),
    lambda p: p.leniently_compose(
        p.union(p.cross("a", "b"), p.cross("b", "a")), p.accep("a"), p.union("a", "b").star
    ),
    lambda p: p.leniently_compose(
        p.arcsort(p.union(p.cross("a", p.union("b", "c")), "b", "c"), "olabel"),
        p.optimize(p.union("b", "a")),
        p.union("a", "b", "c").star,
    ),
]


@pytest.mark.parametrize("at", range(len(EXPRESSIONS)))
def test_an_expression_means_the_same(at: int) -> None:
    ours, theirs = EXPRESSIONS[at](grm), adopted(EXPRESSIONS[at](PYNINI))
    symbols = {arc.ilabel for s in theirs.states() for arc in theirs.arcs(s)} | {
        arc.olabel for s in theirs.states() for arc in theirs.arcs(s)
    }
    small = [(label, k) for k, label in enumerate(sorted(symbols - {0}), 1)]
    for machine in (ours, theirs):
        machine.relabel_pairs(small, small)
    short = tuple(range(1, len(small) + 1))
    assert meanings(ours, short) == meanings(theirs, short)
    assert isinstance(ours, grm.Fst)
    assert len(small) > 2 or same(ours, theirs, 3)


def meanings(machine: Any, labels: tuple[int, ...]) -> dict[Any, float]:
    from reference.transducers.transducers import plain, relation

    found = relation(plain(machine), 2, False, labels)
    return {key: round(weight, 4) for key, weight in found.items()}


def grammar(pynini: Any) -> Any:
    """A cascade as pynini's users write it: only what ``pynini`` is differs."""
    sigma = pynini.union(*"abcdefghijklmnopqrstuvwxyz ").closure().optimize()
    vowel = pynini.union("a", "e", "i", "o", "u")
    plural = pynini.cdrewrite(pynini.cross("", "e"), pynini.union("s", "x", "z", "ch", "sh"), "s[EOS]", sigma)
    voice = pynini.cdrewrite(pynini.cross("y", "ie"), sigma - (sigma + vowel), "s[EOS]", sigma)
    return (pynini.union(*"abcdefghijklmnopqrstuvwxyz").plus + pynini.insert("s")) @ plural @ voice


def test_a_grammar_ports_by_its_import() -> None:
    ours, theirs = grammar(grm), grammar(PYNINI)
    for word in ("cat", "fox", "church", "spy", "toy", "buzz", "y"):
        assert grm.rewrites(word, ours) == rewrite.rewrites(word, theirs), word
    assert grm.one_top_rewrite("fox", ours) == "foxes"
    assert grm.matches("spy", "spies", ours) and not grm.matches("spy", "spys", ours)


def test_rewriting() -> None:
    rule = grm.string_map([("a", "x", 2.0), ("a", "y", 1.0), ("b", "z")])
    assert grm.top_rewrites("a", rule, 5) == ["y", "x"] and grm.top_rewrite("a", rule) == "y"
    assert sorted(grm.rewrites("a", rule)) == ["x", "y"] and grm.one_rewrite("b", rule) == "z"
    with pytest.raises(FstOpError, match="there are several outputs"):
        grm.one_rewrite("a", rule)
    with pytest.raises(FstOpError, match="to nothing"):
        grm.one_top_rewrite("c", rule)
    with pytest.raises(FstOpError, match="are as good"):
        grm.one_top_rewrite("a", grm.string_map([("a", "x"), ("a", "y")]))


def test_one_string_is_asked_for_without_listing_all() -> None:
    """An optional rule has 2^n outputs for n places; two of them show that there is not just one."""
    rule = grm.cdrewrite(grm.cross("a", "b"), "", "", grm.union("a", "b").star, mode="opt")
    with pytest.raises(FstOpError, match="are as good"):
        grm.one_top_rewrite("a" * 60, rule)
    with pytest.raises(FstOpError, match="several outputs"):
        grm.one_rewrite("a" * 60, rule)
    with pytest.raises(FstOpError, match="exactly one path"):
        grm.rewrite_lattice("a" * 60, rule).string()


def test_strings_and_files(tmp_path: Path) -> None:
    assert grm.accep("a[BOS][foo bar]\\]").string() == "a[BOS][foo][bar]]"
    assert grm.accep(grm.escape("[x]\\")).string() == "[x]\\"
    for wrong in ("a[b", "a]", "[0]"):
        with pytest.raises(FstArgError):
            grm.accep(wrong)
    path = tmp_path / "lines.tsv"
    path.write_text("a\tb\nc\td\t1.5\ne\n", encoding="utf-8")
    found = {
        (read, written): float(weight) for read, written, weight in grm.string_file(path).paths().items()
    }
    assert found == {("a", "b"): 0, ("c", "d"): 1.5, ("e", "e"): 0}
    path.write_bytes(b"\xff\n")
    with pytest.raises(FstIOError, match="no UTF-8"):
        grm.string_file(path)
    with pytest.raises(FstArgError, match="cycles"):
        grm.accep("a").star.paths()
    with pytest.raises(FstOpError, match="exactly one path"):
        grm.union("a", "b").string()
    with pytest.raises(FstArgError, match="0 is no limit"):
        grm.closure("a", 3, 2)
    with pytest.raises(FstArgError, match="no machine was given"):
        grm.union()


def test_functions_take_strings_and_change_no_machine() -> None:
    given = grm.accep("a") | "b"
    before = given.print()
    for name in ("arcsort", "connect", "minimize", "rmepsilon", "topsort", "determinize", "reverse", "push"):
        made = getattr(grm, name)(given, **({"allow_nondet": True} if name == "minimize" else {}))
        assert isinstance(made, grm.Fst) and given.print() == before
        assert isinstance(getattr(grm, name)("ab"), grm.Fst)
    assert grm.equal("a", "a") and not grm.equivalent("a", "b")
    assert grm.shortestdistance(grm.accep("a", weight=2), reverse=True)[0] == 2
    made = grm.replace([("[S]", "a[T]"), ("[T]", grm.accep("b") | "c")])
    assert sorted(made.paths().ostrings()) == ["a[T]b", "a[T]c"] or sorted(made.paths().istrings())
    with pytest.raises(FstArgError, match="is 2 labels, and one is due"):
        grm.replace([("ab", "a")])
    with pytest.raises(FstArgError, match="not a pair of a label and a machine"):
        grm.replace(["a"])


def test_priority_of_lenient_composition() -> None:
    """Inputs of the composition have its outputs only; the others those of the first machine."""
    first = grm.string_map([("a", "x"), ("a", "y"), ("b", "z")])
    made = grm.leniently_compose(first, grm.union("x", "w"), grm.union(*"ab").star)
    assert sorted((read, written) for read, written, _ in made.paths().items()) == [("a", "x"), ("b", "z")]


def test_paths_one_after_another() -> None:
    given: list[Any] = []
    for p in (grm, PYNINI):
        paths, found = p.string_map([("a", "x", "1"), ("a", "y"), ("b", "", "2")]).paths(), []
        while not paths.done():
            labels = [[label for label in side if label] for side in (paths.ilabels(), paths.olabels())]
            found.append((paths.istring(), paths.ostring(), labels, float(paths.weight())))
            paths.next()
        paths.reset()
        assert not paths.done() and paths.istring() == found[0][0]
        given.append(sorted(found))
    assert given[0] == given[1] and len(given[0]) == 3
    empty = grm.Fst().paths()
    assert empty.done()
    with pytest.raises(FstArgError, match="no current path"):
        empty.istring()


def test_the_current_token_type() -> None:
    for p in (grm, PYNINI):
        with p.default_token_type("utf8"):
            assert p.accep("äb").num_states() == 3
            assert (p.accep("ä") @ p.cross("ä", "öü")).string() == "öü"
            with p.default_token_type("byte"):
                assert p.accep("ä").num_states() == 3
            assert p.string_map([("ä", "é")]).paths().ostring() == "é"
        assert p.accep("ä").num_states() == 3
        rule = p.string_map([("ä", "ae")], input_token_type="utf8", output_token_type="byte")
        assert p.optimal_rewrites("ä", rule, input_token_type="utf8") == ["ae"]
    table = grm.SymbolTable("words")
    for word in ("<epsilon>", "one", "two"):
        table.add_symbol(word)
    rule = grm.string_map([("1", "one"), ("2", "two")], output_token_type=table)
    assert grm.top_rewrite("1", rule, output_token_type=table) == "one"
    with pytest.raises(TypeError, match="token_type"), grm.default_token_type("latin"):
        pass


def test_classes_of_bytes_are_pyninis() -> None:
    for ours, theirs in ((grm.byte, byte), (grm.utf8, utf8)):
        for name in ours.__all__:
            mine = getattr(ours, name)
            wanted = adopted(getattr(theirs, name))
            assert grm.equivalent(grm.determinize(mine.copy().rmepsilon()), grm.determinize(wanted)), name
            mine.closure()
            assert getattr(ours, name).num_states() < mine.num_states(), "a copy each time"
        assert {name for name in vars(theirs) if name.isupper() and not name.startswith("_")} == set(
            ours.__all__
        )
        with pytest.raises(AttributeError, match="no attribute 'NOTHING'"):
            getattr(ours, "NOTHING")  # noqa: B009  # the look-up is what is tested


def test_what_rewriting_refuses() -> None:
    rule = grm.string_map([("a", "x"), ("a", "y"), ("b", "z")])
    assert sorted(grm.optimal_rewrites("a", rule)) == ["x", "y"]
    for call in (grm.rewrite.rewrite_lattice, grm.rewrites, grm.top_rewrite, grm.optimal_rewrites):
        with pytest.raises(grm.rewrite.Error, match="to nothing"):
            call("c", rule)
    with pytest.raises(grm.rewrite.Error, match="to nothing"):
        grm.matches("c", "x", rule)
    dfa = grm.rewrite.lattice_to_dfa(grm.rewrite_lattice("a", rule), True)
    assert sorted(grm.rewrite.lattice_to_strings(dfa)) == ["x", "y"]
    with pytest.raises(FstOpError, match="as good"):
        grm.rewrite.lattice_to_one_top_string(dfa)
    assert grm.rewrite.lattice_to_top_string(dfa) in ("x", "y")


@pytest.mark.parametrize("arc_type", ["standard", "log64"])
@pytest.mark.parametrize("times", [(0, 1), (0, 2), (1, 3), (2, 2), (2, 5), (0, 0), (1, 0), (3, 0)])
def test_each_number_of_times_has_one_path(times: tuple[int, int], arc_type: str) -> None:
    """In semirings that add up, a second path for the same number would count twice."""
    for texts in (["a"], ["a", "ab"], ["a", "aa"], ["", "b"]):
        if "" in texts and times[1] == 0:
            continue  # its sum diverges
        weighted = [[text, text, str(0.5 + k)] for k, text in enumerate(texts)]
        ours = grm.string_map(weighted, arc_type=arc_type).closure(*times)
        theirs = pynini.string_map(weighted, arc_type=arc_type).closure(*times)
        for text in ("", "a", "b", "aa", "ab", "aab", "aaa", "aaaa", "abab", "aaaaaa"):
            found = [
                math.exp(-float(p.shortestdistance(machine, reverse=True)[machine.start()]))
                if machine.start() >= 0 else 0.0
                for p, machine in (
                    (grm, grm.accep(text, arc_type=arc_type) @ ours),
                    (pynini, pynini.accep(text, arc_type=arc_type) @ theirs),
                )
            ]  # fmt: skip
            assert found[0] == pytest.approx(found[1], rel=1e-6), (texts, text)
    once = grm.accep("a", arc_type=arc_type).closure(*times)
    if times[1]:
        assert list(once.paths().ostrings()) == list(pynini.accep("a").closure(*times).paths().ostrings())


def test_closures_of_many_times_keep_to_a_budget() -> None:
    assert grm.closure("ab", 0, 300).optimize().num_states() <= 601
    with pytest.raises(BudgetExceeded, match=r"it grew in (closure|concat|union)"):
        grm.closure("ab", 0, 10**9, budget=Budget(states=5000))
    with pytest.raises(BudgetExceeded, match=r"it grew in (closure|concat|union)"):
        grm.closure("ab", 10**9, budget=Budget(states=5000))


def test_machines_are_compared_as_in_pynini() -> None:
    for p in (grm, pynini):
        assert p.accep("ab") == p.accep("ab") and p.accep("ab") != p.accep("ac")
        with pytest.raises(TypeError, match="unhashable"):
            hash(p.accep("a"))
        with pytest.raises(p.FstOpError):
            p.union("a", "b").string()
        with pytest.raises(p.FstStringCompilationError):
            p.accep("[a")
    assert grm.accep("a") != grm.accep("a", arc_type="log") and grm.accep("a") != "a"


CROSSES: list[Any] = [
    lambda p: p.cross("abc", "xyz"),
    lambda p: p.cross("abc", "x"),
    lambda p: p.cross("", "abc"),
    lambda p: p.cross(p.union("abc", "abd"), p.union("x", "yz")),
    lambda p: p.cross(p.union("a", "").star, p.union("x", "y").plus),
    lambda p: p.cdrewrite(p.cross("a", "b"), "b", "c", p.union("a", "b", "c").star),
]


@pytest.mark.parametrize("at", range(len(CROSSES)))
def test_a_cross_product_is_not_larger_than_pyninis(at: int) -> None:
    ours, theirs = CROSSES[at](grm), CROSSES[at](pynini)
    assert ours.num_states() <= theirs.num_states()
    assert grm.randequivalent(ours, adopted(theirs), npath=40, max_length=10)
