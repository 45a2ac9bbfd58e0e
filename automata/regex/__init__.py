"""Regular expressions: Python's ``re`` and ECMA-262 patterns as languages.

A pattern means what its own library matches. Anchors, word boundaries, look-ahead and look-behind become boolean
operations on languages. Constructs that are not regular (most backreferences) are rejected by an error that names the
construct and its position.

Invariant: every word is valid UTF-8 and matches the whole pattern. Cost: linear in the pattern; counted repetitions
stay counted unless conditions on their surroundings stand inside.

Read in this order: ``parse`` (the standard library's parser), ``translate`` (its tree to expressions), ``conditions``,
``continuation`` and ``lookaround`` (conditions on the surrounding text), ``named_groups``, ``captured_groups``,
``leftmost`` (the match that ``re.match`` prefers), ``plain`` (most patterns, in the native core), ``ecma`` with
``ecma_tree``.
"""
