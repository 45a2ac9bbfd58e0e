"""Modules with the names and calls of other libraries, so that an engine is switched by one line of imports.

``tokenfst.compat.xgrammar`` and ``tokenfst.compat.llguidance``; docs/engines/compat.md lists what differs.
"""
