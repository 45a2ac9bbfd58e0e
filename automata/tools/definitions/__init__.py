"""What is said of tools before there is a text: what they are, which may be called, and how a model writes calls.

The idea: each kind of definition becomes one ``Tool``, each ``tool_choice`` one ``Chosen``, and each model's format is
a row of a table. Whatever is wrong is a ``ToolError`` at the pointer where it stands.

Read in this order: ``places``, ``definitions`` (what a tool is), ``choosing``, ``formats`` (the table), ``sketches``
(structural tags in the making, and what their parts are for).
"""
