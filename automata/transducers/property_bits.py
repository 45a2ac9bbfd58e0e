"""``FstProperties``: the bits of ``VectorFst.properties``, with OpenFst's names and values."""

from __future__ import annotations

from enum import IntFlag


class FstProperties(IntFlag):
    """Properties of a machine, as bits of ``VectorFst.properties``.

    Most come in pairs: a bit that says that the machine has the property, and one that says that it has not. The
    members are names of ``tokenfst.fst`` too: ``fst.ACYCLIC``.
    """

    ACCEPTOR = 1 << 16
    """Input and output are the same on each arc."""
    NOT_ACCEPTOR = 1 << 17
    I_DETERMINISTIC = 1 << 18
    """No state has two arcs with the same input. An epsilon counts as a label."""
    NON_I_DETERMINISTIC = 1 << 19
    O_DETERMINISTIC = 1 << 20
    """No state has two arcs with the same output."""
    NON_O_DETERMINISTIC = 1 << 21
    EPSILONS = 1 << 22
    """Some arc has epsilon on both sides."""
    NO_EPSILONS = 1 << 23
    I_EPSILONS = 1 << 24
    """Some arc has an epsilon as input."""
    NO_I_EPSILONS = 1 << 25
    O_EPSILONS = 1 << 26
    """Some arc has an epsilon as output."""
    NO_O_EPSILONS = 1 << 27
    I_LABEL_SORTED = 1 << 28
    """The arcs of each state ascend by input."""
    NOT_I_LABEL_SORTED = 1 << 29
    O_LABEL_SORTED = 1 << 30
    """The arcs of each state ascend by output."""
    NOT_O_LABEL_SORTED = 1 << 31
    WEIGHTED = 1 << 32
    """Some arc or final state has a weight other than One (and, if final, other than Zero)."""
    UNWEIGHTED = 1 << 33
    CYCLIC = 1 << 34
    """There is a cycle."""
    ACYCLIC = 1 << 35
    INITIAL_CYCLIC = 1 << 36
    """A cycle leads through the start."""
    INITIAL_ACYCLIC = 1 << 37
    TOP_SORTED = 1 << 38
    """Each arc leads to a state with a larger number."""
    NOT_TOP_SORTED = 1 << 39
    ACCESSIBLE = 1 << 40
    """Each state can be reached from the start."""
    NOT_ACCESSIBLE = 1 << 41
    COACCESSIBLE = 1 << 42
    """From each state a final one can be reached."""
    NOT_COACCESSIBLE = 1 << 43
    STRING = 1 << 44
    """The machine is one chain of states, as ``accep`` makes it."""
    NOT_STRING = 1 << 45
    WEIGHTED_CYCLES = 1 << 46
    """Some arc of a cycle has a weight other than One."""
    UNWEIGHTED_CYCLES = 1 << 47
