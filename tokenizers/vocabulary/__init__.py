"""Vocabularies: the bytes of each token id, and the detokenizing transducer.

Invariant: a vocabulary is immutable, and special and empty tokens are on no byte path (convention 4). Cost: linear in
the bytes of all tokens; tries are made when they are first needed.

Read in this order: ``tables`` (limits and checks), ``token_index`` (ids by bytes), ``encoding`` (how a text becomes
tokens), ``vocabulary``, ``doors`` (methods that call the adapters), ``detokenizer``, ``census``, ``token_classes`` (the
tokens for which the names in a constraint stand).
"""
