"""JSON Schema: the texts of the values that a schema allows.

A schema goes through three rooms: ``reading`` (documents to formulas to sets of values), ``sets`` (the algebra of
those sets), ``writing`` (sets to rules of a grammar). ``door`` calls them in that order; ``contradiction`` says which
keywords leave no value, ``providers`` which ones the structured outputs of others do not take; ``comparing`` says how
the values of two schemas lie to each other, and ``changes`` where they do not agree; ``python_types`` and
``python_schema`` make schemas of Python types, with ``python_texts`` and ``python_urls`` for what pydantic writes as
strings.
"""
