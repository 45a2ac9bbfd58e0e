"""``verify_labels``: a proof that a finite language is exactly a set of labels.

The machine and the prefixes of the labels are walked in parallel. A deterministic machine is in one state after a
prefix of bytes; a token automaton is in one state after each tokenization of it. So only pairs (prefix, state) need to
be visited, however many tokenizations a label has, and the walk stops at the first step that leaves the prefixes of the
labels. It shares no code with the construction: neither the automaton of labels nor its counts.

Three things are verified: no step leaves the labels (forward), acceptance is exactly at the end of a label
(termination), and each label is reached. For a token automaton this covers all tokenizations, on the arcs from which
masks are computed.

Cost: one step for each pair and arc: the bytes of all labels, times the number of ways in which a token can overlap
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from tokenfst.automata.languages.answer import Answer, Side
from tokenfst.automata.languages.language import Language
from tokenfst.automata.languages.operands import encode
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
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
    """Whether the strings of ``machine`` are exactly ``labels``.

    If not, the answer's witness is a missing label (side RIGHT), or a string of ``machine`` that is not a label (LEFT).
    For a token automaton (without a stack), the strings are those that its tokens spell. Computes all states. For
    canonical sequences, a label is also missing if the tokenizer's own sequence is not accepted. Raises BudgetExceeded
    beyond ``budget.positions`` steps, LabelError for a label with a lone surrogate.
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
                label, f"the label {label!r} contains a lone surrogate, which UTF-8 cannot encode"
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
    """Whether the tokenizer's own tokens of each label are accepted."""
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
    """A word with this prefix: breadth first, because acceptance can be reached from every state."""
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
