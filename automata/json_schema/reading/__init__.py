"""From a schema document to sets of values, one level of a value at a time.

Read in this order: ``source`` (documents, identifiers, references) with ``metaschemas`` (the drafts' own documents),
``keywords`` (their form and draft), ``forms`` (whether all have the form that their draft asks for), ``meaning`` (the
applicators) with ``keys`` (which schemas say the same), ``leaves`` (the keywords of one type), ``rivals`` (``oneOf``),
``unevaluated`` and ``closing``.
"""
