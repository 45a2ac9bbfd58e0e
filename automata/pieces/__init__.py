"""Languages that are hard to write as patterns: quoted text, substrings, labels, members in any order, concepts.

The functions for users return a ``Language`` whose size is linear in the size of their input (taxonomies, substrings)
or of an automaton (concepts).

Invariant: no label contains its separator, so a text is divided into labels in one way. Cost: linear in the input,
apart from concepts, whose automaton is multiplied by that of the condition.

Read in this order: ``text``, ``free_text``, ``substrings``, ``tokens``, ``unordered``, ``taxonomy``, then ``concepts``
with ``classifier`` and ``inflection``.
"""
