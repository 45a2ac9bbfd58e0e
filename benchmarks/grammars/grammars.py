"""Context-free grammars beside llguidance and xgrammar: the first mask, a step, deep nesting, long documents, memory.

A grammar is written in two notations: Lark's (tokenfst, llguidance) and EBNF (xgrammar). Both texts have the same
language, and each is written in the way with which its libraries are fastest. For xgrammar this means right recursion
instead of ``*`` over groups, and white space where it occurs, without a rule of its own (JSON strings as ``(...)*``
make its masks a thousand times slower).

A *pass* walks a matcher along all documents of a grammar. In the first pass masks are computed for the first time
after compilation; in the second pass all of them are known. Each repeat compiles the grammar again from its text.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from time import perf_counter_ns, thread_time_ns
from typing import Any

import numpy as np

from benchmarks.masks.compilation import fresh
from benchmarks.masks.length import BLOCK, curve, step_times
from benchmarks.measuring.libraries import GrammarLibrary, Tokenfst, Walk, World
from benchmarks.measuring.measure import OURS, Figure, clock_overhead, figure, quiet, sample

TOKENS = 3_000
"""The number of tokens of all documents of a grammar together."""

REPEATS = 5
DEPTH = 1_000
LONG = 10_000
PEERS = ("llguidance", "xgrammar")


@dataclass(frozen=True, slots=True)
class Grammar:
    """A grammar in both notations. ``document`` makes a text of it, of any size, from a random generator."""

    name: str
    lark: str
    ebnf: str
    document: Callable[[random.Random], str]

    def documents(self, world: World, total: int = TOKENS) -> list[list[int]]:
        """The token sequences of random documents, with ``total`` tokens together."""
        rng, found, left = random.Random(self.name), [], total
        while left > 0:
            tokens = world.vocabulary.encode_greedy(self.document(rng).encode())[:left]
            found.append(tokens)
            left -= len(tokens)
        return found


# --- the grammars -----------------------------------------------------------------------------------------


def _json_value(rng: random.Random, depth: int) -> Any:
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        return rng.choice([1, -2.5, 1e10, "hello world", 'say "é"\n', True, None, "", rng.randrange(10**6)])
    if kind < 0.65:
        return [_json_value(rng, depth - 1) for _ in range(rng.randint(0, 5))]
    keys = ("name", "value", "x y", f"key{rng.randrange(10)}", f"id-{rng.randrange(10**4)}")
    return {rng.choice(keys): _json_value(rng, depth - 1) for _ in range(rng.randint(1, 5))}


def _json_text(rng: random.Random) -> str:
    values = [_json_value(rng, 5) for _ in range(8)]
    return json.dumps(values, indent=rng.choice((None, 2)), ensure_ascii=rng.random() < 0.5)


JSON = Grammar(
    "JSON",
    r"""start: ws value ws
