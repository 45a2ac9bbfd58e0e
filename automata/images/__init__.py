"""Languages made of languages: spellings, edits, case folding, normal forms, rewriting, lengths.

Each is the image or the inverse image of a language under a relation on characters. The result's size is the
language's times the relation's; the constructions count states against a budget.

Read in this order: ``letters`` (automata over letters instead of bytes), ``coding`` (how characters are spelled),
``spellings`` (inverse images under codes), ``lengths`` (how many characters), ``edits``, ``folding``, ``equivalence``,
``rewriting``, ``repair`` (the nearest text).
"""
