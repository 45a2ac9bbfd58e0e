"""Adapters for inference engines: each engine keeps its own decoding loop and requests masks here.

Invariant: a text is complete within the request's limit of tokens, unless the engine hides tokens from its constraint
(reasoning). Cost of a step: an accepted token and a mask for each row.

Read in this order: ``continuous_batching`` (transformers); the room ``shared`` (requests of servers, and loops that
pass the whole token sequence at each step); ``vllm_backend``, ``vllm_plugin`` and ``vllm_scores``; ``sglang_backend``,
``sglang_plugin`` and ``sglang_scores``; ``llama_cpp``, ``llama_sampler``, ``mlx``, ``onnx_genai``, ``tensorrt_llm``.
"""
