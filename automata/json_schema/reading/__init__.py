"""Translation of a schema document to sets of values, one nesting level of a value at a time.

Read in this order: ``meaning`` (applicators) with ``keys`` (keys under which equal sub-schemas are shared) and
``plain_parts`` (the native reader of sub-schemas), ``typed_keywords`` (keywords of one type), ``one_of`` with
``overlaps`` (which branches of a ``oneOf`` can overlap), ``unevaluated`` and ``closing``.
"""
