"""Lexing and parsing code that the parsers of all grammar notations share.

Regular expressions divide a text into tokens. Parsing takes linear time and does not recurse. Errors name the
position.

Invariant: a parsed text is of the notation, or an error names the position. Cost: linear in the text.

Read in this order: ``lalr`` (tokens, and the loop over lark's tables), ``reading`` (parsers, errors, folds), ``bnf``
(rules of the form ``name ::= alternatives``, which GBNF and EBNF share), ``bnf_macros`` and ``bnf_options`` (xgrammar's
extensions of them).
"""
