"""The values of JSON Schema's ``format`` keyword as languages of string contents.

To add a format, write it as a language in the file of its kind, name it in ``registry``, and add its cases to
``tests/automata/formats/test_formats.py``. A format accepts only strings that its RFC defines as valid.

Invariant: every word is a valid value; values that are left out are named (``Format.missing``). Cost: milliseconds for
a language and its first state; further states are made on demand.

Read in this order: ``registry``, then any of ``time``, ``host``, ``mail``, ``uri``, ``pattern``.
"""
