"""Images of languages under relations: spellings, edits, case folding, normal forms, rewriting, lengths.

Each function returns the image or the inverse image of a language under a relation on characters. Before
determinization, a result has at most as many states as the language times those of the relation. The constructions
count states against a budget.

Invariant: an image is exact, or the construction raises an error. Cost: determinization makes it exponential in the
worst case, within the budget.

Read in this order: ``letters`` (automata over letters instead of bytes), ``coding`` (character encodings),
``spellings`` (inverse images under encodings), ``lengths`` (numbers of characters), ``edits``, ``folding``,
``equivalence``, ``rewriting``, ``repair`` (the nearest text).
"""
