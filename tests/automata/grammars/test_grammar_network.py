"""Rule networks: they accept what the grammar means, and their pictures show what they are."""

from __future__ import annotations

import itertools
import random
import re
import shutil
from pathlib import Path

import pytest

from reference.expressions import expressions
from reference.grammars import grammars as slow
from reference.grammars.random_grammars import random_body
from tokenfst import Language, regex
from tokenfst.automata.characters.utf8 import single_characters, utf8_dfa
from tokenfst.automata.expressions.expression import (
    EMPTY,
    EPSILON,
    Expr,
    Op,
    byte_range,
    call,
    concat,
    literal,
    optional,
    repeat,
    union,
)
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.grammars.network import Network, network
from tokenfst.automata.languages.display.readable import character_class, readable
from tokenfst.automata.notations.bundled import bundled_grammar, bundled_grammars
from tokenfst.automata.notations.gbnf import gbnf
from tokenfst.automata.notations.lark_syntax import lark_grammar
from tokenfst.errors import DrawingError

WORDS = [bytes(word) for n in range(6) for word in itertools.product(b"ab", repeat=n)]
LEAVES = [literal(b"a"), literal(b"b"), literal(b"ab"), EPSILON, (regex("(a|b)*") - regex("b+")).expr]


def accepts(networks: dict[str, Network], start: str, word: bytes) -> bool:
    """A recursive transition network by definition: the least sets of places at which each rule, entered at
    some place, can end.
    """
    ends: dict[tuple[str, int], set[int]] = {
        (name, at): set() for name in networks for at in range(len(word) + 1)
    }
    changed = True
    while changed:
        changed = False
        for (name, at), known in ends.items():
            part = networks[name]
            seen = {(0, at)}
            frontier = [(0, at)]
            for state, place in frontier:
                for arc in part.arcs:
                    if arc.source == state:
                        for after in step(arc.label, word, place, ends):
                            if (arc.target, after) not in seen:
                                seen.add((arc.target, after))
                                frontier.append((arc.target, after))
            found = {place for state, place in seen if state in part.accepting}
            changed = changed or not found <= known
            known |= found
    return len(word) in ends[start, 0]


def step(label: Expr, word: bytes, place: int, ends: dict[tuple[str, int], set[int]]) -> set[int]:
    if label.op is Op.CALL:
        assert isinstance(label.value, str)
        return set(ends[label.value, place])
    return {end for end in range(place, len(word) + 1) if expressions.matches(label, word[place:end])}


def check(seed: int, words: list[bytes]) -> int:
    rng = random.Random(seed)
    names = ["s", "t"][: rng.randint(1, 2)]
    rules = {name: random_body(rng, names, rng.randint(1, 3), LEAVES) for name in names}
    networks = {name: network(name, body) for name, body in rules.items()}
    wanted = [slow.accepts(rules, "s", word) for word in words]
    assert [accepts(networks, "s", word) for word in words] == wanted, seed
    for part in networks.values():
        check_shape(part)
    return sum(wanted)


def check_shape(part: Network) -> None:
    """Every state lies on a way from the start to acceptance, and no edge is there twice."""
    assert len({(arc.source, arc.target, id(arc.label)) for arc in part.arcs}) == len(part.arcs)
    for forward in (True, False):
        reached = {0} if forward else set(part.accepting)
        for _ in range(part.num_states):
            for arc in part.arcs:
                source, target = (arc.source, arc.target) if forward else (arc.target, arc.source)
                reached |= {target} if source in reached else set()
        if part.accepting:
            assert reached == set(range(part.num_states))


@pytest.mark.parametrize("block", range(4))
def test_networks_accept_what_the_rules_mean(block: int) -> None:
    counts = [check(block * 1000 + seed, WORDS[:31]) for seed in range(25)]
    assert any(counts) and 0 in counts


@pytest.mark.soak
@pytest.mark.parametrize("block", range(8))
def test_networks_accept_what_the_rules_mean_soak(block: int) -> None:
    for seed in range(60):
        check(100_000 + block * 1000 + seed, WORDS)


