"""The lattice of a text in a weighted language: all paths that read it, with the weights of the machine's arcs as
parameters.

A state of the lattice is a position in the text and a state of the machine. The weights of the machine's arcs are
gathered into those of the lattice, so their gradients are the expected counts of each arc.
"""

from __future__ import annotations

import numpy as np
import torch

from tokenfst.automata.languages.operands import encode
from tokenfst.automata.weights.language import WeightedLanguage
from tokenfst.common.arguments import checked, refuse
from tokenfst.decoding.lattices.lattice import Lattice
from tokenfst.errors import ArgumentValueError, ConstraintError


class TextLattice:
    """All paths of ``language.plain`` that read one text. ``arcs``: int64, for each arc of ``lattice`` the machine's
    arc.

    Raises ``ConstraintError`` if no path reads the text.
    """

    @checked
    def __init__(self, language: WeightedLanguage, text: str | bytes) -> None:
        data = encode(text)
        machine = language.plain
        if data is None or language.log_weight(data) == -np.inf:
            raise ConstraintError(f"no path of {language!r} reads {text!r:.60}")
        here, pairs, arcs, states = {machine.start: 0}, list[tuple[int, int]](), list[int](), [machine.start]
        for byte in data:
            onward: dict[int, int] = {}
            for state, number in here.items():
                for arc in range(int(machine.offsets[state]), int(machine.offsets[state + 1])):
                    if machine.labels[arc] != byte:
                        continue
                    target = int(machine.targets[arc])
                    if target not in onward:
                        onward[target] = len(states)
                        states.append(target)
                    pairs.append((number, onward[target]))
                    arcs.append(arc)
            here = onward
        self.lattice = Lattice(pairs, len(states), finals=here.values())
        self._size = len(machine.labels), machine.num_states
        self.arcs, self._states = torch.tensor(arcs, dtype=torch.int64), torch.tensor(states)

    @checked
    def log_weight(self, weights: torch.Tensor, finals: torch.Tensor) -> torch.Tensor:
        """The text's log weight if the arcs of ``plain`` have the log weights ``weights`` (..., arcs) and its states
        the final weights ``finals`` (..., states); differentiable in both. The weight of the start is not included.
        """
        for name, given, size in (("weights", weights, self._size[0]), ("finals", finals, self._size[1])):
            if given.dim() < 1 or given.shape[-1] != size:
                refuse("TextLattice.log_weight", name, given, f"a tensor (..., {size})", ArgumentValueError)
        arcs, states = self.arcs.to(weights.device), self._states.to(finals.device)
        return self.lattice.log_partition(weights[..., arcs], finals[..., states])
