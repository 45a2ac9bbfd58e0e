"""The functions of ``pynini.lib.pynutil``: insertions, deletions, weights, separators."""

from __future__ import annotations

from tokenfst.automata.transducer_grammars.machines import Fst, WeightLike, acceptor_or_machine, both
from tokenfst.automata.transducer_operations import building
from tokenfst.automata.transducers.mapping import arcmap
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.automata.transducers.weights import number
from tokenfst.common.arguments import checked

__all__ = ["add_weight", "delete", "insert", "join"]


@checked
def insert(expr: VectorFst | str | bytes, weight: WeightLike | None = None) -> Fst:
    """The transducer that maps the empty string to the words of ``expr``. ``weight``: as in ``add_weight``."""
    made = acceptor_or_machine(expr)
    made = Fst.around(arcmap(made, map_type="input_epsilon"))
    return made if weight is None else add_weight(made, weight)


@checked
def delete(expr: VectorFst | str | bytes, weight: WeightLike | None = None) -> Fst:
    """The transducer that maps the words of ``expr`` to the empty string. ``weight``: as in ``add_weight``."""
    made = Fst.around(arcmap(acceptor_or_machine(expr), map_type="output_epsilon"))
    return made if weight is None else add_weight(made, weight)


@checked
def add_weight(expr: VectorFst | str | bytes, weight: WeightLike) -> Fst:
    """The machine with the weight of each path multiplied by ``weight`` (in "standard" and "log", a sum of numbers)."""
    made = acceptor_or_machine(expr)
    value = number(weight, made.kind, "add_weight: weight")
    return Fst.around(building.chain([], [], value, made.arc_type()).set_tables(made.tables)).concat(made)


@checked
def join(expr: VectorFst | str | bytes, sep: VectorFst | str | bytes) -> Fst:
    """One or more words of ``expr``, separated by words of ``sep``."""
    one, between = both(expr, sep)
    return one + (between + one).star
