"""The specification of token masks for grammars, by OpenFst: detokenizer ∘ push-down transducer, expanded.

A program of its own, since OpenFst's push-down operations abort or do not end on what they were not made for: it reads
cases as JSON from standard input and writes for each the sequences of at most ``longest`` tokens that spell a word,
or null where the expansion has more than MOST_PLACES places: stacks are exponentially many in the bytes.

A case has ``rules``, the first of which is the start: a list of arcs [source, label, target] from state 0 to state 1,
where label 0 is ε, byte b is b + 1 and rule number k is 1000 + k; ``tokens`` as hexadecimal digits; and ``longest``.
Every call must read a byte before it calls again, or stacks are not bounded.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pynini

FIRST_RULE = 1000
MOST_PLACES = 200_000


def acceptor(arcs: list[list[int]]) -> pynini.Fst:
    machine = pynini.Fst()
    machine.add_states(2 + max((max(source, target) for source, _, target in arcs), default=0))
    machine.set_start(0)
    machine.set_final(1)
    for source, label, target in arcs:
        machine.add_arc(source, pynini.Arc(label, label, 0, target))
    return machine


def detokenizer(tokens: list[bytes], longest: int) -> pynini.Fst:
    """Sequences of at most ``longest`` tokens to their bytes; a token stands on the last of its arcs."""
    machine = pynini.Fst()
    borders = [machine.add_state() for _ in range(longest + 1)]
    machine.set_start(borders[0])
    for place, border in enumerate(borders):
        machine.set_final(border)
        for token, text in enumerate(tokens if place < longest else []):
            source = border
            for byte in text[:-1]:
                target = machine.add_state()
                machine.add_arc(source, pynini.Arc(0, byte + 1, 0, target))
                source = target
            if text:
                machine.add_arc(source, pynini.Arc(token + 1, text[-1] + 1, 0, borders[place + 1]))
    return machine


def is_small(machine: pynini.Fst, parentheses: list[tuple[int, int]]) -> bool:
    """Whether at most MOST_PLACES pairs of a state and a stack are reachable."""
    opening = dict(parentheses)
    closing = set(opening.values())
    seen: set[tuple[int, tuple[int, ...]]] = {(machine.start(), ())}
    pending = list(seen)
    while pending and len(seen) <= MOST_PLACES:
        state, stack = pending.pop()
        for arc in machine.arcs(state):
            following = stack
            if arc.ilabel in opening:
                following = (*stack, opening[arc.ilabel])
            elif arc.ilabel in closing:
                if not stack or stack[-1] != arc.ilabel:
                    continue
                following = stack[:-1]
            if (place := (arc.nextstate, following)) not in seen:
                seen.add(place)
                pending.append(place)
    return len(seen) <= MOST_PLACES


def answer(case: dict[str, Any]) -> list[list[int]] | None:
    rules = [(FIRST_RULE + number, acceptor(arcs)) for number, arcs in enumerate(case["rules"])]
    pushdown, parentheses = pynini.pdt_replace(rules, pdt_parser_type="left")
    tokens = detokenizer([bytes.fromhex(token) for token in case["tokens"]], case["longest"])
    composed = pynini.pdt_compose(tokens, pushdown, parentheses, left_pdt=False)
    if composed.start() >= 0 and not is_small(composed, parentheses):
        return None
    expanded = pynini.pdt_expand(composed, parentheses).project("input").rmepsilon()
    if expanded.start() < 0:
        return []
    paths = pynini.determinize(expanded).paths()
    return sorted([label - 1 for label in path if label] for path in iterate(paths))


def iterate(paths: Any) -> Any:
    while not paths.done():
        yield paths.ilabels()
        paths.next()


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
