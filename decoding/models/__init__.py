"""The language-model interface of the decoders, and the choice of a token.

Invariant: logits belong to the current rows, scored with the positions that they would have alone. Cost: one call of
the model for each extension.

Read in this order: ``language_model`` (batches of growing token sequences), ``token_tree`` and ``tree_session``,
``sampling``, ``fused`` (adds the scores of weighted languages).
"""
