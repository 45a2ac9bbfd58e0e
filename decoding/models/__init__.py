"""The language-model interface of the decoders, and the choice of a token.

Read in this order: ``language_model`` (batches of growing token sequences), ``token_tree`` and ``tree_session``,
``sampling``, ``fused`` (adds the scores of weighted languages).
"""
