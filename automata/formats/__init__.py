"""The values of JSON Schema's ``format`` keyword as languages of string contents.

To add a format, write it as a language in the file of its kind, name it in ``registry``, and add its cases to
``tests/automata/formats/test_formats.py``. A format accepts exactly the strings that its RFC defines.

Read in this order: ``registry``, then any of ``time``, ``host``, ``mail``, ``uri``, ``pattern``.
"""
