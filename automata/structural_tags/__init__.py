"""Structural tags: free text with tagged parts, in the format that xgrammar, vLLM and SGLang exchange.

A structural tag is a JSON document. Free text extends to the first occurrence of a trigger or an end, so the borders of
its parts are unambiguous; apart from the contents of tags the language is regular. Beginnings, ends and triggers may be
special tokens, their spellings, or both.

Invariant: a text determines which tag begins and ends where, whatever its contents are. Cost: linear in the document;
free text has a few states for each byte of its delimiters.

Read in this order: ``structural_tag`` (the public function); ``documents`` (from JSON to formats), ``special_tokens``
(special tokens in strings), ``free_text``, ``closing``, ``building`` (formats to expressions), ``assembling``,
``token_text``, ``end_tokens``, ``schemas``; ``xml_writing`` (XML styles of parameters), ``excluding`` (substrings that
string values must not contain); ``sentinels`` (byte strings that separate the parts of a text for its parser).
"""
