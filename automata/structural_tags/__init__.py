"""Structural tags: free text with tagged parts, as xgrammar, vLLM and SGLang exchange them.

A tag is a document in JSON. Free text goes up to the first mark in it, a trigger or an end, so borders are never in
doubt; the result is regular but for the contents. Marks may be special tokens, their spellings, or both.

Read in this order: ``door``; ``documents`` (from JSON to formats), ``marks`` (strings and special tokens),
``free_text``, ``closing``, ``building`` (formats to expressions), ``assembling``, ``token_text``, ``stopping`` (end
tokens), ``schemas``; ``xml_writing`` (parameters of calls as models write them), ``excluding`` (what may not stand in
strings); ``signs`` (what a reader of texts goes by).
"""
