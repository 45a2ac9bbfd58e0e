"""Python calls and objects as text, and parsing of that text back to values without ``eval``.

Invariant: a text of the language parses to the value that it denotes; nothing is evaluated. Cost: linear in the types
and in the text.

Read in this order: ``annotations`` (types to a model), ``literals``, ``objects`` (the model to rules), ``values`` (text
to values by the same model).
"""
