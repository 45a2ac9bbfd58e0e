"""Input that all commands share: ``groups`` (option groups), ``tokens`` (vocabularies), ``budgets``, ``json_files``,
and shell completion (``completion``).
"""
