"""Adapters to engines that serve models: each engine keeps its own loop, and asks here for masks.

Read in this order: ``continuous_batching`` (transformers); ``requests`` (what a server is asked for), ``vllm_backend``
and ``vllm_plugin``; ``sglang_backend`` and ``sglang_plugin``; ``llama_cpp``.
"""
