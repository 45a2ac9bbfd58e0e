"""Commands that create artifacts and inspect files: ``compiling`` (with ``batches``: many into a store), ``stores``
(the entries of a store), ``inspecting``, ``vocabularies``.
"""
