"""Characters: from code points to bytes and back (convention 1).

A set of characters becomes a minimal deterministic automaton over their bytes. In UTF-8 that has at most a few dozen
states, whatever the set.

Read in this order: ``utf8`` (sets of code points), ``classes`` (classes of ``re``), ``case`` (characters that differ in
case alone), ``properties`` (Unicode properties by name), ``codes`` (other ways to spell a character: JSON escapes and
the like).
"""
