"""Vocabularies of other libraries and files. A vocabulary's bytes are what the library's own ``decode`` writes.

To add one: write a module here that returns a ``Vocabulary``, and name it in ``sources``.

Read in this order: ``sources`` (vocabularies by name), ``decoder_chain``, ``normalized_tokens`` and ``huggingface``,
then any other: ``mistral``, ``sentencepiece``, ``tiktoken``, ``symbols``, ``token_file``.
"""
