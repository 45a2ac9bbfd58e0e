"""What all commands read: ``groups`` (options in groups), ``tokens`` (vocabularies), ``budgets``, ``json_files``, and
what the shell completes (``completion``)."""
