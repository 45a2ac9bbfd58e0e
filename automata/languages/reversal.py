"""Reversal of expressions: the words of a language, read backwards.

The idea: reversal passes through union, intersection, complement and repetition, and turns concatenations
round, so most of an expression is reversed as it stands, at no cost and without determinizing anything. What
is left are leaves that have a direction of their own: automata, recursions and scopes of look-behind. Each of
those alone is made a deterministic automaton and reversed by OpenFst. Rejected: determinizing the whole
language and reversing that, which fails on ``&`` and ``~`` of languages that are small as expressions and
large as automata.

Cost: linear in the expression; exponential at worst in the states of such a leaf.
"""

from __future__ import annotations

from collections.abc import Callable

from tokenfst.automata.expressions.expression import Dfa, Expr, Op, literal, machine
from tokenfst.automata.openfst.fst import reverse_dfa

_WHOLE = (Op.MACHINE, Op.VARIABLE, Op.SCOPE, Op.WORDS, Op.SELECTION)


def reverse(root: Expr, determinize: Callable[[Expr], Dfa]) -> Expr:
    """The expression of the reversed words. ``determinize`` makes the automaton of an expression."""
    done: dict[int, Expr] = {}
    stack: list[tuple[Expr, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if id(node) in done:
            continue
        if node.op in _WHOLE:
            dfa = node.value if isinstance(node.value, Dfa) else determinize(node)
            done[id(node)] = machine(reverse_dfa(dfa), node.source)
        elif node.op is Op.LITERAL:
            assert isinstance(node.value, bytes)
            done[id(node)] = literal(node.value[::-1])
        elif not node.args:
            done[id(node)] = node
        elif ready:
            args = tuple(done[id(arg)] for arg in node.args)
            done[id(node)] = Expr(
                node.op, args[::-1] if node.op is Op.CONCAT else args, node.value, node.source
            )
        else:
            stack.append((node, True))
            stack.extend((arg, False) for arg in node.args)
    return done[id(root)]
