"""The document of a structural tag, parsed from JSON to immutable format values with their positions.

Every field is known and has its type, or an error names its position in the document. No expression is built here.

Invariant: a format that was read is complete and well-formed. Cost: linear in the document.

Read in this order: ``formats`` (the values), ``xml_styles`` (the styles in which models write call parameters),
``fields`` (the fields of one object), ``reading`` (from the document to formats).
"""
