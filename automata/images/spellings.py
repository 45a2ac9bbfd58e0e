r"""The inverse image of a language under a code: all spellings of its texts, in any code of ``characters.codes``.

The idea: replace each character by its spellings and keep the form of the expression, so that repetitions stay
counted, boolean operations lazy, and nothing is determinized. Decoding is a function on the valid spellings J* (J:
the spellings of one character, a prefix code). Inverse images under a function commute with union, intersection and
complement. They commute with concatenation and repetition if every division of a text is between two characters.
This is the case if all parts but one are *whole*: all their words are valid UTF-8. All expressions of ``regex`` are
of this kind: their leaves are whole characters, and "any bytes" in them stands for "the rest of the text" or "the
text so far".

A part can be written in two ways. *Strict*: its words are in J*. *Loose*: it is only right on J*, because its
surroundings are in J*. That is enough for the last part of a concatenation, for an operand of an intersection with
a strict one, and for the text that a look-behind reads. So complements and look-ahead need no further intersection.
(J is not a suffix code: ``\\n`` ends in ``\n``. "Any bytes, then a newline" must therefore become J*, then a
newline.)

A part that is not whole (parts of characters, written byte by byte, under concatenation) is determinized, read
character by character, and spelled again; so is every automaton that is more than a set of characters.

Cost: linear in the expression, plus one small automaton for each set of characters, once in a process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tokenfst._native import Lexicon
from tokenfst.automata.characters.utf8 import (
    Characters,
    characters,
    normalize,
    single_characters,
)
from tokenfst.automata.expressions.expression import (
    ALL_BYTES,
    EMPTY,
    Dfa,
    Expr,
    Op,
    Unordered,
    behind,
    below,
    body_of,
    bounds_of,
    complement,
    concat,
    intersect,
    repeat,
    scope,
)
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.expressions.rebuilding import rebuilt
from tokenfst.automata.images.coding import ASCII_BYTES, BETWEEN_LOOKS, Code, decoded, text_of
from tokenfst.automata.languages.engine import make_automaton, make_tables
from tokenfst.budget import Budget
from tokenfst.errors import ConstraintError


def inverse_image(expr: Expr, code: Code, budget: Budget) -> Expr:
    """The spellings of those words of ``expr`` that are valid UTF-8.

    ``budget`` bounds the automata of parts that have to be determinized, and the seconds of all.
    """
    return _Mapper(expr, code, Deadline(budget, "the spellings of a language")).mapped()


def images_of_rules(rules: Mapping[str, Expr], code: Code, budget: Budget) -> dict[str, Expr]:
    """The spellings of the words of each rule of a grammar, by the rule's name.

    The spellings of a text are the spellings of what its rules read, one after the other, because every rule reads
    whole characters. Raises ConstraintError for a rule that reads parts of characters.
    """
    deadline = Deadline(budget, "the spellings of a grammar")
    found = {}
    for name, body in rules.items():
        mapper = _Mapper(body, code, deadline, calls=True)
        facts = mapper.facts[id(body)]
        if not facts.whole or not (facts.exact or all(node.op is not Op.CALL for node in body.walk())):
            raise ConstraintError(f"the rule {name!r} reads parts of characters")
        found[name] = mapper.mapped()
    return found


@dataclass(slots=True, eq=False)
class _Facts:
    """Facts about a node. If a fact is not certain, it has the value that is safe."""

    whole: Final[bool]
    """Whether all words are valid UTF-8."""
    empty: Final[bool]
    """Whether the empty word may be one of them."""
    exact: Final[bool]
    """Whether the inverse image commutes with the node's operator, and with those of its operands."""
    free: Final[frozenset[int]]
    """Variables (and 0 for look-behind) that are bound outside of the node."""


_NONE = frozenset[int]()
_UNKNOWN = frozenset((0,))
_UNBOUND = (_NONE, _UNKNOWN)
_LETTER, _EMPTY_WORD, _BROKEN = (
    _Facts(True, False, True, _NONE),
    _Facts(True, True, True, _NONE),
    _Facts(False, False, True, _NONE),
)
# Looked up once, because access to a member of an enumeration costs more than the other work for most nodes.
_CONCAT, _UNION, _REPEAT, _VARIABLE = Op.CONCAT, Op.UNION, Op.REPEAT, Op.VARIABLE
_OPEN = frozenset((_CONCAT, _UNION, _REPEAT))


def _is_universal(node: Expr) -> bool:
    """Whether a node has all words, or all except the empty one."""
    return (
        node.op is _REPEAT and body_of(node).value == ALL_BYTES and bounds_of(node) in ((0, None), (1, None))
    )


