"""Tools: calls of functions in a model's own format, as one constraint that masks a text and reads it back.

The idea: a table says how each model writes calls; tools and a choice make a structural tag of a row of it. Beside the
tag stands what each of its parts is for (a call, its arguments, reasoning); the same tag with signs is what
``parse`` reads texts by, so nothing else has an opinion of what a call is.

Read in this order: ``tools``; the room ``definitions`` (what a tool is, the table of formats); ``documents`` (the
structural tag and what its parts are for), ``python_arguments`` and ``inputs`` (arguments that are no JSON),
``constraints``; the room ``reading`` (texts back to calls); ``requests`` (OpenAI's requests).
"""
