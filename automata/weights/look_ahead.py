"""``look_ahead``: the expected weight of the rest of a text under a model, as scores.

A mask says which tokens can still lead to a text of the language, but not how likely that is. For a tractable model (an
n-gram model or any weighted language) the expectation is exact: e(x) is the average weight of a text that starts with x
if the model writes the rest, where texts outside the language weigh 0. The scores are log e(x·t) - log e(x). Added to
the logits of another model, they change its probabilities as P-GCD does with a hidden Markov model: in proportion to
p(t | x) · e(x·t) (docs/decoding/probabilistic.md).

Construction: the normalized product of model and language is the posterior, the distribution of the model given that
the text is in the language. Divided by the model's own probabilities it is the look-ahead. Sums over infinitely many
continuations are solutions of linear equations (``sums``), so texts need no length bound. Over a whole text the scores
add up to the text's weight in the language and a constant, -log e(the empty text).

Cost: the states of the product, and n³ for the sums over n of them on common cycles.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.weights.language import WeightedLanguage
from tokenfst.automata.weights.ngrams import NGramModel
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
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

    ``language``: its texts have weight 1 if it has no weights. ``model``: an n-gram model over characters or words, or
    any weighted language, in proportion to its weights. Raises ``ConstraintError`` unless both have one path for each
    text, ``EmptyLanguageError`` if the model gives no text of the language a positive weight, ``DivergingSumError`` and
    ``BudgetExceeded``. The cost is that of sums over pairs of states of both.
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
    """The language in which each arc and end has the reciprocal of its weight."""
    machine = language.plain
    finals = np.where(machine.finals > -np.inf, -machine.finals, -np.inf)
    made = replace(machine, initial=-machine.initial, weights=-machine.weights, finals=finals)
    return WeightedLanguage(made, language.source, language.budget)
