"""JSON strings and numbers as texts: from what they mean to every way to write them (RFC 8259).

Numbers are compared as exact decimal values, digit by digit; no float takes part.

Read in this order: ``strings`` (with what a ``Spelling`` is), ``bounds`` (intervals), ``multiples`` (``multipleOf``),
``numbers`` (sets of numbers and their algebra), ``texts`` (how their members are written).
"""
