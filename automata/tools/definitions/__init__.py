"""Declarations of tools: their definitions, which of them may be called, and each model's call format.

Each kind of definition becomes one ``Tool``, each ``tool_choice`` one ``Chosen``, and each model's format is a row of a
table. An invalid declaration raises ``ToolError`` with a JSON pointer to the faulty part.

Invariant: a declaration is checked completely before anything is built. Cost: linear in the declarations.

Read in this order: ``places``, ``definitions`` (definitions of tools), ``choosing``, ``formats`` (the table),
``sketches`` (structural tags under construction, and the roles of their parts).
"""
