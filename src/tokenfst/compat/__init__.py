"""Modules with the names and signatures of other libraries, so that switching an engine takes one changed import.

``tokenfst.compat.xgrammar`` and ``tokenfst.compat.llguidance``; docs/engines/compat.md lists the differences.
"""