def test_networks_are_small() -> None:
    listing = concat(
        literal(b"["),
        optional(concat(call("x"), repeat(concat(literal(b","), call("x"))))),
        literal(b"]"),
    )
    part = network("list", listing)
    assert (part.num_states, len(part.arcs)) == (5, 6)
    choice = union(concat(literal(b"a"), call("x")), concat(literal(b"b"), call("x")), call("y"))
    assert network("choice", choice).num_states == 3  # what follows a and b is one state
    assert network("counted", repeat(call("x"), 2, 4)).num_states == 5


def test_parts_without_calls_are_one_edge() -> None:
    number = regex(r"-?[0-9]+(\.[0-9]+)?").expr
    part = network("n", number)
    assert [arc.label for arc in part.arcs] == [number] and part.num_states == 2
    assert network("e", EPSILON) == Network("e", 1, frozenset({0}), ())
    assert network("0", EMPTY) == Network("0", 1, frozenset(), ())


def test_dead_ends_are_not_drawn() -> None:
    part = network("s", Expr(Op.UNION, (Expr(Op.CONCAT, (call("x"), EMPTY)), call("y"))))
    assert [arc.label.value for arc in part.arcs] == ["y"] and part.num_states == 2


def test_deep_and_wide_bodies() -> None:
    body = call("x")
    for _ in range(1500):
        body = union(concat(body, literal(b"")), EPSILON)
    assert network("deep", body).num_states == 2
    for large in (
        union(*(repeat(concat(call("x"), call("y")), 50, 50) for _ in range(50))),
        repeat(repeat(call("x"), 1000, 1000), 1000, 1000),
        repeat(concat(call("x"), call("y")), 0, 10**9),
        union(*(concat(literal(b"%d" % n), call("x")) for n in range(30_000))),
        concat(*(optional(call(f"x{n}")) for n in range(1500))),
    ):
        with pytest.raises(DrawingError, match=r"'large'.*max_states"):
            network("large", large)


# --- pictures -----------------------------------------------------------------------------------------

LISTS = 'root ::= "[" (item ("," item)*)? "]"\nitem ::= root | [a-z]+ | "x"'


def test_one_frame_for_each_rule() -> None:
    dot = gbnf(LISTS).draw().dot
    assert re.findall(r"subgraph (cluster_\d+) \{\n    label=\"(\w+)\"", dot) == [
        ("cluster_1", "item"),
        ("cluster_0", "root"),
    ]
    assert dot.count("penwidth=2") == 1 and dot.count("shape=doublecircle") == 2
    assert dot.count('"start 0" -> 0;') == 1 and dot.count('"start 1" -> 5;') == 1
    assert '<td border="1" style="rounded" bgcolor="#e6eef8">item</td>' in dot
    assert '<td>"["</td>' in dot and "<td>[a-z]+</td>" in dot
    assert dot == gbnf(LISTS).draw().dot


def test_what_is_ignored_is_a_dot() -> None:
    dot = lark_grammar('start: "a" start | "b"\n%ignore " "').draw().dot
    assert (
        '<td>·</td><td border="1" style="rounded" bgcolor="#e6eef8">start</td>' in dot
        and 'label="%ignore ·"' in dot
    )
    assert "%ignore<" not in dot


def test_terminals_are_shown_as_they_were_written() -> None:
    dot = lark_grammar('start: "(" start ")" | NAME\nNAME: /(?!if\\b)[a-z&]+/\n    | "<>"i\n').draw().dot
    assert '<td>/(?!if\\b)[a-z&amp;]+/ | "&lt;&gt;"i</td>' in dot
    imported = lark_grammar("%import common.INT -> N\nstart: N start | N\n").draw().dot
    assert "<td>[0-9]+</td>" in imported


def test_hostile_names_and_words() -> None:
    name = 'x"</td>\\\n\x00&]]>'
    grammar = Grammar.from_rules({name: union(concat(literal(b'\x00\xff<&"'), call(name)), EPSILON)}, name)
    picture = grammar.draw()
    assert "\x00" not in picture.dot and "&lt;/td&gt;" in picture.dot
    if shutil.which("dot") is not None:
        pytest.importorskip("graphviz")
        assert b"<svg" in picture.render()


