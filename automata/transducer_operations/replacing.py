"""``replace``: substitution of machines for labels, without recursion."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tokenfst.automata.transducers.arcs import require_same
from tokenfst.automata.transducers.byte_labels import common_tables
from tokenfst.automata.transducers.checks import chosen
from tokenfst.automata.transducers.growth import Growth
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.errors import FstArgError, FstOpError

SIDES = ("neither", "input", "output", "both")


@checked
def replace(
    pairs: Iterable[Any], call_arc_labeling: str = "input", return_arc_labeling: str = "neither",
    epsilon_on_replace: bool = False, return_label: int = 0, *, budget: Budget | None = None,
) -> VectorFst:  # fmt: skip
    """The machine of the first pair, in which each arc whose output is the label of a pair is replaced by that pair's
    machine.

    ``pairs``: (label, machine). The arc into a machine keeps the labels that ``call_arc_labeling`` names ("neither",
    "input", "output", "both"), the arc out of it has ``return_label`` on those that ``return_arc_labeling`` names;
    with ``epsilon_on_replace`` both are epsilon on both sides. Raises ``FstOpError`` for recursive machines. One state
    for each state in each chain of calls: exponential in the depth of calls in the worst case.
    """
    chosen("replace: call_arc_labeling", call_arc_labeling, SIDES)
    chosen("replace: return_arc_labeling", return_arc_labeling, SIDES)
    machines, labels = named_machines(pairs, (VectorFst,))
    require_same("replace", *machines)
    tables = common_tables("replace", *machines)
    _refuse_recursion(machines, labels)
    call = "neither" if epsilon_on_replace else call_arc_labeling
    back = "neither" if epsilon_on_replace else return_arc_labeling
    returned = tuple(return_label if back in (side, "both") else 0 for side in ("input", "output"))
    made = _Expansion(machines, labels, call, returned, budget).run()
    return made.connect(budget=budget).set_tables(tables)


def named_machines(pairs: Iterable[Any], types: tuple[type, ...]) -> tuple[list[Any], dict[int, int]]:
    """The machines of ``replace``, each of one of ``types``, and the machine that each label calls."""
    machines, labels = list[Any](), dict[int, int]()
    for at, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[1], types):
            raise FstArgError(f"replace: pairs[{at}] is not a pair of a label and a machine")
        label, machine = pair
        if not isinstance(label, int) or isinstance(label, bool) or not 0 < label < 2**31 or label in labels:
            raise FstArgError(
                f"replace: pairs[{at}]: a label is an integer from 1 to 2^31 - 1, once: {label!r}"
            )
        labels[label] = at
        machines.append(machine)
    if not machines:
        raise FstArgError("replace: no pair was given")
    return machines, labels


class _Expansion:
    """States are pairs of a chain of calls and a state of the machine that was called last."""

    def __init__(
        self,
        machines: list[VectorFst],
        labels: dict[int, int],
        call: str,
        returned: tuple[int, ...],
        budget: Budget | None,
    ) -> None:
        self._machines, self._labels, self._call, self._returned = machines, labels, call, returned
        self._growth = Growth(budget, "replace")
        self._made = machines[0].like(machines[0].kind.core())
        # Of a chain of calls: the machine, and the state of the result to come back to.
        self._chains: list[tuple[int, int]] = [(0, -1)]
        self._places: list[dict[int, int]] = [{}]
        self._waiting: list[tuple[int, int]] = []

    def run(self) -> VectorFst:
        """All states within reach."""
        start = self._machines[0].start()
        if start >= 0:
            self._made.set_start(self._place(0, start))
        while self._waiting:
            self._expand(*self._waiting.pop())
        return self._made

    def _place(self, chain: int, state: int) -> int:
        places = self._places[chain]
        if state not in places:
            places[state] = self._made.add_state()
            self._waiting.append((chain, state))
        return places[state]

    def _expand(self, chain: int, state: int) -> None:
        number, target = self._chains[chain]
        machine, core = self._machines[number], self._made.core
        here = self._places[chain][state]
        final = machine.core.final(state)
        if final != machine.kind.core.zero():
            if target < 0:
                core.set_final(here, final)
            else:
                core.add_arc(here, *self._returned, final, target)
        for ilabel, olabel, weight, nextstate in machine.core.arcs(state):
            self._growth.grown(self._made)
            called = self._labels.get(olabel)
            if called is None:
                core.add_arc(here, ilabel, olabel, weight, self._place(chain, nextstate))
            elif self._machines[called].start() >= 0:
                self._chains.append((called, self._place(chain, nextstate)))
                self._places.append({})
                inner = self._place(len(self._chains) - 1, self._machines[called].start())
                read = ilabel if self._call in ("input", "both") else 0
                written = olabel if self._call in ("output", "both") else 0
                core.add_arc(here, read, written, weight, inner)


def _refuse_recursion(machines: list[VectorFst], labels: dict[int, int]) -> None:
    calls = [sorted({labels[o] for o in set(m.arrays()[3].tolist()) if o in labels}) for m in machines]
    colours = [0] * len(machines)
    path: list[tuple[int, int]] = []
    for root in range(len(machines)):
        if colours[root]:
            continue
        path.append((root, 0))
        colours[root] = 1
        while path:
            machine, at = path.pop()
            if at == len(calls[machine]):
                colours[machine] = 2
                continue
            path.append((machine, at + 1))
            called = calls[machine][at]
            if colours[called] == 1:
                label = next(label for label, number in labels.items() if number == called)
                raise FstOpError(
                    f"replace: the machine of label {label} calls itself, so what it stands for need not be regular"
                )
            if not colours[called]:
                colours[called] = 1
                path.append((called, 0))
