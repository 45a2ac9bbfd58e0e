"""Input that all commands share: ``groups`` (option groups), ``tokens`` (vocabularies), ``budgets``, ``json_files``,
``signing`` (keys of stores), and shell completion (``completion``).
"""
