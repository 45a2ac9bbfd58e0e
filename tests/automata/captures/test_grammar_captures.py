"""Captures of grammars: by trying all ways one after the other, and what attributes of Lark's rules capture."""

from __future__ import annotations

import itertools
import pickle
import random

import pytest

from reference.expressions.captures import captures as captures_of
from tokenfst import (
    Budget,
    Grammar,
    Language,
    bundled_grammar,
    gbnf,
    json_schema,
    lark_grammar,
    regex,
    template,
)
from tokenfst.automata.captures.trees import Choice, Group, Leaf, Reading, Repeat, Sequence, Tree
from tokenfst.automata.captures.values import Captures
from tokenfst.automata.expressions.expression import (
    EPSILON,
    Expr,
    call,
    concat,
    literal,
    optional,
    repeat,
    union,
)
from tokenfst.errors import BudgetExceeded, ConstraintError

WORDS = [bytes(word) for n in range(7) for word in itertools.product(b"ab", repeat=n)]


def texts(found: Captures) -> dict[str, list[str]]:
    return {name: [each.text for each in captured] for name, captured in found.items()}


def random_body(rng: random.Random, depth: int, guarded: bool) -> Expr:
    """A body over a and b; ``guarded``: it begins with a letter, so that no rule begins with itself."""
    if guarded:
        return concat(literal(rng.choice([b"a", b"b"])), random_body(rng, depth - 1, False))
    kind = rng.randrange(6) if depth > 0 else 0
    if kind == 0:
        return literal(rng.choice([b"a", b"b", b"ab"]))
    if kind == 1:
        return call(rng.choice(["start", "x", "y"]))
    if kind == 2:
        return repeat(random_body(rng, depth - 1, True), rng.randrange(2), rng.choice([None, 2]))
    if kind == 3:
        return union(*(random_body(rng, depth - 1, rng.random() < 0.5) for _ in range(2)))
    return concat(*(random_body(rng, depth - 1, rng.random() < 0.5) for _ in range(2)))


@pytest.mark.parametrize("seed", range(6))
def test_random_grammars_by_trying_one_way_after_the_other(seed: int) -> None:
    rng = random.Random(seed)
    compared = 0
    while compared < 25:
        bodies = {
            name: union(random_body(rng, 3, True), random_body(rng, 2, True)) for name in ("start", "x", "y")
        }
        grammar = Grammar.from_rules(bodies, "start").capturing("x", w="y")
        if grammar.is_empty() or grammar.reading is None or grammar.reading.refusal:
            continue
        compared += 1
        for word in rng.sample(WORDS, 15):
            if not grammar.accepts(word):
                continue
            expected = captures_of(grammar.reading, word)
            assert expected is not None
            found = {
                name: [(each.begin, each.end) for each in spans]
                for name, spans in grammar.captures(word).items()
            }
            assert found == {
                name: [(begin, end) for each, begin, end in expected if each == name]
                for name in grammar.capture_names
            }
            for cut in range(len(word)):  # a beginning has a reading, and what is closed lies within it
                for captured in grammar.captures(word[:cut], prefix=True).values():
                    assert all(each.end is None or each.end <= cut for each in captured)


def nullable_body(rng: random.Random, depth: int) -> Expr:
    """A body in which anything may be empty."""
    kind = rng.randrange(7) if depth > 0 else rng.randrange(2)
    if kind == 0:
        return rng.choice([literal(b"a"), literal(b"b"), EPSILON])
    if kind == 1:
        return call(rng.choice(["start", "x", "y"]))
    if kind < 4:
        return repeat(nullable_body(rng, depth - 1), rng.randrange(3), rng.choice([None, 2, 3]))
    if kind == 4:
        return union(nullable_body(rng, depth - 1), nullable_body(rng, depth - 1))
    return concat(nullable_body(rng, depth - 1), nullable_body(rng, depth - 1))


@pytest.mark.parametrize("seed", range(4))
def test_repeated_rules_that_may_be_empty_and_call_themselves(seed: int) -> None:
    """Of rules that call themselves each call has repetitions of its own: an empty one in the inner call does not end
    that of the outer call.
    """
    rng = random.Random(500 + seed)
    compared = too_many = 0
    while compared < 40:
        bodies = {
            "start": nullable_body(rng, 3),
            "x": optional(concat(literal(b"a"), nullable_body(rng, 2))),
            "y": nullable_body(rng, 2),
        }
        grammar = Grammar.from_rules(bodies, "start", budget=Budget(states=5000)).capturing("x", w="y")
        if grammar.is_empty() or grammar.reading is None or grammar.reading.refusal:
            continue
        if not all(isinstance(leaf, Expr) for leaf in leaves_of(grammar.reading)):
            continue
        for word in filter(grammar.accepts, rng.sample(WORDS[:31], 8)):
            try:
                captured = grammar.captures(word)
            except BudgetExceeded:  # too many ways to read it
                too_many += 1
                break
            expected = captures_of(grammar.reading, word)
            assert expected is not None
            compared += 1
            found = {name: [(each.begin, each.end) for each in spans] for name, spans in captured.items()}
            assert found == {
                name: [(begin, end) for each, begin, end in expected if each == name]
                for name in grammar.capture_names
            }
    assert too_many < 10


