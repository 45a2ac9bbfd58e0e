"""``weighted_template``: fixed text with holes whose fillings have weights.

A template is the concatenation of its pieces, and so is a weighted template. The weight of a text is the product of the
weights of its fillings, summed over all ways to fill the holes. Cost: the states of the holes.
"""

from __future__ import annotations

from collections.abc import Mapping

from tokenfst.automata.grammars.templates import hole_constraint, pieces_of
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.languages.language import Language
from tokenfst.automata.weights.language import WeightedLanguage
from tokenfst.common.arguments import checked_but
from tokenfst.errors import ConstraintError


@checked_but("text")
def weighted_template(
    text: str, /, **holes: str | Constraint | WeightedLanguage | Mapping[str, float]
) -> WeightedLanguage:
    """Fixed text with holes, written as in ``template``.

    A hole is a ``WeightedLanguage``, a mapping from texts to weights (not logarithms), or an argument of ``template``,
    whose texts have weight 1. Raises the errors of ``template``, and ``ConstraintError`` for a grammar that is not
    regular. Linear in the fillings.
    """
    if not isinstance(text, str):
        raise ConstraintError(f"a template is a str, not {type(text).__name__}")
    weighted = {
        name: hole if isinstance(hole, WeightedLanguage) else WeightedLanguage.alternatives(hole)
        for name, hole in holes.items()
        if isinstance(hole, WeightedLanguage | Mapping)
    }
    stands = {
        name: Language.literal("")
        if isinstance(hole, WeightedLanguage | Mapping)
        else hole_constraint(name, hole)
        for name, hole in holes.items()
    }
    made = WeightedLanguage.of(Language.literal(""))
    for piece in pieces_of(text, stands):
        if piece.constraint is None:
            made = made + Language.literal(piece.text)
        else:
            made = made + weighted.get(piece.name, piece.constraint)
    source = f"weighted_template({text!r:.80})"
    return WeightedLanguage(made.machine, source, made.budget, made.special_weight)
