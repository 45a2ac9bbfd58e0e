"""Notations of grammars: Lark, GBNF, EBNF. Each means what its own parser reads, or is refused by name and place.

Read in this order: ``parsing`` (what the parsers share), ``gbnf``, ``ebnf``; ``lark_source`` (statements and names),
``lark_attributes``, ``lark_parameters``, ``lark_terminals``, ``lark_objects``, ``lark_bodies``, ``lark_ignored``,
``lark_syntax``; ``bundled`` (the grammars in ``bundled_grammars/``).
"""