def leaves_of(reading: Reading) -> list[object]:
    """The words of all leaves of a reading."""
    found: list[object] = []
    stack: list[Tree] = [reading.start, *reading.rules.values()]
    while stack:
        match stack.pop():
            case Leaf(words):
                found.append(words)
            case Sequence(parts) | Choice(parts):
                stack += parts
            case Repeat(part) | Group(_, part):
                stack.append(part)
    return found


def test_an_empty_repetition_of_an_inner_call_does_not_end_that_of_the_outer_one() -> None:
    grammar = gbnf('root ::= x x? x?\nx ::= ("a" root)?').capturing("x")
    for word in ("", "a", "aa", "aaa"):
        assert grammar.reading is not None
        expected = captures_of(grammar.reading, word.encode())
        assert expected is not None
        assert [("x", each.begin, each.end) for each in grammar.captures(word)["x"]] == [*expected]


@pytest.mark.parametrize(
    "rules",
    [
        'root ::= root "," item | item\nitem ::= a*\na ::= "a"',
        'root ::= item | root "," item\nitem ::= "a"*',
        'root ::= item | root comma item\nitem ::= "a" item | ""\ncomma ::= ","',
        'root ::= list\nlist ::= more item | item\nmore ::= list ","\nitem ::= "a"*',
    ],
)
def test_items_of_a_list_that_begins_with_itself_may_be_empty(rules: str) -> None:
    grammar = gbnf(rules)
    inner = "item" if '"a" item' not in rules else None
    grammar = grammar.capturing("item")
    for word in map("".join, itertools.chain(*(itertools.product("a,", repeat=n) for n in range(7)))):
        found = texts(grammar.captures(word))["item"]
        items = word.split(",")
        if inner is None:  # an item calls itself: its last letters are items, too
            items = [item[place:] for item in items for place in range(len(item) + 1)]
        assert found == items, word


def test_groups_of_a_list_that_begins_with_itself_may_be_empty() -> None:
    item = "/(?P<item>a*)/"
    grammar = lark_grammar(f'start: start "," {item} | {item}')
    for word in map("".join, itertools.chain(*(itertools.product("a,", repeat=n) for n in range(6)))):
        assert texts(grammar.captures(word)) == {"item": word.split(",")}


def test_what_may_be_empty_in_front_of_a_rule_that_begins_with_itself() -> None:
    hidden = gbnf('root ::= x root "," | "."\nx ::= "a"?')
    assert hidden.accepts("a.,") and hidden.accepts(".,")
    with pytest.raises(ConstraintError, match="the captures of the rule 'x' cannot be told: it may be empty"):
        hidden.capturing("x").captures("a.,")
    grammar = lark_grammar('start: /(?P<x>a?)/ start "," | "."')
    with pytest.raises(ConstraintError, match="the captures of the group 'x' cannot be told"):
        grammar.captures("a.,")
    with pytest.raises(ConstraintError, match="the temperature of the rule 'x' cannot be told"):
        lark_grammar('start: x start "," | "."\nx[temperature=0.5]: /a?/')


def test_nested_and_repeated_rules() -> None:
    grammar = gbnf(
        'root ::= item ("," item)*\nitem ::= key "=" value\nkey ::= [a-z]+\nvalue ::= [0-9]+ | "(" root ")"'
    ).capturing("key", inner="value")
    assert texts(grammar.captures("a=1,b=(c=2)")) == {
        "key": ["a", "b", "c"],
        "inner": ["1", "(c=2)", "2"],
    }
    begun = grammar.captures("a=1,b=(c", prefix=True)
    assert [(each.text, each.is_open) for each in begun["inner"]] == [("1", False), ("(c", True)]
    with pytest.raises(ConstraintError, match="the rule 'nothing' to capture is not defined"):
        grammar.capturing("nothing")
    assert texts(pickle.loads(pickle.dumps(grammar)).captures("a=1")) == {"key": ["a"], "inner": ["1"]}


