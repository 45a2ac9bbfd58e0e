"""The short way in: ``Generator`` takes a model and a Python type and returns an instance of it.

Everything here is put together out of other rooms: what a type or constraint means (``targets``, ``tool_calls``), a
model that generates under it (``hosts``, ``transformers_host``, ``llama_host``), pieces of text as they come
(``stream``), and the face of all (``generator``).

Read in this order: ``targets``, ``tool_calls``, ``hosts``, ``transformers_host``, ``llama_host``, ``stream``,
``generator``.
"""
