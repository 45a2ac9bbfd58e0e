"""JSON Schema: the language of the JSON texts whose values a schema allows.

A schema passes through three rooms: ``reading`` (documents to formulas to sets of values), ``sets`` (the algebra of
those sets) and ``writing`` (sets to grammar rules). ``json_schema`` is the public function that calls them in this
order. ``contradiction`` finds the keywords that leave no value; ``providers`` lists the keywords that hosted structured
outputs reject; ``comparing`` decides inclusion and equivalence of two schemas, and ``changes`` reports where they
differ; ``recipes`` make a constraint again from little memory; ``python_types`` and ``python_schema`` derive schemas
from Python types, with ``python_texts`` and ``python_urls`` for the types that pydantic serializes as strings.
"""
