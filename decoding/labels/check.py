"""Proof that a finite language is exactly a set of labels: every string that it has, against every label.

The idea: walk the machine and the prefixes of the labels side by side. A deterministic machine is in one state after
one prefix of bytes; a token automaton in one after each way to spell it. So pairs (prefix, state) are all there is to
look at, however many spellings a label has, and the walk stops at the first step that leads out of the labels'
prefixes. It shares nothing with the construction: neither the automaton of labels nor its counts.

What is shown: no step leaves the labels (forward), acceptance is exactly at a label's end (termination), and each
label is reached. Of a token automaton, for all its spellings, in the arcs that masks are made of.

Cost: one step for each pair and arc: as many as the labels have bytes, times the ways tokens can lie across one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from tokenfst.arguments import checked
from tokenfst.automata.languages.answer import Answer, Side
from tokenfst.automata.languages.language import Language
from tokenfst.automata.languages.operands import encode
from tokenfst.budget import Budget
from tokenfst.decoding.canonical.automaton import CanonicalAutomaton
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import BudgetExceeded, LabelError, TokenizationError

_Arcs: TypeAlias = Iterable[tuple[bytes, int]]


@checked
def verify_labels(
    machine: Language | TokenAutomaton | CanonicalAutomaton,
    labels: Iterable[str | bytes],
    *,
    budget: Budget | None = None,
) -> Answer:
    """Whether the strings of ``machine`` are exactly ``labels``. If not, the answer's witness is a label that is
    missing (side RIGHT), or what ``machine`` has and is none (LEFT).

    Of a token automaton (without a stack): the strings that its tokens spell. Makes all states. Of canonical sequences,
    a label is missing too where the tokenizer's own sequence is not accepted. Raises BudgetExceeded beyond
    ``budget.positions`` steps, LabelError for a label with a lone surrogate.
    """
    if isinstance(machine, CanonicalAutomaton):
        given = list(labels)
        answer = verify_labels(machine.every_sequence, given, budget=budget)
        return answer and _all_canonical(machine, given)
    wanted: set[bytes] = set()
    for label in labels:
        data = encode(label)
        if data is None:
            raise LabelError(
                label, f"the label {label!r} holds a lone surrogate, which has no UTF-8 encoding"
            )
        wanted.add(data)
    start, arcs, accepts = _of_tokens(machine) if isinstance(machine, TokenAutomaton) else _of_bytes(machine)
    if start == 0:
        return _missing(wanted)
    prefixes = {label[:end] for label in wanted for end in range(len(label) + 1)}
    seen = {(b"", start)}
    pending = [(b"", start)]
    limit, steps = (budget or Budget()).positions, 0
    while pending:
        prefix, state = pending.pop()
        if accepts(state) and prefix not in wanted:
            return Answer(False, prefix, Side.LEFT)
        for text, target in arcs(state):
            steps += 1
            if steps > limit:
                raise BudgetExceeded("positions", limit, "a proof of labels")
            longer = prefix + text
            if longer not in prefixes:
                return Answer(False, _completed(longer, target, arcs, accepts), Side.LEFT)
            if (longer, target) not in seen:
                seen.add((longer, target))
                pending.append((longer, target))
    return _missing(wanted - {prefix for prefix, state in seen if accepts(state)})


def _all_canonical(machine: CanonicalAutomaton, labels: list[str | bytes]) -> Answer:
    """Whether the tokens that the tokenizer makes of each label are accepted."""
    matcher = machine.matcher()
    for label in labels:
        data = encode(label) or b""
        try:
            with machine.tokenizer.lock:
                tokens = machine.tokenizer.encode(data)
        except TokenizationError:
            return Answer(False, data, Side.RIGHT)
        if not (matcher.accept_tokens(tokens) and matcher.is_accepting()):
            return Answer(False, data, Side.RIGHT)
        matcher.reset()
    return Answer(True)


def _missing(labels: set[bytes]) -> Answer:
    return (
        Answer(False, min(labels, key=lambda word: (len(word), word)), Side.RIGHT) if labels else Answer(True)
    )


def _completed(
    prefix: bytes, state: int, arcs: Callable[[int], _Arcs], accepts: Callable[[int], bool]
) -> bytes:
    """A word with this prefix: breadth first, since every state leads to acceptance."""
    pending, seen = [(prefix, state)], {state}
    for word, at in pending:
        if accepts(at):
            return word
        for text, target in arcs(at):
            if target not in seen:
                seen.add(target)
                pending.append((word + text, target))
    raise AssertionError("a state of a trim machine leads nowhere")


def _of_bytes(language: Language) -> tuple[int, Callable[[int], _Arcs], Callable[[int], bool]]:
    dfa = language.determinize()
    rows = dfa.table[:, dfa.classes]

    def arcs(state: int) -> _Arcs:
        return [(bytes([byte]), target) for byte, target in enumerate(rows[state].tolist()) if target]

    return dfa.start, arcs, lambda state: bool(dfa.accepting[state])


def _of_tokens(automaton: TokenAutomaton) -> tuple[int, Callable[[int], _Arcs], Callable[[int], bool]]:
    expanded = automaton.expand()
    native, arrays, vocabulary = expanded.native, expanded.arrays(), automaton.vocabulary
    start = int(arrays["start"]) if native.spellable else 0

    def arcs(state: int) -> _Arcs:
        tokens, targets = native.arcs(state)
        spelled = vocabulary.initial_tokens if state == start else None
        spelled = vocabulary.tokens if spelled is None else spelled
        return [
            (spelled[token], target) for token, target in zip(tokens.tolist(), targets.tolist(), strict=True)
        ]

    return start, arcs, lambda state: bool(arrays["accepting"][state])
