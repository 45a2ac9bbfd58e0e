"""One decoding by canonical token sequences."""

from __future__ import annotations

from tokenfst.decoding.canonical_nodes import Node
from tokenfst.decoding.node_matcher import NodeMatcher


class CanonicalMatcher(NodeMatcher[Node]):
    """One decoding under a ``CanonicalAutomaton``; its methods mean what those of ``Matcher`` mean."""
