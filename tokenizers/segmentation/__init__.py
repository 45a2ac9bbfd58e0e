"""What a tokenizer makes of a text: where it cuts, and which byte pairs it merges.

Read in this order: ``character_kinds``, ``split_pattern`` (the pattern that cuts), ``cuts`` (the same, token by
token), ``byte_pairs`` (which tokens may stand beside each other), ``tokenizer`` (all of it together).
"""
