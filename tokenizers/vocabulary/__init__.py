"""Vocabularies: which bytes each token id stands for, and the detokenizing transducer.

Read in this order: ``tables`` (limits and checks), ``vocabulary``, ``doors`` (what the adapters do for it),
``detokenizer``, ``census``.
"""
