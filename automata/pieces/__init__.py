"""Pieces of text that patterns describe badly: quoted text, substrings, labels, members in any order, concepts.

Each function returns a ``Language`` of a size that is linear in its input (taxonomies, substrings) or in its
automaton (concepts).

Read in this order: ``text``, ``free_text``, ``substrings``, ``tokens``, ``unordered``, ``taxonomy``, then
``concepts`` with ``classifier`` and ``inflection``.
"""
