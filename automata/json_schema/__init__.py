"""JSON Schema: the language of the JSON texts whose values a schema allows.

A schema passes through four rooms: ``documents`` (texts, references, the forms of keywords), ``reading`` (documents to
formulas to sets of values), ``sets`` (the algebra of those sets) and ``writing`` (sets to grammar rules).
``json_schema`` is the public function that calls them in this order. ``contradiction`` finds the keywords that leave no
value, and ``unknown_keywords`` those that constrain nothing; ``providers`` lists the keywords that hosted structured
outputs reject; ``comparing`` decides inclusion and equivalence of two schemas, and ``changes`` reports where they
differ; ``recipes`` store how a constraint is made, in little memory; ``python_types`` and ``python_schema`` derive
schemas from Python types, with ``python_texts`` and ``python_urls`` for the types that pydantic serializes as strings.

Invariant: a text is accepted exactly if its value is valid and its spelling is one that the options allow. Cost: each
sub-schema is translated once; combinations of arrays and objects multiply their cases, within the budget.
"""
