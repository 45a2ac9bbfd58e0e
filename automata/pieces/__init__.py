"""Languages that are hard to write as patterns: quoted text, substrings, labels, members in any order, concepts.

Each function returns a ``Language`` whose size is linear in the size of its input (taxonomies, substrings) or of its
automaton (concepts).

Invariant: no label contains its separator, so a text is divided into labels in one way. Cost: linear in the input,
apart from concepts, whose automaton is multiplied by that of the condition.

Read in this order: ``text``, ``free_text``, ``substrings``, ``tokens``, ``unordered``, ``taxonomy``, then ``concepts``
with ``classifier`` and ``inflection``.
"""
