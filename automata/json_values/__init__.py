"""JSON strings and numbers: from a value to all of its spellings (RFC 8259).

Numbers are compared as exact decimal values, digit by digit. Floating-point numbers are never used.

Invariant: a set of numbers is empty exactly if its normal form is that of the empty set. Cost: linear in the digits of
the bounds; moduli that are independent multiply, within the budget.

Read in this order: ``strings`` (and the class ``Spelling``), ``bounds`` (intervals), ``multiples`` (``multipleOf``),
``numbers`` (sets of numbers and their algebra), ``texts`` (the spellings of their members).
"""
