"""Grammars: context-free languages as immutable values, and what is put together out of several constraints.

Read in this order: ``grammar`` (the value), ``operators`` (its algebra), ``conflict`` (where one stack is not enough),
``network`` (pictures), ``captured`` (named rules), ``assembly`` (a language if all parts are, else a grammar),
``lists`` and ``templates``, ``repairing`` (the nearest text).
"""
