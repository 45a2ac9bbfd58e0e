"""Compositions with sigma, rho and phi labels by the slow road: each special arc written out as the arcs that it stands
for, over all labels there are.
"""

from __future__ import annotations

from reference.transducers.transducers import Plain


def written_out(
    machine: Plain, kind: str, label: int, alphabet: range, *, output: bool, both: bool, loop: bool
) -> Plain:
    """The machine without its special label, which matches on the input side, or the ``output`` side."""
    side, other = (2, 1) if output else (1, 2)
    special = {s: [a for a in machine.arcs if a[0] == s and a[side] == label] for s in range(machine.states)}
    plain = {s: [a for a in machine.arcs if a[0] == s and a[side] != label] for s in range(machine.states)}

    def rewritten(arc: tuple, source: int, matched: int, weight: float) -> tuple:
        parts = [source, arc[1], arc[2], weight, arc[4]]
        parts[side] = matched
        if both and parts[other] == label:
            parts[other] = matched
        return tuple(parts)

    def followed(state: int, matched: int) -> list[tuple]:
        weight, here = 0.0, state
        while True:
            if found := [a for a in plain[here] if a[side] == matched]:
                return [(state, a[1], a[2], weight + a[3], a[4]) for a in found]
            if not special[here]:
                return []
            (arc,) = special[here]
            if arc[4] == here:
                return [rewritten(arc, state, matched, weight + arc[3])] if loop else []
            weight, here = weight + arc[3], arc[4]

    made = Plain(machine.start, dict(machine.finals), [], machine.states)
    for state in range(machine.states):
        if kind != "phi" or label != 0:
            made.arcs += [a for a in plain[state] if a[side] == 0]
        for matched in alphabet:
            explicit = [a for a in plain[state] if a[side] == matched]
            if kind == "phi":
                made.arcs += followed(state, matched)
                continue
            made.arcs += explicit
            if kind == "sigma" or not explicit:
                made.arcs += [rewritten(a, state, matched, a[3]) for a in special[state]]
        if kind == "phi" and state not in machine.finals:
            weight, here = 0.0, state
            while here not in machine.finals and special[here] and special[here][0][4] != here:
                weight, here = weight + special[here][0][3], special[here][0][4]
            if here in machine.finals:
                made.finals[state] = weight + machine.finals[here]
    return made