def test_rules_that_begin_with_themselves() -> None:
    rules = 'root ::= root "," item | item\nitem ::= [a-z]+'
    assert texts(gbnf(rules).capturing("item").captures("a,bb,c")) == {"item": ["a", "bb", "c"]}
    with pytest.raises(ConstraintError, match="'root' cannot be told: it begins with itself"):
        gbnf(rules).capturing("root").captures("a,b")


def test_attributes_of_rules() -> None:
    grammar = lark_grammar(r"""
        start: pair ("," pair)*
        pair[capture]: key ":" value
        key[capture="name"]: /[a-z]+/
        value: /(?P<int>[0-9]+)(?:\.(?P<frac>[0-9]+))?/
        %ignore " "
    """)
    assert grammar.capture_names == ("pair", "name", "int", "frac")
    assert texts(grammar.captures(" ab : 12.5 , c:3 ")) == {
        "pair": ["ab : 12.5", "c:3"],  # what is ignored after a rule does not belong to it
        "name": ["ab", "c"],
        "int": ["12", "3"],
        "frac": ["5"],
    }


def test_ends_as_soon_as_they_can() -> None:
    grammar = lark_grammar(r"""
        start: with_suffix outer_suffix outer_lazy
        with_suffix[capture, suffix="<end>", stop_capture="stop"]: /.*/
        outer_suffix[capture]: inner
        inner[capture, suffix=/<end>/]: /.*/
        outer_lazy[capture]: with_lazy
        with_lazy[capture, lazy]: /.*<end>/
    """)
    assert texts(grammar.captures("foo<end>b<end><end>")) == {
        "with_suffix": ["foo"],
        "stop": ["<end>"],
        "outer_suffix": ["b<end>"],
        "inner": ["b"],
        "outer_lazy": ["<end>"],
        "with_lazy": ["<end>"],
    }
    assert not grammar.accepts("foo<end>b<end><end>c<end>")
    assert lark_grammar("start[lazy]: /[0-9]+/").accepts("1")
    assert not lark_grammar("start[lazy]: /[0-9]+/").accepts("12")
    assert lark_grammar("start[lazy]: /.*/").accepts("") and not lark_grammar("start[lazy]: /.*/").accepts(
        "a"
    )


def test_parts_of_other_constraints() -> None:
    schema = json_schema({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
    grammar = lark_grammar('start: "call " call\ncall[capture]: @f', grammars={"f": schema})
    assert texts(grammar.captures('call {"a": 3}')) == {"call": ['{"a": 3}']}
    both = regex("(?P<x>a+)") + gbnf('root ::= "(" root ")" | [0-9]').capturing("root") + regex("(?P<y>!*)")
    assert both.capture_names == ("x", "root", "y")
    assert texts(both.captures("aa(3)!!")) == {"x": ["aa"], "root": ["(3)", "3"], "y": ["!!"]}
    assert texts((both & regex("(?P<all>.*)")).captures("a3")) == {
        "x": ["a"],
        "root": ["3"],
        "y": [""],
        "all": ["a3"],
    }
    assert texts(both.truncate(2).captures("a(3)"))["root"] == ["(3)", "3"]
    assert texts(both.repeat(2).captures("a3!a4"))["root"] == ["3", "4"]
    filled = template("x{a}y{b}", a=regex("(?P<first>.)."), b=gbnf('root ::= "(" root ")" | "z"'))
    assert texts(filled.captures("x12y(z)")) == {"a": ["12"], "first": ["1"], "b": ["(z)"]}


def test_captures_of_what_has_no_words() -> None:
    nothing = Language.empty() + template("{x}", x=gbnf('root ::= "a" root "b" | ""')) & regex("a*")
    assert nothing.is_empty() and nothing.capture_names == () and nothing.reading is None
    assert (nothing & regex("(?P<y>a)")).is_empty() and template("{x}", x=nothing).is_empty()


def test_json_rules() -> None:
    json = bundled_grammar("json").capturing("member", "NUMBER")
    assert texts(json.captures('{"a": [1, {"b": 2.5}], "c" : 3 }')) == {
        "member": ['"a": [1, {"b": 2.5}]', '"b": 2.5', '"c" : 3'],
        "NUMBER": ["1", "2.5", "3"],
    }


def test_many_ways_are_bounded() -> None:
    rules = {
        "start": union(
            *(concat(literal(b"a"), call("start"), literal(end)) for end in (b"c", b"d")), call("x")
        ),
        "x": literal(b"b"),
    }
    grammar = Grammar.from_rules(rules, "start", budget=Budget(states=2000)).capturing("x")
    with pytest.raises(BudgetExceeded, match="states"):
        grammar.captured([b"a" * 60], whole=None)
