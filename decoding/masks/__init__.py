"""Token bitmasks: int32 words, bit 1 = allowed (convention 6).

Invariant: logits beyond the mask are masked out, and allowed logits do not change. Cost: one pass over the logits.

Read in this order: ``bitmask`` (allocate, fill, apply), ``on_device`` (apply by torch operations alone).
"""
