"""Whether each text of a weighted grammar has one derivation, as far as the next byte tells.

The idea: at each place of a rule, the possible steps (a byte, a call, the end of the rule) must begin with different
bytes (LL(1) over bytes). The end of a rule begins with the bytes that may follow the rule. A call of a rule that may be
empty also begins with the bytes that may come after the call. Alternatives with a common beginning are read in parallel
until they differ, so a place is a subset of a net's states. The test is sufficient and not necessary: whether a grammar
is ambiguous cannot be decided. Left-recursive rules never pass.

Cost: the places of the rules, as many as a net has states where it is deterministic, times the rounds until no set of
bytes grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.weighted_grammars.nets import Net
from tokenfst.automata.weights.machine import Floats
from tokenfst.errors import BudgetExceeded, ConstraintError

_END = 1 << 256
"""The end of the text, in a set of bytes that is written as the bits of an int."""
_Way = tuple[bool, int, int]
"""A step: whether it is a call; the byte, or the number of the called rule; and the place that it leads to."""
_Place = tuple[list[_Way], bool]
"""The steps from a place, and whether the rule may end there."""


def check_one_way(nets: Sequence[Net], empty: Floats, deadline: Deadline) -> None:
    """Raise ``ConstraintError`` if the next byte does not decide how to continue, or ``BudgetExceeded``.

    ``empty``: the log weight of each rule's empty word.
    """
    rules, left = [], deadline.budget.states
    for net in nets:
        rules.append(_places(net, left, deadline))
        left -= len(rules[-1])
    nullable = [weight > -float("inf") for weight in empty.tolist()]
    first = _first_bytes(rules, nullable, deadline)
    follow = [0] * len(rules)
    follow[0] = _END
    changed = True
    while changed:
        changed = False
        for number, places in enumerate(rules):
            for ways, _ in places:
                for calls, called, target in ways:
                    after = follow[called] | _may_come(first[number], follow[number], target) if calls else 0
                    if calls and after != follow[called]:
                        follow[called], changed = after, True
            deadline.tick(len(places))
    for number, places in enumerate(rules):
        for ways, ends in places:
            seen = follow[number] if ends else 0
            for calls, label, target in ways:
                begins = first[label][0][0] if calls else 1 << label
                if calls and nullable[label]:
                    begins |= _may_come(first[number], follow[number], target)
                if seen & begins:
                    byte = ((seen & begins) & -(seen & begins)).bit_length() - 1
                    _refuse(nets[number].name, "the end" if byte == 256 else f"the byte {bytes([byte])!r}")
                seen |= begins
            deadline.tick(len(ways))


def _places(net: Net, left: int, deadline: Deadline) -> list[_Place]:
    """The subsets of a net's states that one sequence of bytes and calls leads to, the start's first."""
    by_source: list[list[tuple[tuple[bool, int], int]]] = [[] for _ in net.finals]
    for calls, arcs in ((False, net.bytes), (True, net.calls)):
        for source, label, target in zip(*(arcs[at].tolist() for at in (0, 1, 3)), strict=True):
            by_source[source].append(((calls, label), target))
    subsets: list[tuple[int, ...]] = [(net.start,)]
    numbers = {subsets[0]: 0}
    places: list[_Place] = []
    while len(places) < len(subsets):
        subset = subsets[len(places)]
        found: dict[tuple[bool, int], list[int]] = {}
        for state in subset:
            for symbol, target in by_source[state]:
                found.setdefault(symbol, []).append(target)
        deadline.tick(5 + sum(map(len, found.values())))
        ends = sum(final > -float("inf") for final in net.finals[list(subset)].tolist())
        ways: list[_Way] = []
        for (calls, label), targets in found.items():
            if len(set(targets)) < len(targets):
                _refuse(net.name, "one sequence of bytes and rules")
            key = tuple(sorted(targets))
            if key not in numbers:
                numbers[key] = len(subsets)
                subsets.append(key)
            ways.append((calls, label, numbers[key]))
        if ends > 1:
            _refuse(net.name, "one sequence of bytes and rules")
        places.append((ways, ends == 1))
        if len(subsets) > left:
            raise BudgetExceeded("states", deadline.budget.states, f"the places of the rule {net.name!r}")
    return places


_First = list[tuple[int, bool]]
"""For each place of a rule: the bytes with which its rest may begin, and whether the rest may be empty."""


def _first_bytes(rules: Sequence[list[_Place]], nullable: Sequence[bool], deadline: Deadline) -> list[_First]:
    first: list[_First] = [[(0, ends) for _, ends in places] for places in rules]
    changed = True
    while changed:
        changed = False
        for number, places in enumerate(rules):
            own = first[number]
            for at in range(len(places) - 1, -1, -1):
                may, empty = own[at]
                for calls, label, target in places[at][0]:
                    may |= first[label][0][0] if calls else 1 << label
                    if calls and nullable[label]:
                        may, empty = may | own[target][0], empty or own[target][1]
                if own[at] != (may, empty):
                    own[at], changed = (may, empty), True
            deadline.tick(len(places))
    return first


def _may_come(first: _First, follow: int, place: int) -> int:
    may, empty = first[place]
    return may | follow if empty else may


def _refuse(rule: str, what: str) -> NoReturn:
    raise ConstraintError(
        f"the entropy of the texts of a weighted grammar needs one that goes one way: in the rule {rule!r}, {what} can "
        "come in two ways, so a text may have two derivations. Write it so that the next byte decides, or ask for the "
        "entropy of derivations: entropy(derivations=True)"
    )
