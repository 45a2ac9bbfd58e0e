"""Adapters for inference engines: each engine keeps its own decoding loop and requests masks here.

Read in this order: ``continuous_batching`` (transformers); ``requests`` (the constraint of a server request),
``vllm_backend`` and ``vllm_plugin``; ``sglang_backend`` and ``sglang_plugin``; ``text_rows`` (loops that pass the whole
token sequence at each step), ``llama_cpp``, ``llama_sampler``, ``mlx``, ``onnx_genai``, ``tensorrt_llm``.
"""