def test_many_labels_are_cut() -> None:
    words = union(call("s"), *(literal(b"w%d" % n) for n in range(40)))
    dot = Grammar.from_rules({"s": words}, "s").draw().dot
    assert "… (28 more)" in dot and dot.count("<tr>") == 14


def test_too_many_states() -> None:
    with pytest.raises(DrawingError, match="at most 10 are drawn"):
        bundled_grammar("json").draw(max_states=10)
    with pytest.raises(DrawingError, match="max_states"):
        gbnf('root ::= ("a" root){1,9000} | "b"').draw()


@pytest.mark.parametrize("name", bundled_grammars())
def test_bundled_grammars_are_drawn(name: str, tmp_path: Path) -> None:
    grammar = bundled_grammar(name)
    picture = grammar.draw(tmp_path / "x.dot", max_states=400)
    assert (tmp_path / "x.dot").read_text() == picture.dot
    assert picture.dot.count("subgraph") == len(grammar.rules)
    if shutil.which("dot") is not None:
        pytest.importorskip("graphviz")
        svg = picture.render().decode()
        assert all(svg.count(f">{rule}<") for rule in grammar.rules if not rule.startswith("%"))


# --- text ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "shown"),
    [
        (r"-?(0|[1-9][0-9]*)(\.[0-9]+)?", r"-?(0|[1-9][0-9]*)(\.[0-9]+)?"),
        (r"[a-c]{2,}|x{3}|y{1,2}", r"[a-c]{2,}|x{3}|y{1,2}"),
        (r'[^"\\]+', r'[^"\\]+'),
        (r"(?s).", "."),
        (r"(ab|)c", "(ab)?c"),
        ("(?i:and|or)", '"and"i|"or"i'),
        ("(?i:key)+", '"key"i+'),
        ("(?i:a)", "[Aa]"),
        ("a b\t[ \n]", r"a␣b\t[\n␣]"),
        ("é[à-ü]", "é[à-ü]"),
        (r"\(a\|b\)", r"\(a\|b\)"),
    ],
)
def test_expressions_read_like_patterns(pattern: str, shown: str) -> None:
    assert readable(regex(pattern).expr) == shown


def test_expressions_beyond_patterns() -> None:
    assert readable((regex("ab|b") & ~regex("b")).expr) == "(ab|b)&~b"
    assert readable(byte_range(0x80, 0xBF)) == r"[\x80-\xbf]"
    assert readable(EMPTY) == "∅" and readable(union(EPSILON, EPSILON)) == "()?"
    assert readable(concat(call("x"), literal(b"\xff"))) == r"⟨x⟩\\xff"
    assert readable(Language.from_dfa(regex("ab|ba").determinize()).expr) == "⟨automaton, 4 states⟩"
    assert "(?<=…)" in readable(regex(r"\w+(?<!x)y").expr, 300)


def test_long_texts_are_cut() -> None:
    wide = union(*(literal(b"word%d" % n) for n in range(50_000)))
    assert len(readable(wide, 40)) <= 40
    doubled: Expr = literal(b"ab")
    for _ in range(3000):
        doubled = concat(doubled, doubled)
    assert len(readable(doubled, 40)) <= 40


def test_character_ranges_invert_utf8_automata() -> None:
    rng = random.Random(5)
    for _ in range(60):
        points = sorted(rng.sample([*range(0x20, 0x900), 0xFFFF, 0x10000, 0x1F600, 0x10FFFF], 6))
        ranges = tuple((low, high) for low, high in zip(points[::2], points[1::2], strict=True))
        ranges = tuple(pair for pair in ranges if pair[0] <= pair[1])
        found = single_characters(utf8_dfa(ranges))
        assert found is not None
        assert {c for low, high in found for c in range(low, high + 1)} == {
            c for low, high in ranges for c in range(low, high + 1)
        }
    assert single_characters(utf8_dfa(())) is None
    assert single_characters(regex("ab").determinize()) is None
    assert character_class(((0x2028, 0x2028),)) == '"\\u2028"'
