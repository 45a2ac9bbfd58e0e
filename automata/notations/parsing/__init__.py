"""From the text of a grammar to its parts: what the parsers of all notations share.

Texts are cut into tokens by one regular expression and parsed in linear time, without recursion; errors name the
place.

Read in this order: ``reading`` (tokens, parsers, errors, folds), ``bnf`` (rules of the form ``name ::= alternatives``,
which GBNF and EBNF share), ``bnf_macros`` and ``bnf_options`` (what xgrammar adds to them).
"""
