"""Ways in which members can violate demands, as complements require it.

The idea: a complement requires *some* member with a given name and value. That member is either a listed one, which is
then required, or one that is not listed. Demands are processed one after the other, and a way that requires more than
another one is dropped. So few ways remain, although a product of all demands may have billions: for example, two names
satisfy ten demands "a name that is not ...". Members that are not listed form groups, because one member may satisfy
several demands.

Cost: demands x ways², and there are at most ``_MOST`` ways after each demand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations

from tokenfst.automata.json_schema.sets.formula import NONE, Formula, Formulas
from tokenfst.automata.json_schema.sets.objects import Named, Object
from tokenfst.errors import UnsupportedSchemaError

_MOST = 256

Groups = tuple[tuple[Named, ...], ...]
"""For each member that is not listed, the demands that it must satisfy."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to satisfy all demands.

    ``listed``: conditions on listed names, which are then required. ``groups``: the demands that members with other
    names must satisfy.
    """

    listed: dict[str, Formula]
    groups: Groups = ()

    def asks_no_more_than(self, other: Choice) -> bool:
        """Whether every object of the ``other`` way is also one of this way, as far as their forms show."""
        return self.listed.items() <= other.listed.items() and set(self.groups) <= set(other.groups)


def choices(cell: Object, values: dict[str, Formula], formulas: Formulas, *, free: bool) -> list[Choice]:
    """The ways to satisfy ``cell.some``.

    ``values``: for each listed name, the condition on its value without ``cell.some``. ``free``: whether members may
    have other names. Raises UnsupportedSchemaError if there are too many ways.
    """
    found = [Choice({})]
    for each in cell.some:
        names = [name for name in values if values[name] is not NONE and each.names.holds(name)]
        held = {name: formulas.both(values[name], each.formula) for name in names}
        kept: list[Choice] = []
        more: dict[tuple[frozenset[tuple[str, Formula]], Groups], Choice] = {}
        for choice in found:
            if any(_meets(choice, name, each, cell, values, formulas) for name in names):
                kept.append(choice)
                continue
            words = each.names.values
            others = free and (words is None or not words <= values.keys())
            for way in _ways(choice, each, held, formulas, free=others):
                if cell.high is None or len(cell.required | way.listed.keys()) + len(way.groups) <= cell.high:
                    more[frozenset(way.listed.items()), way.groups] = way
        found = _least(kept, sorted(more.values(), key=_size), formulas)
        if len(found) > _MOST:
            raise UnsupportedSchemaError(cell.where, "a complement of it has too many ways to hold")
    return found


def _meets(
    choice: Choice, name: str, each: Named, cell: Object, values: dict[str, Formula], formulas: Formulas
) -> bool:
    """Whether a listed member that is present in any case satisfies a demand."""
    if name not in choice.listed and name not in cell.required:
        return False
    held = choice.listed.get(name, values[name])
    return formulas.both(held, each.formula) is held


def _ways(
    choice: Choice, each: Named, held: dict[str, Formula], formulas: Formulas, *, free: bool
) -> Iterator[Choice]:
    """The extensions of a way by one more demand, which a listed member or another member satisfies."""
    for name, formula in held.items():
        both = formulas.both(choice.listed[name], each.formula) if name in choice.listed else formula
        if both is not NONE:
            yield Choice({**choice.listed, name: both}, choice.groups)
    if free:
        groups = choice.groups
        for k, group in enumerate((*groups, ())):
            yield Choice(choice.listed, (*groups[:k], (*group, each), *groups[k + 1 :]))


def _size(choice: Choice) -> int:
    return len(choice.listed) + len(choice.groups)


def _least(kept: list[Choice], more: list[Choice], formulas: Formulas) -> list[Choice]:
    """The ways without those that require more than another."""
    found = list(kept)
    for way in more:
        formulas.work.tick(1 + len(found) // 16)
        if not any(known.asks_no_more_than(way) for known in found):
            found.append(way)
    return found


def subsets(members: tuple[Named, ...]) -> Iterator[tuple[Named, ...]]:
    """All non-empty subsets of these conditions, smaller ones first."""
    return chain.from_iterable(combinations(members, size) for size in range(1, len(members) + 1))
