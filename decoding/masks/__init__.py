"""Token bitmasks: int32 words, bit 1 = allowed (convention 6).

Read in this order: ``bitmask`` (allocate, fill, apply), ``on_device`` (apply by torch operations alone).
"""
