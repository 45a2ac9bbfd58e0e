"""Adapters to engines that serve models: each engine keeps its own loop, and asks here for masks.

Read in this order: ``continuous_batching`` (transformers); ``requests`` (what a server is asked for), ``vllm_backend``
and ``vllm_plugin``; ``sglang_backend`` and ``sglang_plugin``; ``text_rows`` (loops that show the ids so far),
``llama_cpp``, ``llama_sampler``, ``mlx``, ``onnx_genai``, ``tensorrt_llm``.
"""
