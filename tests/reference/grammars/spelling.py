"""The slow twin of ``tokenfst lint --vocabulary``: which rules take part in texts that token sequences spell.

The texts of all token sequences are a nondeterministic automaton whose states are what is left of a token. Each
part of a rule is the set of pairs of states that a word of it leads between, by iteration from nothing; then the
pairs that are needed for a whole text are followed from the start downwards. Unions, concatenations, calls and
words only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tokenfst.automata.expressions.expression import Expr, Op

Pairs = frozenset[tuple[bytes, bytes]]
"""States before and after; a state is the rest of a token, and b"" is where the next one begins."""


def used(rules: Mapping[str, Expr], start: str, tokens: Sequence[bytes]) -> set[str]:
    """The rules in derivations of texts that ``tokens`` spell."""
    states = sorted({token[k:] for token in tokens for k in range(len(token))} | {b""})
    known: dict[str, Pairs] = dict.fromkeys(rules, frozenset())

    def step(state: bytes, byte: int) -> set[bytes]:
        begun = [state] if state else tokens
        return {rest[1:] for rest in begun if rest[0] == byte}

    def pairs(node: Expr) -> Pairs:
        if node.op is Op.CALL:
            return known[str(node.value)]
        if node.op is Op.UNION:
            return frozenset().union(*map(pairs, node.args))
        if node.op is Op.CONCAT:
            found = frozenset((state, state) for state in states)
            for arg in node.args:
                found = joined(found, pairs(arg))
            return found
        ends = {state: {state} for state in states}
        for byte in node.value if isinstance(node.value, bytes) else b"":
            ends = {
                state: {after for each in some for after in step(each, byte)} for state, some in ends.items()
            }
        return frozenset((state, after) for state, some in ends.items() for after in some)

    while (following := {name: pairs(body) for name, body in rules.items()}) != known:
        known = following
    needed: dict[str, Pairs] = {}
    work: list[tuple[Expr, Pairs]] = [(Expr(Op.CALL, value=start), frozenset({(b"", b"")}))]
    while work:
        node, wanted = work.pop()
        wanted &= pairs(node)
        if not wanted:
            continue
        if node.op is Op.CALL:
            name = str(node.value)
            if not wanted <= needed.get(name, frozenset()):
                needed[name] = needed.get(name, frozenset()) | wanted
                work.append((rules[name], needed[name]))
        elif node.op is Op.UNION:
            work += ((arg, wanted) for arg in node.args)
        elif node.op is Op.CONCAT:
            first, rest = node.args[0], Expr(Op.CONCAT, node.args[1:])
            after = pairs(rest)
            split = [(a, b, c) for a, b in pairs(first) for b2, c in after if b == b2 and (a, c) in wanted]
            work.append((first, frozenset((a, b) for a, b, _ in split)))
            if rest.args:
                work.append((rest, frozenset((b, c) for _, b, c in split)))
    return set(needed)


def joined(left: Pairs, right: Pairs) -> Pairs:
    return frozenset((a, c) for a, b in left for b2, c in right if b == b2)
