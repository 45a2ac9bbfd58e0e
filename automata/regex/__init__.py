"""Regular expressions: Python's ``re`` and ECMA-262 patterns as languages.

A pattern means what its own library matches. Anchors, word boundaries, look-ahead and look-behind become boolean
operations on languages; what has no regular meaning (most backreferences) is refused by name and place.

Read in this order: ``parse`` (the standard library's parser), ``translate`` (its tree to expressions),
``conditions``, ``continuation`` and ``lookaround`` (what a place asks of the text around it), ``named_groups``,
``captured_groups``, ``leftmost`` (what ``re.match`` prefers), ``ecma`` with ``ecma_tree``.
"""
