"""Weighted grammars by enumeration: every derivation, up to a weight below which it is left out.

A sentential form is a tuple of bytes and names of rules, rewritten at its first name. All derivations of a grammar that
is not recursive are found; of a recursive one those that weigh at least ``least``, whose sum is less than the truth by
what was left out, which is at most what is given back beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

Form = tuple[int | str, ...]
Rules = Mapping[str, list[tuple[Form, float]]]


def derived(rules: Rules, start: str, least: float = 0.0) -> tuple[dict[bytes, float], float]:
    """What each text weighs, and what all sentential forms that were left out weigh."""
    found, lost = derivations(rules, start, least)
    texts: dict[bytes, float] = defaultdict(float)
    for text, weight in found:
        texts[text] += weight
    return dict(texts), lost


def derivations(rules: Rules, start: str, least: float = 0.0) -> tuple[list[tuple[bytes, float]], float]:
    """The text and the weight of each derivation, and what all sentential forms that were left out weigh."""
    found: list[tuple[bytes, float]] = []
    lost = 0.0
    pending: list[tuple[Form, float]] = [((start,), 1.0)]
    while pending:
        form, weight = pending.pop()
        place = next((at for at, each in enumerate(form) if isinstance(each, str)), None)
        if place is None:
            found.append((bytes(each for each in form if isinstance(each, int)), weight))
        elif weight < least:
            lost += weight
        else:
            pending += [
                (form[:place] + body + form[place + 1 :], weight * share)
                for body, share in rules[str(form[place])]
            ]
    return found, lost


def merged(rules: Rules) -> Rules:
    """The rules with alternatives that are written alike as one."""
    made: dict[str, list[tuple[Form, float]]] = {}
    for name, alternatives in rules.items():
        weights: dict[Form, float] = defaultdict(float)
        for form, weight in alternatives:
            weights[form] += weight
        made[name] = list(weights.items())
    return made


def prefix_weight(texts: Mapping[bytes, float], prefix: bytes) -> float:
    """What all texts that begin so weigh."""
    return sum(weight for text, weight in texts.items() if text.startswith(prefix))


def as_templates(rules: Rules) -> dict[str, dict[str, float]]:
    """The rules as ``WeightedGrammar`` takes them; alternatives that are written alike add up."""
    made: dict[str, dict[str, float]] = {}
    for name, alternatives in rules.items():
        made[name] = defaultdict(float)
        for form, weight in alternatives:
            made[name]["".join(f"{{{each}}}" if isinstance(each, str) else chr(each) for each in form)] += (
                weight
            )
    return made
