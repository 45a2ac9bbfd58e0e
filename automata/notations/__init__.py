"""Grammar notations: Lark, GBNF, EBNF.

Each construct means what the notation's own parser reads. A construct that is not supported is rejected by an error
that names it and its position.

Invariant: a grammar has the words that the notation's own parser reads. Cost: linear in the grammar's text, apart from
the automata of ignored text and of look-ahead.

Read in this order: ``parsing`` (code that the parsers share), ``gbnf``, ``ebnf``; ``lark_source`` (statements and
names), ``lark_attributes``, ``lark_parameters``, ``lark_terminals``, ``lark_objects``, ``lark_bodies``,
``lark_ignored``, ``lark_syntax``; ``bundled`` (the grammars in ``bundled_grammars/``).
"""
