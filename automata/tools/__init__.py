"""Tool calls in a model's own format: one constraint that both masks the text and parses it.

A table describes how each model writes calls. One row of that table turns tools and a tool choice into a structural
tag. A parallel description says what each part of the tag is for (a call, its arguments, reasoning). The same tag, with
sentinels added, guides ``parse``, so masking and parsing always agree on what a call is.

Invariant: every text of the constraint parses, to calls that the tools' schemas allow. Cost: that of the structural
tag; parsing is linear in the text.

Read in this order: ``tools``; the room ``definitions`` (what a tool is, the table of formats); ``documents`` (the
structural tag and the roles of its parts), ``python_arguments`` and ``inputs`` (arguments that are not JSON),
``constraints``; the room ``reading`` (texts back to calls); ``requests`` (OpenAI's requests).
"""
