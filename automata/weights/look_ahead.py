"""``look_ahead``: what a model expects of the rest of a text, pushed to the front.

The idea: a mask says which tokens can still lead to a text of the language, and nothing of how likely that is. For a
tractable model, an n-gram model or any weighted language, the expectation is exact: e(x) is the weight that a text
which begins with x has on average when the model writes the rest, 0 for texts outside of the language. The scores here
are log e(x·t) - log e(x). Added to the logits of another model, they make of its probabilities what P-GCD makes of them
by a hidden Markov model: p(t | x) · e(x·t), in proportion (docs/decoding/probabilistic.md).

Made of what is there: the product of model and language, normalized, gives what the model would write *and* end well,
the posterior; divided by the model's own probabilities what remains is the look-ahead. Sums over all rests, infinitely
many, solve linear equations (``sums``), so no length bounds them. Over a whole text scores add up to the text's weight
in the language and a constant, -log e(the empty text).

Cost: the product's states, and the sums' n³ for n of them on common cycles.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tokenfst.arguments import checked
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.weights.language import WeightedLanguage
from tokenfst.automata.weights.ngrams import NGramModel
from tokenfst.budget import Budget
from tokenfst.errors import ConstraintError, EmptyLanguageError


@checked
def look_ahead(
    language: Constraint | WeightedLanguage,
    model: WeightedLanguage | NGramModel,
    *,
    budget: Budget | None = None,
) -> WeightedLanguage:
    """The exact expected weight of ``language`` under ``model`` as scores: for ``FusedModel``, a logits processor, or
    ``scores_into``.

    ``language``: its texts weigh 1 where it has no weights. ``model``: an n-gram model over characters or words, or
    any weighted language, in proportion to its weights. Raises ``ConstraintError`` unless both have one path for each
    text, ``EmptyLanguageError`` where the model gives no text of the language a weight, ``DivergingSumError`` and
    ``BudgetExceeded``.
    """
    own = model.to_weighted(budget) if isinstance(model, NGramModel) else model
    wanted = language if isinstance(language, WeightedLanguage) else WeightedLanguage.of(language, budget)
    for name, each in (("language", wanted), ("model", own)):
        if not each.is_deterministic:
            raise ConstraintError(
                f"look_ahead: {name} {each!r} has several paths for a text: determinize() it first"
            )
    writes = own.normalized(budget)
    both = writes & wanted
    if both.is_empty():
        raise EmptyLanguageError(f"look_ahead: {own!r} gives no text of {wanted!r} a weight")
    found = both.normalized(budget) & _inverse(writes)
    source = f"look_ahead({wanted.source}, {own.source})"[:240]
    return WeightedLanguage(found.machine, source, budget or wanted.budget)


def _inverse(language: WeightedLanguage) -> WeightedLanguage:
    """Each arc and end divides by what it weighs."""
    machine = language.plain
    finals = np.where(machine.finals > -np.inf, -machine.finals, -np.inf)
    made = replace(machine, initial=-machine.initial, weights=-machine.weights, finals=finals)
    return WeightedLanguage(made, language.source, language.budget)
