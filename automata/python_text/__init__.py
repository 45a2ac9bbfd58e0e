"""Python calls and objects as text, and the text back as values without ``eval``.

Read in this order: ``annotations`` (types to a model), ``literals``, ``objects`` (the model to rules), ``values``
(text to values by the same model).
"""
