"""Schema documents: their JSON texts, identifiers and references, and the keywords of each draft with their forms.

Nothing here knows what a keyword means.

Invariant: a place is a document with a JSON pointer, so every later error can name it. Cost: linear in the document.

Read in this order: ``schema_texts`` (JSON texts as Python values), ``source`` (documents, identifiers, references) with
``metaschemas`` (the official meta-schemas), ``keywords`` (which draft knows which keyword, and in what form), ``forms``
(checks the form of every keyword in a document).
"""
