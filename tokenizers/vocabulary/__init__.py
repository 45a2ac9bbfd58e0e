"""Vocabularies: the bytes of each token id, and the detokenizing transducer.

Read in this order: ``tables`` (limits and checks), ``vocabulary``, ``doors`` (methods that call the adapters),
``detokenizer``, ``census``.
"""
