"""Translation of a schema document to sets of values, one nesting level of a value at a time.

Invariant: a value set has exactly the values that the schema allows; keywords that may be relaxed are left out and
reported. Cost: each sub-schema once; a ``oneOf`` compares the pairs of branches that no constant separates.

Read in this order: ``meaning`` with ``applicators`` (conditions, dependencies, unevaluated parts), ``keys`` (keys under
which equal sub-schemas are shared) and ``plain_parts`` (the native reader of sub-schemas), ``typed_keywords`` (keywords
of one type), ``one_of`` with ``overlaps`` (which branches of a ``oneOf`` can overlap) and ``discriminators`` (members
in which they differ), ``unevaluated`` and ``closing``.
"""
