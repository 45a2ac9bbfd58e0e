"""The scores of SGLang's tests, in a module that the processes of an engine can import."""

from __future__ import annotations

from typing import ClassVar

from tokenfst import WeightedLanguage, boost
from tokenfst.decoding.engines.sglang_scores import SGLangScores


class Scores(SGLangScores):
    """Some that forbid nothing, and some of few texts."""

    weighted: ClassVar = {
        "boosted": boost({"e": 2.0, " the": 3.0, "ing": -4.0}),
        "few": WeightedLanguage.alternatives({"123-aax": 5, "123-bbyy": 1, "999": 1}),
    }
