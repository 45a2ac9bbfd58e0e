"""Sets of objects as unions of cells, closed under intersection, union and complement.

A cell is a conjunction of conditions on members. A name that a schema lists has its own formula and may be required.
Everything else is a *demand*: all members whose name is in a set of strings have values that satisfy a formula.
``additionalProperties`` is a demand on the names that are neither listed nor match a pattern, ``patternProperties`` one
for each pattern, and ``propertyNames`` one on all wrong names, which no value satisfies. The complement of a demand is
that *some* member violates it. So an intersection appends demands, a complement is a union of small cells, and overlaps
between sets of names are resolved once, when a cell is written.

If a text may repeat a name (``json_schema``), the object has several members with that name, and each must be valid.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tokenfst.automata.json_schema.sets.formula import ANY, NONE, Formula, Formulas
from tokenfst.automata.json_schema.sets.strings import Strings


@dataclass(slots=True, unsafe_hash=True)
class Named:
    """A condition: the members whose name is in ``names`` satisfy a formula."""

    names: Final[Strings]
    formula: Final[Formula]


@dataclass(slots=True, unsafe_hash=True)
class Object:
    """One cell: the objects that satisfy all of these conditions.

    ``listed``: names in the order in which they are written, with the condition on the value of each if it is present.
    ``required``: names that are present. ``demands``: conditions on all members with certain names, including listed
    names. ``some``: for each, there is a member with such a name and value. ``low``, ``high``: the bounds of the number
    of members. ``where``: the schema from which the cell comes, for messages.
    """

    # Final instead of frozen: mypy checks it, and a frozen dataclass takes three times as long to make.
    listed: Final[tuple[tuple[str, Formula], ...]] = ()
    required: Final[frozenset[str]] = frozenset()
    demands: Final[tuple[Named, ...]] = ()
    some: Final[tuple[Named, ...]] = ()
    low: Final[int] = 0
    high: Final[int | None] = None
    where: Final[str] = field(default="#", compare=False)

    def held(self) -> Formula | None:
        """The condition on the values of unlisted members, if the cell says only this of them; otherwise ``None``."""
        if self.some or len(self.demands) > 1:
            return None
        for demand in self.demands:
            names = demand.names
            plain = not names.parts and not names.low and names.high is None and names.values is None
            if not plain or names.excluded != dict(self.listed).keys():
                return None
            return demand.formula
        return ANY

    def values(self, formulas: Formulas) -> dict[str, Formula]:
        """For each listed name, the condition on its value, including all demands; ``NONE`` if it cannot be present."""
        found: dict[str, Formula] = {}
        for name, formula in self.listed:
            for demand in self.demands:
                if demand.names.holds(name):
                    formula = formulas.both(formula, demand.formula)
            found[name] = formula
        return found


ObjectSet = tuple[Object, ...]
"""A union of cells."""

EVERY_OBJECT: ObjectSet = (Object(),)


def cell(made: Object, formulas: Formulas) -> ObjectSet:
    """The cell in normal form, as a union of at most one cell; no cell if it is obviously empty."""
    some = tuple(dict.fromkeys(made.some)) if made.some else ()
    if some and any(each.formula is NONE or each.names.is_empty(formulas.work) for each in some):
        return ()
    demands, barred = made.demands, []
    if demands:
        demands = tuple(dict.fromkeys([demand for demand in demands if demand.formula is not ANY]))
        barred = [demand.names for demand in demands if demand.formula is NONE]
    low = max(made.low, len(made.required), 1 if some else 0)
    high = made.high
    if barred and any(names.is_universal() for names in barred):
        high = 0
    if high is not None and low > high:
        return ()
    listed = dict(made.listed)
    for name in made.required:
        if listed.get(name) is NONE or (barred and any(names.holds(name) for names in barred)):
            return ()
    # Tuples are shared, never copied: there are many, and they are compared by identity first.
    kept = made.listed if len(listed) == len(made.listed) else tuple(listed.items())
    return (Object(kept, made.required, demands, some, low, high, made.where),)


def meet_cells(left: Object, right: Object, formulas: Formulas) -> ObjectSet:
    """The intersection of two cells; names that only the right one lists come last."""
    listed = dict(left.listed)
    for name, formula in right.listed:
        listed[name] = formulas.both(listed[name], formula) if name in listed else formula
    formulas.work.tick(2 + (len(listed) + len(left.demands) + len(right.demands)) // 4)
    highs = [high for high in (left.high, right.high) if high is not None]
    return cell(
        Object(
            tuple(listed.items()),
            left.required | right.required,
            (*left.demands, *right.demands),
            (*left.some, *right.some),
            max(left.low, right.low),
            min(highs, default=None),
            left.where,
        ),
        formulas,
    )


def invert_cell(made: Object, formulas: Formulas) -> ObjectSet:
    """The complement of a cell, as a union of cells. Members keep the order in which the cell lists them."""
    order = tuple((name, ANY) for name, _ in made.listed)

    def with_value(name: str, formula: Formula) -> tuple[tuple[str, Formula], ...]:
        if all(known != name for known, _ in order):
            return (*order, (name, formula))
        return tuple((known, formula if known == name else ANY) for known, _ in order)

    found = [Object(with_value(name, NONE), where=made.where) for name in sorted(made.required)]
    for name, formula in made.listed:
        if formula is not ANY:
            listed = with_value(name, formulas.negate(formula))
            found.append(Object(listed, frozenset({name}), where=made.where))
    for demand in made.demands:
        broken = Named(demand.names, formulas.negate(demand.formula))
        found.append(Object(order, some=(broken,), where=made.where))
    found += [
        Object(order, demands=(Named(each.names, formulas.negate(each.formula)),), where=made.where)
        for each in made.some
    ]
    if made.low > max(len(made.required), bool(made.some)):
        found.append(Object(order, high=made.low - 1, where=made.where))
    if made.high is not None:
        found.append(Object(order, low=made.high + 1, where=made.where))
    return tuple(one for made in found for one in cell(made, formulas))


def of_members(members: dict[str, Formula]) -> Object:
    """The objects with exactly these members."""
    others = Strings(excluded=frozenset(members))
    return Object(tuple(members.items()), frozenset(members), (Named(others, NONE),))
