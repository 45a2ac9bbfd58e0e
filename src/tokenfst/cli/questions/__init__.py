"""Commands that ask about a constraint, one file a command.

``checking``, ``comparing`` (with ``schema_changes`` for two JSON Schemas), ``counting``, ``drawing``, ``linting``,
``listing``, ``repairing``, ``sampling``.
"""
