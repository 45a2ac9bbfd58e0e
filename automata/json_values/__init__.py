"""JSON strings and numbers as texts: from what they mean to every way to write them (RFC 8259).

Numbers are compared as exact decimal values, digit by digit; no float takes part.

Read in this order: ``strings``, ``numbers`` (sets of numbers and their algebra), ``bounds`` (intervals),
``multiples`` (``multipleOf``).
"""
