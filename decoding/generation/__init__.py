"""``Generator``: takes a model and a Python type, and returns an instance of that type.

It combines other rooms. ``targets`` and ``tool_calls`` turn a type or constraint into a language and a parser;
``server_targets`` turns it into a request that a server understands. ``hosts`` is the protocol of anything that
generates, implemented by ``transformers_host``, ``llama_host``, ``mlx_host`` and ``genai_host`` for local models and by
``openai_host`` with ``endpoint`` for servers. ``stream`` yields text as it arrives.

Invariant: a returned value was parsed from a text that the constraint accepts. Cost: that of the model; the last
targets stay compiled.

Read in this order: ``server_targets``, ``targets``, ``tool_calls``, ``endpoint``, ``hosts``, ``transformers_host``,
``llama_host``, ``mlx_host``, ``genai_host``, ``openai_host``, ``stream``, ``generator``.
"""
