"""Commands that ask a question about a constraint, one file for each command.

``checking``, ``comparing`` (with ``schema_changes`` for two JSON Schemas), ``counting``, ``drawing``, ``linting``,
``listing``, ``repairing``, ``sampling``.
"""
