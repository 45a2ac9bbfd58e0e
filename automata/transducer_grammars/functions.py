"""The other operations of ``tokenfst.fst`` as pynini's functions: a string stands for its acceptor, and the result is a
new ``Fst``, which has operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from tokenfst.automata.transducer_grammars.machines import Fst, FstLike, acceptor_or_machine, both
from tokenfst.automata.transducer_grammars.strings import bracketed
from tokenfst.automata.transducer_operations import operations
from tokenfst.automata.transducer_operations.replacing import replace as substituted
from tokenfst.automata.transducers import mapping
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.common.plurals import counted
from tokenfst.errors import FstArgError

P = ParamSpec("P")


def _constructive(
    operation: Callable[Concatenate[VectorFst, P], VectorFst],
) -> Callable[Concatenate[FstLike, P], Fst]:
    """An operation that makes a new machine, with an ``Fst`` or a string as its first argument."""

    @wraps(operation)
    def call(fst: FstLike, /, *args: P.args, **kwargs: P.kwargs) -> Fst:
        return Fst.around(operation(acceptor_or_machine(fst), *args, **kwargs))

    return call


def _copied(
    method: Callable[Concatenate[Any, P], VectorFst],
) -> Callable[Concatenate[FstLike, P], Fst]:
    """A method that changes a machine in place, applied to a copy."""

    @wraps(method)
    def call(fst: FstLike, /, *args: P.args, **kwargs: P.kwargs) -> Fst:
        return Fst.around(method(acceptor_or_machine(fst).copy(), *args, **kwargs))

    return call


def _question(
    operation: Callable[Concatenate[VectorFst, VectorFst, P], bool],
) -> Callable[Concatenate[FstLike, FstLike, P], bool]:
    """A question about two machines or strings."""

    @wraps(operation)
    def call(one: FstLike, other: FstLike, /, *args: P.args, **kwargs: P.kwargs) -> bool:
        return operation(*both(one, other), *args, **kwargs)

    return call


arcmap = _constructive(mapping.arcmap)
convert = _constructive(mapping.convert)
decode = _constructive(mapping.decode)
determinize = _constructive(operations.determinize)
disambiguate = _constructive(operations.disambiguate)
encode = _constructive(mapping.encode)
epsnormalize = _constructive(operations.epsnormalize)
prune = _constructive(operations.prune)
push = _constructive(operations.push)
randgen = _constructive(operations.randgen)
reverse = _constructive(operations.reverse)
statemap = _constructive(mapping.statemap)
synchronize = _constructive(operations.synchronize)
arcsort = _copied(VectorFst.arcsort)
connect = _copied(VectorFst.connect)
minimize = _copied(VectorFst.minimize)
relabel_pairs = _copied(VectorFst.relabel_pairs)
relabel_tables = _copied(VectorFst.relabel_tables)
reweight = _copied(VectorFst.reweight)
rmepsilon = _copied(VectorFst.rmepsilon)
topsort = _copied(VectorFst.topsort)

equal = _question(operations.equal)
equivalent = _question(operations.equivalent)
isomorphic = _question(operations.isomorphic)
randequivalent = _question(operations.randequivalent)


@checked
def replace(
    pairs: Iterable[Any], call_arc_labeling: str = "input", return_arc_labeling: str = "neither",
    epsilon_on_replace: bool = False, return_label: int = 0, *, budget: Budget | None = None,
) -> Fst:  # fmt: skip
    """Machines substituted for labels (``tokenfst.fst.replace``).

    A label may be a string in brackets, as ``"[X]"``, and a machine may be a string.
    """
    named = []
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise FstArgError(f"replace: {pair!r:.60} is not a pair of a label and a machine")
        label, machine = pair
        if isinstance(label, str):
            labels = bracketed(label, "byte")
            if len(labels) != 1:
                raise FstArgError(
                    f"replace: {label!r:.60} is {counted(len(labels), 'label')}, and one is due"
                )
            label = labels[0]
        named.append((label, acceptor_or_machine(machine) if isinstance(machine, str | bytes) else machine))
    made = substituted(
        named, call_arc_labeling, return_arc_labeling, epsilon_on_replace, return_label, budget=budget
    )
    return Fst.around(made)


@checked
def leniently_compose(
    mu: VectorFst | str | bytes, nu: VectorFst | str | bytes, sigma_star: VectorFst | str | bytes,
    compose_filter: str = "auto", connect: bool = True, *, budget: Budget | None = None,
) -> Fst:  # fmt: skip
    """The composition of ``mu`` and ``nu``, and ``mu`` itself for the inputs that the composition rejects.

    ``sigma_star``: the unweighted acceptor of all inputs. The inputs of the composition are determinized, which is
    exponential at worst.
    """
    one, other = both(mu, nu)
    composed = operations.compose(one, other, compose_filter, connect, budget=budget)
    inputs = mapping.arcmap(composed.copy().project("input"), map_type="rmweight")
    words = acceptor_or_machine(sigma_star, one.arc_type())
    rest = operations.difference(words, inputs, budget=budget)
    return Fst.around(composed.union(operations.compose(rest, one, budget=budget), budget=budget))
