"""Captures: the spans of a text that a constraint's named groups and rules matched.

Masks and steps do not use captures. A constraint with names has a *reading* in addition to its expression: a tree that
says how its texts split into parts. A text is parsed by its reading only when captures are requested.

Invariant: captures never change which texts are accepted; what all parses of the text so far share is final. Cost: the
number of parallel parses for each byte, bounded by ``Budget.states``; one unless the text is ambiguous.

Read in this order: ``trees`` (readings), ``code`` (readings compiled to instructions), ``run`` (executes the
instructions on a text), ``values`` (the result types), ``reader`` (the public functions), ``temperature`` (the sampling
temperature that the open rules set), ``captured`` (the mixin that gives constraints these methods).
"""
