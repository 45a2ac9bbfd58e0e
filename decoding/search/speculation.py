"""Speculative decoding under a constraint: a draft predicts several tokens, and one call of the target verifies all of
them.

Draft and target use the same masks and the same sampling settings. A drafted token x is accepted with probability
min(1, p(x) / q(x)), where p is the target's distribution at its position and q the one it was drawn from. If it is
rejected, the residual max(0, p - q), normalized, is the target for the next sibling, whose q no longer contains x.
After the last sibling the token is drawn from the residual. So each token has exactly the distribution p, that of
constrained sampling from the target alone, whatever the draft; in greedy decoding it is the target's best token.

Invariants. Both sessions hold the settled tokens, apart from a few at the end that the next call adds. No forbidden
token is drawn, and the text is complete within ``max_new_tokens``. Cost of a round: one call of the target over the
draft's tree, a call of the draft for each of its levels, one mask for each visited position. Rejected: drawing siblings
with replacement (a repeated sibling can never be accepted).

Sources: Leviathan, Kalman, Matias, "Fast inference from transformers via speculative decoding" (2023); trees and the
rule for siblings: Miao et al., "SpecInfer" (2024), and without replacement Jeon et al., "Recursive speculative
decoding" (2024); masks shared by draft and target: Koo, Liu, He, "Automata-based constraints for language model
decoding" (2024).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tokenfst.common.arguments import checked_but
from tokenfst.common.token_ids import check_width
from tokenfst.decoding.matchers.reach_matcher import start_matcher
from tokenfst.decoding.models.language_model import as_language_model, one_prompt
from tokenfst.decoding.models.sampling import Sampling
from tokenfst.decoding.rows.generations import Generation
from tokenfst.decoding.rows.rows import AnyAutomaton, one_for_each
from tokenfst.decoding.search.drafts import DraftTree, LaggingSession, Proposer, draw_tree
from tokenfst.decoding.search.forced_runs import ForcedRuns
from tokenfst.decoding.token_automata.explaining import rule_temperature
from tokenfst.errors import DecodingError, MissingDependencyError

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('decoding needs torch: pip install "tokenfst[torch]"') from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation(Generation):
    """The result of ``speculative_generate``, with counters.

    ``target_calls``, ``draft_calls``: model calls, including the prompt's. ``tried``, ``accepted``: by depth in the
    draft, how often a drafted choice was verified, and how often one was accepted. ``forced``: the number of tokens
    without an alternative.
    """

    target_calls: int
    draft_calls: int
    tried: list[int]
    accepted: list[int]
    forced: int

    @property
    def acceptance(self) -> float:
        """The share of verified positions at which a drafted choice was accepted."""
        return sum(self.accepted) / max(sum(self.tried), 1)

    @property
    def tokens_per_call(self) -> float:
        """The number of new tokens per call of the target."""
        return len(self.tokens) / max(self.target_calls, 1)


@checked_but("prompt", "automaton")
def speculative_generate(
    target: Any,
    draft: Any,
    prompt: Sequence[int],
    automaton: AnyAutomaton,
    *,
    max_new_tokens: int,
    branching: Sequence[int] = (1, 1, 1, 1),
    do_sample: bool = False,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    width: int | None = None,
) -> Speculation:
    """Continue ``prompt`` with a text of the constraint's language, of at most ``max_new_tokens`` tokens.

    ``target``, ``draft``: arguments of ``as_language_model`` (with ``width`` for plain functions); ``draft`` may also
    be a ``Proposer``. ``branching``: the number of children of a draft position, by depth; all ones for a chain. The
    sampling settings are those of ``generate``.

    Raises ``TokenLimitError``, ``VocabularyMismatchError``, ``ModelError`` and ``DecodingError`` before the first call
    of a model, ``LogitsError`` if the scores leave no token to choose.
    """
    judge = as_language_model(target, width)
    drafter = None if isinstance(draft, Proposer) else as_language_model(draft, width)
    sampling = Sampling(do_sample, temperature, top_k, top_p)
    (constraint,), asked = one_for_each(automaton, 1), one_prompt(prompt)
    vocabulary = constraint.vocabulary
    size = len(vocabulary)
    for model, name in ((judge, "target"), (drafter, "draft")):
        if model is not None:
            remedy = "target, draft and constraint must share one vocabulary"
            check_width(model.width, size, f"the {name}", "the constraint's vocabulary", remedy)
    if min(branching, default=1) < 1:
        raise DecodingError(f"branching={tuple(branching)}: each place needs 1 child or more")
    if max_new_tokens < 1:
        raise DecodingError(f"max_new_tokens={max_new_tokens} leaves nothing to generate")
    matcher = start_matcher(constraint, max_new_tokens)
    runs = ForcedRuns(vocabulary, max_new_tokens)
    forced = len(runs.take(matcher))
    tried, accepted = [0] * len(branching), [0] * len(branching)
    large = small = None
    if not runs.is_finished(matcher):
        begun = [*asked, *matcher.tokens]
        large = LaggingSession(judge, begun)
        small = None if drafter is None else LaggingSession(drafter, begun)
    while large is not None and not runs.is_finished(matcher):
        tree = DraftTree(matcher, size, runs)
        if small is not None:
            draw_tree(tree, small, branching, sampling, generator)
        else:
            tree.propose(draft.propose([*asked, *matcher.tokens]))
        large.score(tree.tree)
        places, token = _walk(tree, large, sampling, generator)
        _count(places, tree, tried, accepted)
        path = tree.tree.path_nodes(places[-1])
        matcher.accept_tokens([tree.tree.tokens[node] for node in path])
        more = []
        if token is not None:
            matcher.accept_token(token)
            more = [token, *runs.take(matcher)]
        forced += len(path) - (len(places) - 1) + max(len(more) - 1, 0)
        for session in (large, small):
            if session is not None:
                session.settle(tree.tree, path, more)
    return Speculation(
        tokens=tuple(matcher.tokens),
        text=vocabulary.decode(matcher.tokens),
        target_calls=large.calls if large is not None else 0,
        draft_calls=small.calls if small is not None else 0,
        tried=tried,
        accepted=accepted,
        forced=forced,
    )


def _count(places: Sequence[int], tree: DraftTree, tried: list[int], accepted: list[int]) -> None:
    """Add to the counts of each depth: whether the draft had a token there, and whether one of them was accepted."""
    for depth, place in enumerate(places):
        if depth >= len(tried):
            tried.append(0)
            accepted.append(0)
        tried[depth] += place in tree.draws
        accepted[depth] += depth + 1 < len(places)


def _walk(
    tree: DraftTree, target: LaggingSession, sampling: Sampling, generator: torch.Generator | None
) -> tuple[list[int], int | None]:
    """The visited positions, the root first, and the token that is drawn after the last one, unless the text ends
    there.
    """
    places = [-1]
    while not tree.is_finished(places[-1]):
        place = places[-1]
        masked = tree.masked(place, target.scores_at(place))
        if sampling.do_sample:
            masked = sampling.with_temperatures(masked, [rule_temperature(tree.matcher_at(place))])
        child, token = _judge(tree, place, masked, sampling, generator)
        if child is None:
            return places, token
        places.append(tree.ends[child])
    return places, None


def _judge(
    tree: DraftTree,
    place: int,
    masked: torch.Tensor,
    sampling: Sampling,
    generator: torch.Generator | None,
) -> tuple[int | None, int]:
    """The accepted child, or None, and the token."""
    draws = [(child, tree.tree.tokens[child], drawn_from) for child, drawn_from in tree.draws.get(place, ())]
    if not sampling.do_sample:
        best = int(sampling.choose(masked)[0])
        return next((child for child, token, _ in draws if token == best), None), best
    left = sampling.probabilities(masked)[0]
    for child, token, drawn_from in draws:
        chance = torch.rand((), dtype=torch.float64, generator=generator, device=left.device)
        if drawn_from is None:
            if bool(chance < left[token]):
                return child, token
            rest = left.clone()
            rest[token] = 0.0
        else:
            other = drawn_from.to(left.device)
            if bool(chance * other[token] < left[token]):
                return child, token
            rest = (left - other).clamp_(min=0.0)
        total = rest.sum()
        if bool(
            total > 0
        ):  # it is zero only by rounding: if the two distributions agree, nothing is rejected
            left = rest / total
    return None, int(torch.multinomial(left, 1, generator=generator))
