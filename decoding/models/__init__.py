"""Language models as the decoders see them, and how a token is chosen.

Read in this order: ``language_model`` (rows of tokens that grow), ``token_tree`` and ``tree_session``, ``sampling``,
``fused`` (scores of weighted languages added).
"""