class _Mapper:
    def __init__(self, root: Expr, code: Code, deadline: Deadline, *, calls: bool = False) -> None:
        """``calls``: the root may call rules, whose words are valid UTF-8."""
        self.root, self.code, self.deadline, self.calls = root, code, deadline, calls
        self.read: dict[int, Characters] = {}
        self.partial: set[int] = set()
        """Variables that were found not to be whole."""
        self.images = code.plain_images(root, deadline)
        """The images of parts for which a loose one is enough."""
        self.facts = self._find_facts()

    # --- what can be mapped in place ------------------------------------------------------------------

    def _find_facts(self) -> dict[int, _Facts]:
        """Compute facts bottom up. Variables are assumed to be whole until their bodies show otherwise (a fixed
        point).
        """
        while True:
            facts: dict[int, _Facts] = {}
            found = len(self.partial)
            for number, node in enumerate(below(self.root, inner=lambda each: each not in self.images)):
                if not number & BETWEEN_LOOKS:
                    self.deadline.check()
                if node in self.images:
                    facts[id(node)] = _EMPTY_WORD if node.nullable else _LETTER
                    continue
                operands = [facts.get(id(arg)) or self._variable(arg) for arg in node.args]
                facts[id(node)] = self._facts_of(node, operands) if operands else self._facts_of_leaf(node)
                if node.op is _VARIABLE and not facts[id(node)].whole:
                    self.partial.add(id(node))
            if len(self.partial) == found:
                return facts

    def _variable(self, node: Expr) -> _Facts:
        """The facts of a variable inside of its own body."""
        return _Facts(id(node) not in self.partial, True, True, frozenset((id(node),)))

    def _facts_of_leaf(self, node: Expr) -> _Facts:
        value = node.value
        match node.op:
            case Op.LITERAL:
                return _BROKEN if decoded(node) is None else _LETTER
            case Op.MACHINE:
                assert isinstance(value, Dfa)
                if single_characters(value) is not None:
                    return _LETTER
                read = self._reading(node)
                return _Facts(read.whole, read.accepting[0], True, _NONE)
            case Op.BYTES:
                assert isinstance(value, int)
                return _LETTER if value <= ASCII_BYTES else _BROKEN
            case Op.EPSILON:
                return _EMPTY_WORD
            case Op.EMPTY:
                return _LETTER
            case Op.WORDS:
                assert isinstance(value, Lexicon)
                return _BROKEN if None in map(text_of, value.words()) else _LETTER
            case Op.CALL if self.calls:
                return _EMPTY_WORD  # a look-behind may be the empty word
        raise ConstraintError(f"the rule {value!r} is called outside of a Grammar")

    def _facts_of(self, node: Expr, operands: list[_Facts]) -> _Facts:  # noqa: C901  # one case a kind
        free = _NONE
        exact, every, some, empty, any_empty = True, True, False, True, False
        for each in operands:
            if each.free:
                free |= each.free
                exact = exact and each.exact
            every, some = every and each.whole, some or each.whole
            empty, any_empty = empty and each.empty, any_empty or each.empty
        op, value = node.op, node.value
        if op is _CONCAT:
            exact = exact and (every or self._cuts_between_characters(node.args, operands))
            return _Facts(every, empty, exact, free)
        if op is _UNION:
            return _Facts(every, any_empty, exact, free)
        if op is _REPEAT:
            assert isinstance(value, tuple)
            low, high = value
            exact = exact and (every or high in (0, 1) or _is_universal(node))
            return _Facts(every, low == 0 or empty, exact, free)
        match op:
            case Op.SELECTION:
                return _Facts(every, False, False, free)
            case Op.INTERSECT:
                return _Facts(some, empty, exact and self.code.functional, free)
            case Op.COMPLEMENT:
                return _Facts(False, True, exact and self.code.functional, free)
            case Op.UNORDERED:
                assert isinstance(value, Unordered)
                return _Facts(every, value.low == 0, exact and every, free)
            case Op.VARIABLE:
                return _Facts(every, empty, exact, free - {id(node)})
            case Op.BEHIND:
                return _Facts(True, True, exact and self.code.functional, free | _UNKNOWN)
            case Op.SCOPE:
                return _Facts(every, empty, exact, free - _UNKNOWN)
        raise ConstraintError(f"the rule {value!r} is called outside of a Grammar")

    @staticmethod
    def _cuts_between_characters(parts: Sequence[Expr], facts: Sequence[_Facts]) -> bool:
        """Whether every text of a concatenation can be divided into its parts between characters.

        A whole part that is not empty is found between characters only. Parts that are not whole must be one
        between two such parts; or several that take any bytes, at most one of which must not be empty.
        """
        run: list[Expr] = []
        conditions = False
        for part, fact in zip(parts, facts, strict=True):
            if not fact.whole:
                run.append(part)
            elif not fact.empty:
                run, conditions = [], False
            conditions |= 0 in fact.free
            if len(run) > 1:
                taking = [each.value for each in run if _is_universal(each)]
                if conditions or len(taking) < len(run) or taking.count((1, -1)) > 1:
                    return False
        return True

    def _reading(self, node: Expr) -> Characters:
        if id(node) not in self.read:
            dfa = node.value
            if not isinstance(dfa, Dfa):
                with self.deadline.part() as budget:
                    dfa = make_tables(make_automaton(node, budget))
            with self.deadline.part() as budget:
                self.read[id(node)] = characters(dfa, budget.states, budget.seconds)
        return self.read[id(node)]

    # --- mapping --------------------------------------------------------------------------------------

    def mapped(self) -> Expr:
        done: dict[tuple[int, bool], Expr] = {}
        stack: list[tuple[Expr, bool, bool]] = [(self.root, True, False)]
        while stack:
            node, strict, ready = stack.pop()
            key = id(node), strict
            if ready:
                if not len(done) & BETWEEN_LOOKS:
                    self.deadline.check()
                args = [done[id(arg), how] for arg, how in self._operands(node, strict)]
                if node.op is _VARIABLE:
                    # As in `expression.recursive`: finished after the nodes that it contains.
                    done[key].finish(*args)
                else:
                    done[key] = self._composed(node, args, strict)
            elif key not in done:
                if node in self.images:
                    done[key] = self.images[node]
                elif not self.facts[id(node)].exact:
                    done[key] = self.code.automaton(self._reading(node), self.deadline, node.source)
                elif not node.args or _is_universal(node):
                    done[key] = self._leaf(node, strict)
                else:
                    if node.op is _VARIABLE:
                        done[key] = Expr(Op.VARIABLE, source=node.source)
                    stack.append((node, strict, True))
                    stack.extend((arg, how, False) for arg, how in self._operands(node, strict))
        return done[id(self.root), True]

    def _operands(self, node: Expr, strict: bool) -> list[tuple[Expr, bool]]:
        """The operands, and whether each must be strict.

        All operands of a recursion must be: each variable has one mapping, which applies to the outer variables in
        it as well.
        """
        op = node.op
        if strict and op in _OPEN:
            return [(arg, True) for arg in node.args]
        last = len(node.args) - 1
        match op:
            case Op.CONCAT:
                modes = [strict or k < last for k in range(last + 1)]
            case Op.REPEAT | Op.UNORDERED:
                modes = [True] * (last + 1)
            case Op.INTERSECT:
                modes = [strict and self.facts[id(arg)].whole for arg in node.args]
            case Op.COMPLEMENT | Op.BEHIND:
                modes = [False]
            case _:
                modes = [strict] * (last + 1)
        return [
            (arg, mode or arg.op is _VARIABLE or self.facts[id(arg)].free not in _UNBOUND)
            for arg, mode in zip(node.args, modes, strict=True)
        ]

    def _composed(self, node: Expr, args: list[Expr], strict: bool) -> Expr:
        if node.op is _CONCAT:
            return concat(*args)
        match node.op:
            case Op.UNION:
                return self.code.united(node.args, args, self.deadline)
            case Op.INTERSECT:
                outside = strict and not self.facts[id(node)].whole
                return intersect(*([self.code.any_text] if outside else []), *args)
            case Op.COMPLEMENT:
                others = complement(args[0])
                return intersect(self.code.any_text, others) if strict else others
            case Op.REPEAT | Op.UNORDERED:
                return rebuilt(node, args)
            case Op.BEHIND:
                return EMPTY if args[0] is EMPTY else behind(args[0])
            case _:
                return scope(args[0])

    def _leaf(self, node: Expr, strict: bool) -> Expr:
        match node.op:
            case Op.REPEAT:
                return repeat(self.code.any_character, bounds_of(node)[0]) if strict else node
            case Op.BYTES:
                assert isinstance(node.value, int)
                ascii_bytes = ((code, code) for code in range(0x80) if node.value >> code & 1)
                return self.code.character(normalize(ascii_bytes))
            case Op.LITERAL:
                text = decoded(node)
                return EMPTY if text is None else self.code.word(text)
            case Op.WORDS:
                assert isinstance(node.value, Lexicon)
                return self.code.words(filter(None, map(text_of, node.value.words())), self.deadline)
            case Op.MACHINE:
                assert isinstance(node.value, Dfa)
                ranges = single_characters(node.value)
                if ranges is not None:
                    return self.code.character(ranges)
                return self.code.automaton(self._reading(node), self.deadline, node.source)
            case _:
                return node
