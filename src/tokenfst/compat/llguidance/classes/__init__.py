"""The classes that llguidance's package exports, and the grammars that they take. Import them from the package.

Read in this order: ``grammars`` (from the text of a grammar to a constraint), ``tokenizer``, ``matcher``, ``executor``
(masks of many matchers at once), ``interpreter``, ``compilers`` (deprecated in llguidance), ``structural_tag``.
"""
