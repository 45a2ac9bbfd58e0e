"""Commands that create artifacts and inspect files: ``compiling`` (with ``batches``: many into a store),
``inspecting``, ``vocabularies``.
"""
