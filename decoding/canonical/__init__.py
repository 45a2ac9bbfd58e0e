"""Canonical tokenizations: for each text of a language, only the token sequence that its tokenizer produces.

Invariant: a token is allowed exactly if some canonical sequence of the language continues the tokens so far with it.
Cost: a search for each new pair of a state and a last token, which is kept.

Read in this order: ``nodes``, ``automaton``, ``lengths`` (token limits), ``matcher``.
"""
