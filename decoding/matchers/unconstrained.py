"""``UNCONSTRAINED``: the value for a row of a batch without a constraint, wherever rows have constraints.

It is a separate value, because ``None`` is often a mistake (a name that was not set), and a str is a pattern.
"""

from __future__ import annotations

import enum


class Unconstrained(enum.Enum):
    """The type of ``UNCONSTRAINED``."""

    UNCONSTRAINED = "free"

    def __repr__(self) -> str:
        return self.name


UNCONSTRAINED = Unconstrained.UNCONSTRAINED
"""Stands for any text, in place of an automaton in ``ConstraintLogitsProcessor([...])`` or of a target of
``Generator``.
"""
FREE = UNCONSTRAINED.value
"""A str that ``ConstraintLogitsProcessor`` takes as ``UNCONSTRAINED``."""
