"""The values of JSON Schema's ``format`` as languages of string contents.

To add a format: write it as a language in the file of its kind, name it in ``registry``, and add its cases to
``tests/automata/formats/test_formats.py``. A format is exactly what its RFC says.

Read in this order: ``registry``, then any of ``time``, ``host``, ``mail``, ``uri``, ``pattern``.
"""
