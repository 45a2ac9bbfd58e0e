"""Parsing of texts to tool calls, whole or incrementally.

The automaton of the structural tag with sentinels marks where each part of a text begins and ends. The text between two
sentinels is parsed according to the role of that part. No function here searches a text for the delimiters of a format.

Invariant: an event is true of every text that continues the text so far. Cost: linear in the text, one step of the
automaton for each byte.

Read in this order: ``values`` (JSON and Python's literals), ``elements`` (parameters in a model's style), ``replies``
(the parsed reply), ``growing_text`` (text reported in pieces), ``call_events`` (events as soon as they are determined),
``reader``.
"""
