"""Commands that make artifacts and look into files: ``compiling`` (with ``batches``: many into a store),
``inspecting``, ``vocabularies``."""
