"""Python calls and objects as text, and parsing of that text back to values without ``eval``.

Read in this order: ``annotations`` (types to a model), ``literals``, ``objects`` (the model to rules), ``values`` (text
to values by the same model).
"""
