"""Statements about members, and what is left of them once a variable is decided."""

from __future__ import annotations

import gc

from tokenfst.automata.json_schema.sets.formula import Formula, Kind
from tokenfst.automata.json_schema.sets.statements import Groups, Statements


def test_what_a_decision_leaves_whole_is_no_cycle() -> None:
    """A decision that says nothing of a group leaves that group, also when it is asked again, and all of it is freed
    by its counts: the collector finds nothing.
    """

    def decide() -> None:
        statements = Statements()
        literal = statements.member("a", False, Formula(Kind.ATOM))
        group = statements.group([statements.cell([statements.clause((literal,))])])
        groups: Groups = ((0, group),)
        asked: list[object] = []
        for _ in range(2):
            left = statements.decided(groups, "a", ("a", 1), lambda each: asked.append(each))  # type: ignore[func-returns-value]
            assert left == groups and left[0][1] is group
        assert asked == [literal]

    collects = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        decide()
        assert gc.collect() == 0
    finally:
        if collects:
            gc.enable()
