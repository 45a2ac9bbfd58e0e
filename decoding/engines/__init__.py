"""Adapters for inference engines: each engine keeps its own decoding loop and requests masks here.

Read in this order: ``continuous_batching`` (transformers); ``requests`` (the constraint of a server request) and
``served_scores`` (scores that requests name); ``vllm_backend``, ``vllm_plugin`` and ``vllm_scores``;
``sglang_backend``, ``sglang_plugin`` and ``sglang_scores``; ``text_rows`` (loops that pass the whole token sequence at
each step), ``llama_cpp``, ``llama_sampler``, ``mlx``, ``onnx_genai``, ``tensorrt_llm``.
"""
