"""The short way in: ``Generator`` takes a model and a Python type and returns an instance of it.

Everything here is put together out of other rooms: what a type or constraint means (``targets``, ``tool_calls``) and
how a server is told (``said``), a model that generates under it (``hosts``, ``transformers_host``, ``llama_host``,
``mlx_host``, ``genai_host``; a server: ``endpoint``, ``openai_host``), pieces of text as they come (``stream``), and
the face of all (``generator``).

Read in this order: ``said``, ``targets``, ``tool_calls``, ``endpoint``, ``hosts``, ``transformers_host``,
``llama_host``, ``mlx_host``, ``genai_host``, ``openai_host``, ``stream``, ``generator``.
"""
