"""Scores of weighted languages on a device.

Invariant: scores are those of ``ScoreMatcher`` up to float32. Cost: 4 bytes for each token of a resident row, and one
pass over the logits.

Read in this order: ``score_rows``, ``scores``, ``score_matchers`` (rows of matchers paged in).
"""