value: object | array | STRING | NUMBER | "true" | "false" | "null"
object: "{" ws [pair ("," ws pair)*] "}"
pair: STRING ws ":" ws value ws
array: "[" ws [value ws ("," ws value ws)*] "]"
STRING: /"([^"\\\x00-\x1F]|\\(["\\\/bfnrt]|u[0-9a-fA-F]{4}))*"/
NUMBER: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/
ws: /[ \t\n\r]*/
""",
    r"""root ::= [ \t\n\r]* value [ \t\n\r]*
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" [ \t\n\r]* ("}" | pair members)
members ::= "}" | "," [ \t\n\r]* pair members
pair ::= string [ \t\n\r]* ":" [ \t\n\r]* value [ \t\n\r]*
array ::= "[" [ \t\n\r]* ("]" | value [ \t\n\r]* elements)
elements ::= "]" | "," [ \t\n\r]* value [ \t\n\r]* elements
string ::= "\"" characters
characters ::= "\"" | [^"\\\x00-\x1F] characters | "\\" escape characters
escape ::= ["\\/bfnrt] | "u" [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F]
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [+-]? [0-9]+)?
""",
    _json_text,
)


def _sum(rng: random.Random, depth: int) -> str:
    part = partial(_sum, rng, depth - 1)
    if depth == 0 or rng.random() < 0.3:
        return rng.choice((str(rng.randrange(1000)), f"{rng.randrange(100)}.{rng.randrange(1000)}"))
    kind = rng.randrange(4)
    if kind == 3:
        return f"-{part()}"
    return (f"({part()} + {part()})", f"{part()} * {part()}", f"({part()}-{part()}) / {part()}")[kind]


ARITHMETIC = Grammar(
    "arithmetic",
    r"""start: sum
sum: product (("+" | "-") product)*
product: atom (("*" | "/") atom)*
atom: NUMBER | "-" atom | "(" sum ")"
NUMBER: /[0-9]+(\.[0-9]+)?/
%ignore /[ \t]+/
""",
    r"""root ::= [ \t]* sum
sum ::= product more_products
more_products ::= "" | [+\-] [ \t]* product more_products
product ::= atom more_atoms
more_atoms ::= "" | [*/] [ \t]* atom more_atoms
atom ::= number [ \t]* | "-" [ \t]* atom | "(" [ \t]* sum ")" [ \t]*
number ::= [0-9]+ ("." [0-9]+)?
""",
    lambda rng: " + ".join(_sum(rng, 5) for _ in range(12)),
)


def _list(rng: random.Random, depth: int) -> str:
    words = ("define", "lambda", "x", "list->vector", "+", "*", "<=", "null?", "set-car!", "accumulator")
    items = [rng.choice(words)]
    for _ in range(rng.randint(0, 4)):
        atoms = (rng.choice(words), str(rng.randint(-99, 9999)), '"a text, quoted"')
        items.append(_list(rng, depth - 1) if depth and rng.random() < 0.5 else rng.choice(atoms))
    return f"({rng.choice((' ', ' ', chr(10) + '  ')).join(items)})"


EXPRESSIONS = Grammar(
    "S-expressions",
    r"""start: list
list: "(" [item (SPACE item)*] ")"
item: list | SYMBOL | NUMBER | STRING
SYMBOL: /[a-z*+<=>\/][a-z0-9*+<=>\/?!-]*/
NUMBER: /-?[0-9]+/
STRING: /"[^"\\\x00-\x1F]*"/
SPACE: /[ \n]+/
""",
    r"""root ::= list
list ::= "(" (")" | item items)
items ::= ")" | [ \n] [ \n]* item items
item ::= list | symbol | number | string
symbol ::= [a-z*+<=>/] [a-z0-9*+<=>/?!\-]*
number ::= "-"? [0-9]+
string ::= "\"" [^"\\\x00-\x1F]* "\""
""",
    lambda rng: f"({' '.join(_list(rng, 5) for _ in range(8))})",
)


def _query(rng: random.Random, depth: int) -> str:
    names = ("id", "name", "created_at", "customer_id", "total", "x1")

    def operand() -> str:
        return rng.choice((rng.choice(names), str(rng.randrange(10**5)), "'it is text'"))

    def test(left: int) -> str:
        kind = rng.random()
        if left and kind < 0.3:
            return f"({test(left - 1)} {rng.choice(('AND', 'OR'))} {test(left - 1)})"
        if left and kind < 0.4:
            return f"NOT {test(left - 1)}"
        if depth and kind < 0.55:
            return f"{rng.choice(names)} IN ({_query(rng, depth - 1)})"
        return f"{operand()} {rng.choice(('=', '<>', '<', '>='))} {operand()}"

    columns = ", ".join(rng.choice((rng.choice(names), "COUNT(id)", "MAX(total)")) for _ in range(3))
    text = f"SELECT {rng.choice(('*', columns))} FROM {rng.choice(('orders', 'customers'))}"
    if rng.random() < 0.8:
        text += f" WHERE {' AND '.join(test(3) for _ in range(rng.randint(1, 3)))}"
    return text + rng.choice(("", f" ORDER BY {rng.choice(names)} DESC", f" LIMIT {rng.randrange(100)}"))


SQL = Grammar(
    "SQL",
    r"""start: query
query: "SELECT " columns " FROM " NAME [" WHERE " condition] [" ORDER BY " NAME [" DESC"]] [" LIMIT " INTEGER]
columns: "*" | column (", " column)*
column: NAME | ("COUNT" | "MIN" | "MAX" | "SUM") "(" NAME ")"
condition: conjunction (" OR " conjunction)*
conjunction: test (" AND " test)*
test: "(" condition ")" | "NOT " test | operand COMPARISON operand | NAME " IN (" query ")"
operand: NAME | INTEGER | TEXT
NAME: /[a-z_][a-z0-9_]*/
INTEGER: /[0-9]+/
TEXT: /'[^'\x00-\x1F]*'/
COMPARISON: / (=|<>|<=?|>=?) /
""",
    r"""root ::= query
query ::= "SELECT " columns " FROM " name (" WHERE " condition)? (" ORDER BY " name " DESC"?)? (" LIMIT " [0-9]+)?
columns ::= "*" | column more_columns
more_columns ::= "" | ", " column more_columns
column ::= name | ("COUNT" | "MIN" | "MAX" | "SUM") "(" name ")"
condition ::= conjunction more_conjunctions
more_conjunctions ::= "" | " OR " conjunction more_conjunctions
conjunction ::= test more_tests
more_tests ::= "" | " AND " test more_tests
test ::= "(" condition ")" | "NOT " test | operand comparison operand | name " IN (" query ")"
operand ::= name | [0-9]+ | "'" [^'\x00-\x1F]* "'"
name ::= [a-z_] [a-z0-9_]*
comparison ::= " " ("=" | "<>" | "<" "="? | ">" "="?) " "
""",
    lambda rng: _query(rng, 2),
)

GRAMMARS = (JSON, ARITHMETIC, EXPRESSIONS, SQL)


# --- the figures ------------------------------------------------------------------------------------------


def grammars(world: World) -> Iterator[Figure]:
    """The figures of first masks from the text of a grammar, and of steps along documents."""
    for grammar in GRAMMARS:
        yield from _first_mask(world, grammar)
        yield from _passes(world, grammar)


def _first_mask(world: World, grammar: Grammar) -> Iterator[Figure]:
    what = f"{grammar.name}: grammar text to first mask"

    def run(library: GrammarLibrary) -> None:
        library.walk(library.compile_grammar(grammar.lark, grammar.ebnf)).fill()

    for library in _libraries(world):
        seconds = sample(partial(run, library), runs=21 if library.name == "xgrammar" else 51, warm_up=2)
        yield figure(what, library.name, seconds, at_least=1 if library.name == "llguidance" else None)


def _passes(world: World, grammar: Grammar) -> Iterator[Figure]:
    documents = grammar.documents(world)
    overhead = clock_overhead()
    found: dict[str, list[list[list[float]]]] = {}
    for library in _libraries(world):
        found[library.name] = [
            walk_documents(compiled(library, grammar), documents, overhead) for _ in range(REPEATS)
        ]
    new = f"{OURS}, vocabulary never used before"
    unused = (Tokenfst(fresh(world.vocabulary)) for _ in range(REPEATS))
    found[new] = [walk_documents(compiled(library, grammar), documents, overhead)[:1] for library in unused]
    count = f"{sum(map(len, documents)):,} tokens in {len(documents)} documents"
    summaries: dict[str, Callable[[list[float]], Any]] = {
        "p50": partial(np.quantile, q=0.5),
        "p99": partial(np.quantile, q=0.99),
        "mean": fmean,
    }
    for number, which in enumerate(("first pass (new masks)", "second pass (known masks)")):
        for name, summary in summaries.items():
            what = f"{grammar.name}: mask + advance, {which}, {name} of {count}"
            for who, repeats in found.items():
                if number < len(repeats[0]):
                    seconds = [float(summary(passes[number])) for passes in repeats]
                    yield figure(what, who, seconds, **_targets(name, who))


def _targets(name: str, who: str) -> dict[str, float]:
    """The target of a step's figure, as arguments of ``Figure``."""
    if name == "p50" and who == OURS:
        return {"target": 2e-6}
    return {"at_least": 3} if name == "p99" and who in PEERS else {}


def grammar_depth(world: World) -> Iterator[Figure]:
    """JSON arrays nested 1,000 deep: a step near the outermost array, and deep inside."""
    opening, number, closing = (world.vocabulary.encode_greedy(text) for text in (b"[", b"1", b"]"))
    tokens = [*opening * DEPTH, *number, *closing * DEPTH]
    part = DEPTH // 4
    places = {
        "opening, first quarter": slice(0, part),
        "opening, last quarter": slice(DEPTH - part, DEPTH),
        "closing, first quarter": slice(DEPTH + 1, DEPTH + 1 + part),
        "closing, last quarter": slice(len(tokens) - part, len(tokens)),
    }
    found = {
        library.name: step_times(library, library.compile_grammar(JSON.lark, JSON.ebnf), [], tokens)
        for library in _libraries(world)
    }
    for place, steps in places.items():
        for who, times in found.items():
            what = f"JSON arrays {DEPTH:,} deep, mask + advance: {place}"
            yield figure(what, who, [float(time) / 1e9 for time in times[steps]])


def grammar_length(world: World) -> Iterator[Figure]:
    """A JSON document of about 10,000 tokens: the time of a step by length, and the memory of a sequence."""
    tokens = _long_document(world)
    for library in _libraries(world):
        blocks = curve(library, library.compile_grammar(JSON.lark, JSON.ebnf), [], tokens)
        slope = float(np.polyfit(range(len(blocks)), blocks, 1)[0])
        yield Figure(
            f"JSON document of {len(tokens):,} tokens, mask + advance, median of blocks of {BLOCK:,}",
            library.name,
            float(np.median(blocks)) / 1e9,
            min(blocks) / 1e9,
            note=f"slope {slope:+.1f} ns per {BLOCK:,} tokens; blocks in ns: "
            + " ".join(f"{block:.0f}" for block in blocks),
        )
    deep = world.vocabulary.encode_greedy(b"[") * DEPTH
    yield from memory(world, "a JSON document of 1,000 tokens", tokens[:1000], target=16_384)
    yield from memory(world, f"JSON arrays {DEPTH:,} deep", deep, target=16_384)
    yield from memory(world, f"a JSON document of {len(tokens):,} tokens", tokens)


def memory(world: World, what: str, tokens: list[int], target: float | None = None) -> Iterator[Figure]:
    """The bytes of one sequence. The note divides them into the history of tokens, which a sequence without a stack has
    too, and the stacks.
    """
    matcher = world.ours.compile_grammar(JSON.lark, JSON.ebnf).matcher()
    flat = world.ours.compile(r"[\x00-\uffff]*").matcher()
    assert matcher.accept_tokens(tokens) and flat.accept_tokens(tokens)
    stacks, history = matcher.memory - flat.memory, flat.memory
    note = f"history of tokens {history:,} bytes, stacks {stacks:,} bytes"
    yield Figure(
        f"memory of {what}", OURS, matcher.memory, matcher.memory, unit="bytes", target=target, note=note
    )


def _long_document(world: World) -> list[int]:
    """The tokens of a JSON array whose records all have the same form."""
    rng = random.Random(0)
    records = [
        {
            "id": n,
            "name": f"user {rng.randrange(10**4)}",
            "tags": ["a", "b"],
            "at": {"x": rng.random(), "y": None},
        }
        for n in range(LONG // 50)
    ]
    return list(world.vocabulary.encode_greedy(json.dumps(records).encode()))


def _libraries(world: World) -> Iterator[Any]:
    yield world.ours
    yield from world.peers(*PEERS)


def compiled(library: GrammarLibrary, grammar: Grammar) -> Walk:
    return library.walk(library.compile_grammar(grammar.lark, grammar.ebnf))


def walk_documents(walk: Walk, documents: Sequence[Sequence[int]], overhead: float) -> list[list[float]]:
    """The seconds of each step of the first pass, and of each step of the second pass."""
    passes = []
    fill, accept = walk.fill, walk.accept
    with quiet():
        for _ in range(2):
            seconds = []
            for document in documents:
                walk.restart()
                for token in document:
                    cpu, begin = thread_time_ns(), perf_counter_ns()
                    fill()
                    accepted = accept(token)
                    spent = perf_counter_ns() - begin
                    spent = min(spent, thread_time_ns() - cpu)  # without the time of other processes
                    seconds.append(max(spent / 1e9 - overhead, 0.0))
                    if not accepted:
                        raise AssertionError(f"token {token} was refused")
            passes.append(seconds)
    return passes
