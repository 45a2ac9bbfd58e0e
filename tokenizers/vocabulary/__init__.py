"""Vocabularies: the bytes of each token id, and the detokenizing transducer.

Read in this order: ``tables`` (limits and checks), ``token_index`` (ids by bytes), ``vocabulary``, ``doors`` (methods
that call the adapters), ``detokenizer``, ``census``, ``token_classes`` (the tokens for which the names in a constraint
stand).
"""
