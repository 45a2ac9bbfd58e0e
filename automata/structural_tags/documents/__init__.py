"""The document of a structural tag: JSON to formats, which are values, each with the place that it was read from.

Every field is known and of its type, or an error names the place in the document. Nothing here makes an expression.

Read in this order: ``formats`` (the values), ``xml_styles`` (how models write parameters of calls), ``reading`` (from
the document to formats).
"""
