"""Reversal of expressions, and substitution of bytes; both keep the form of an expression.

Reversal commutes with union, intersection, complement and repetition, and reverses the order of concatenations, so most
of an expression is reversed without determinization. What remains are leaves with a direction: automata, recursions and
scopes of look-behind. Only those are determinized and reversed by OpenFst. Substitution of bytes is similar: a
permutation of bytes commutes with everything; a map that merges bytes commutes with everything except intersections,
complements and strings that must differ. These are determinized, and so are automata.

Rejected: determinizing the whole language, which fails for ``&`` and ``~`` of languages that are small as expressions
and large as automata.

Calls of rules are unchanged, so that the bodies of a grammar are transformed one by one.

Cost: linear in the expression; exponential in the states of such a leaf in the worst case.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tokenfst._native import Lexicon
from tokenfst.automata.expressions.expression import Dfa, Expr, Op, byte_set, literal, machine, words
from tokenfst.automata.expressions.tables import frozen_dfa
from tokenfst.automata.openfst.byte_automata import map_dfa, reverse_dfa
from tokenfst.errors import AlgebraError

Determinize = Callable[[Expr], Dfa]
"""Determinizes an expression without calls."""

_DIRECTED = (Op.MACHINE, Op.VARIABLE, Op.SCOPE, Op.WORDS, Op.SELECTION)
_MERGED = (Op.MACHINE, Op.VARIABLE, Op.SCOPE, Op.SELECTION, Op.INTERSECT, Op.COMPLEMENT)
_OF_TOKENS = (Op.ONE_TOKEN, Op.TOKENS, Op.FEW_TOKENS)
_DIFFERING = (Op.OPENED, Op.FRESH)


def reverse(root: Expr, determinize: Determinize) -> Expr:
    """The expression of the reversed words. Raises AlgebraError for parts that cannot be reversed."""

    def leaf(node: Expr) -> Expr | None:
        _refuse("reverse", node)
        if node.op in _DIRECTED:
            return machine(reverse_dfa(_dfa(node, determinize)), node.source)
        if node.op is Op.LITERAL:
            assert isinstance(node.value, bytes)
            return literal(node.value[::-1])
        return None

    return _rewritten(root, leaf, turned=True)


def map_bytes(root: Expr, table: bytes, determinize: Determinize) -> Expr:
    """The expression of the words with each byte replaced by ``table``. Raises AlgebraError as ``reverse`` does."""
    permutes = len(set(table)) == 256
    whole = (Op.VARIABLE,) if permutes else _MERGED

    def leaf(node: Expr) -> Expr | None:
        _refuse("map_bytes", node)
        if node.op is Op.MACHINE or node.op in whole:
            dfa = _dfa(node, determinize)
            return machine(_permuted(dfa, table) if permutes else map_dfa(dfa, table), node.source)
        if node.op is Op.LITERAL:
            assert isinstance(node.value, bytes)
            return literal(node.value.translate(table))
        if node.op is Op.BYTES:
            assert isinstance(node.value, int)
            return byte_set(sum(1 << each for each in {table[byte] for byte in _bytes_of(node.value)}))
        if isinstance(node.value, Lexicon):
            return words(Lexicon(sorted({word.translate(table) for word in node.value.words()})))
        return None

    return _rewritten(root, leaf, turned=False)


def _rewritten(root: Expr, leaf: Callable[[Expr], Expr | None], *, turned: bool) -> Expr:
    """The expression with the nodes that ``leaf`` replaces replaced, and the others of the same kind; if ``turned``,
    concatenations the other way round.
    """
    done: dict[Expr, Expr] = {}
    stack: list[tuple[Expr, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if node in done:
            continue
        if ready:
            args = tuple(done[arg] for arg in node.args)
            if turned and node.op is Op.CONCAT:
                args = args[::-1]
            done[node] = Expr(node.op, args, node.value, node.source, node.size, node.nullable)
        elif (made := leaf(node)) is not None:
            done[node] = made
        elif not node.args:
            done[node] = node
        else:
            stack.append((node, True))
            stack.extend((arg, False) for arg in node.args)
    return done[root]


def _refuse(operation: str, node: Expr) -> None:
    if node.op in _OF_TOKENS:
        raise AlgebraError(
            f"{operation}: this constraint constrains tokens, not only bytes: apply {operation} to its parts that are "
            "text, and combine the results"
        )
    if node.op in _DIFFERING:
        raise AlgebraError(
            f"{operation}: strings of this constraint must differ from each other (names of a JSON object, unique "
            "items), which a sequence remembers while it reads JSON from left to right: make the schema with "
            'repeated_names="allow" or additional_properties="forbid"'
        )


def _dfa(node: Expr, determinize: Determinize) -> Dfa:
    return node.value if isinstance(node.value, Dfa) else determinize(node)


def _permuted(dfa: Dfa, table: bytes) -> Dfa:
    classes = np.empty_like(dfa.classes)
    classes[np.frombuffer(table, np.uint8)] = dfa.classes
    return frozen_dfa(classes, dfa.table, dfa.accepting, dfa.start)


def _bytes_of(bits: int) -> list[int]:
    return [byte for byte in range(256) if bits >> byte & 1]
