"""Scores of weighted languages on a device.

Read in this order: ``score_rows``, ``scores``, ``score_matchers`` (rows of matchers paged in).
"""
