"""Translation of a schema's rules to the program of their push-down automaton, in one traversal.

``Grammar.program`` accepts any grammar and traverses its rules once for each question: which have a word, which the
empty one, which are left-recursive, which need a stack. For the rules of ``writer`` the answers are known. Every value
follows a bracket, a comma or a colon, so no rule is left-recursive; no value is empty; and every expression without
calls is EMPTY or has a word. So one depth-first traversal from the start writes each rule at its first call. A call of
an unfinished rule is recursive and needs a stack; every other call is inlined, unless the callee is large: the
derivatives of an inlined expression differ for every caller, while those of a rule are shared.

Invariant: the words are those of ``Grammar.program``. Alternatives without a word are omitted, assuming that recursive
rules have a word. If this turns out to be uncertain once the rules are finished (infinite recursion), or if rules that
may be empty call each other, the result is ``None``, and the grammar's own translation is used.

Cost: linear in the nodes.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from functools import lru_cache

from tokenfst._native import ProgramCode, RuleBody
from tokenfst.automata.expressions.expression import (
    EMPTY,
    EPSILON,
    MOST_POSITIONS,
    Expr,
    Op,
    Unordered,
    bounds_of,
    call,
    copies,
)
from tokenfst.automata.expressions.program import Program, program_of
from tokenfst.automata.expressions.rebuilding import rebuilt
from tokenfst.automata.languages.display.readable import shorten
from tokenfst.automata.languages.emptiness import is_known_to_have_word
from tokenfst.automata.rules.graph import COMPOSED, name_of
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded

_NO_WORD = -1
_CALL, _VARIABLE, _UNORDERED = Op.CALL, Op.VARIABLE, Op.UNORDERED


_LARGE = 4_000
"""The number of positions beyond which a rule is not inlined."""
_COMPOSED = [int(op) for op in COMPOSED]
_LABEL = 200
"""Maximum length of a rule's name in messages."""


def schema_program(
    bodies: Mapping[str, Expr], start: str, shared: str, states: Container[str], budget: Budget
) -> Program | bool | None:
    """The program of rules, which begins with the rule ``start``.

    Returns ``False`` if the start has no word, and ``None`` if this traversal cannot decide that. ``shared``: the name
    of a rule that calls only itself and whose body is one object for many schemas, if there is such a rule. ``states``:
    the rules that may have the empty word. Raises BudgetExceeded("positions").
    """
    walk = _Walk(bodies, states, budget)
    if shared in bodies:
        walk.begin_with(shared, _of_shared(shared, bodies[shared]))
    return walk.program(start) if walk.run(start) else None


@lru_cache(maxsize=8)
def _of_shared(name: str, body: Expr) -> _Walk:
    """The walk of a rule that calls only itself, done once for all schemas that have it."""
    walk = _Walk({name: body}, (), Budget())
    walk.run(name)
    return walk


class _Walk:
    def __init__(self, bodies: Mapping[str, Expr], states: Container[str], budget: Budget) -> None:
        self.bodies, self.states, self.budget = bodies, states, budget
        self.code = ProgramCode()
        self.code.follow(bodies, states, _LARGE, min(budget.positions, MOST_POSITIONS), _COMPOSED)
        self.calls, self.finished = self.code.calls, self.code.finished
        """For each called rule, its CALL; for each written rule, its instruction."""
        self.smaller: dict[int, Expr] = {}
        """For members in any order, by the id of their node, the node without members that have no word."""
        self.unsure: dict[int, tuple[Expr, list[int]]] = {}
        """Instructions that have a word if recursive rules have one; their nodes and operands."""
        self.dependents: dict[int | str, list[int]] = {}
        """The instructions of ``unsure`` to decide again when an operand, or the body of a rule, has a word."""
        self.rules: dict[str, int] = {}
        """The number of each called rule."""

    def begin_with(self, name: str, done: _Walk) -> None:
        """Take over what a walk of the rule ``name`` has written; nothing may be written yet."""
        self.code = done.code.copy()
        most = min(self.budget.positions, MOST_POSITIONS)
        self.code.follow(self.bodies, self.states, _LARGE, most, _COMPOSED)
        self.calls, self.finished = self.code.calls, self.code.finished
        self.unsure = dict(done.unsure)
        self.dependents = {key: list(numbers) for key, numbers in done.dependents.items()}
        self.rules = dict(done.rules)

    def run(self, start: str) -> bool:
        """Write a rule and everything that it needs. Returns False if this walk cannot.

        The core traverses the body of a rule, and continues from rule to rule, until it needs something that is
        only known here.
        """
        code = self.code
        code.enter(start)
        while code.pending:
            node = code.advance()
            if node is None:
                if code.open:  # a rule that the core cannot finish by itself
                    self.finish(code.open.pop())
            elif node.op is _CALL:  # a recursion, or the first call of a large rule
                number = self.call(name_of(node))
                if number is None:
                    return False
                code.give(node, number)
            elif node.op is _VARIABLE:
                code.pop()
                if not self.write_recursion(node):
                    return False
            elif node.op is _UNORDERED and (smaller := self.without_dead(node)) is not node:
                number = code.number_of(smaller)
                if number is None:
                    code.push(smaller)
                else:
                    code.give(node, number)
            elif (operands := code.operands(node)) is not None:
                code.give(node, self.write(node, operands))
        return True

    def without_dead(self, node: Expr) -> Expr:
        """Members in any order without those that have no word; the same node if all have one, or are not written
        yet.
        """
        known = self.smaller.get(id(node))
        if known is not None:
            return known
        numbers = [self.code.number_of(arg) for arg in node.args]
        dead = [number == _NO_WORD for number in numbers]
        if None in numbers or not any(dead):
            return node
        args = [EMPTY if is_dead else arg for arg, is_dead in zip(node.args, dead, strict=True)]
        made = self.smaller[id(node)] = rebuilt(node, args)
        return made

    def write(self, node: Expr, operands: list[int]) -> int:
        """The instruction of a node that is not plain, given those of its operands."""
        op = node.op
        if _NO_WORD in operands:
            if op is Op.REPEAT:
                return _NO_WORD if bounds_of(node)[0] else self.epsilon()
            operands = [number for number in operands if number != _NO_WORD]
            if op is not Op.UNION or not operands:
                return _NO_WORD
        elif op is Op.EMPTY:
            return _NO_WORD
        total = sum(map(self.code.size_of, operands)) if operands else 1
        if op is Op.REPEAT:
            assert isinstance(node.value, tuple)
            total *= copies(node.value)
        length = self.code.length
        number = self.code.add(node, operands, min(total, MOST_POSITIONS))
        if number == length and self.unsure and self.depends(node, operands):  # of an equal one it is known
            self.doubt(number, node, operands)
        if is_known_to_have_word(node):
            self.code.assure(number)
        return number

    def write_recursion(self, root: Expr) -> bool:
        """Write all nodes below a VARIABLE, which call nothing. Returns False if some have no word."""
        number_of = self.code.number_of
        nodes = [node for node in root.walk() if number_of(node) is None]
        dead = [node.op is Op.EMPTY or _NO_WORD in map(number_of, node.args) for node in nodes]
        if any(dead):
            return False
        self.code.add_nodes(nodes, {}, ())
        if is_known_to_have_word(root):
            self.code.assure(self.number(root))
        return True

    def doubt(self, number: int, node: Expr, operands: list[int]) -> None:
        """Record that an instruction has a word only if some others have one."""
        self.unsure[number] = node, list(operands)
        self.code.doubt(number, True)
        if node.op is Op.CALL:
            name = name_of(node)
            awaited: list[int | str] = [self.finished.get(name, name)]
        else:
            awaited = [operand for operand in operands if operand in self.unsure]
        for each in awaited:
            self.dependents.setdefault(each, []).append(number)

    def depends(self, node: Expr, operands: list[int]) -> bool:
        """Whether a node has a word only if some nodes of ``unsure`` have one."""
        if node.op is Op.CALL:
            name = name_of(node)
            return name not in self.finished or self.finished[name] in self.unsure
        if node.op is Op.REPEAT and bounds_of(node)[0] == 0:
            return False
        inner = [number in self.unsure for number in operands]
        if isinstance(node.value, Unordered):
            low, _, required, repeats = node.value
            members = inner[1 : len(node.args) - (repeats > 0)]
            enough = members.count(False) >= low or (repeats == 1 and not inner[len(node.args) - 1])
            return low > 0 and (any(members[:required]) or (low > 1 and inner[0]) or not enough)
        return bool(inner) and (all(inner) if node.op is Op.UNION else any(inner))

    def settle_rule(self, name: str) -> None:
        """Decide again which nodes of ``unsure`` have a word, after the rule ``name`` is finished: a least fixed
        point. Each node is looked at once for each of its operands.
        """
        pending = self.dependents.pop(name)
        if self.finished[name] in self.unsure:  # they have a word if the rule's instruction has one
            self.dependents.setdefault(self.finished[name], []).extend(pending)
            return
        while pending:
            number = pending.pop()
            if number in self.unsure and not self.depends(*self.unsure[number]):
                del self.unsure[number]
                self.code.doubt(number, False)
                pending += self.dependents.pop(number, [])

    def epsilon(self) -> int:
        if self.code.number_of(EPSILON) is None:
            self.code.give(EPSILON, self.write(EPSILON, []))
        return self.number(EPSILON)

    def number(self, node: Expr) -> int:
        """The instruction of a written node."""
        found = self.code.number_of(node)
        assert found is not None
        return found

    def call(self, name: str) -> int | None:
        """The CALL of a rule, which gets a number with the first call."""
        if name in self.states:
            return None
        if name not in self.calls:
            rule = self.rules.setdefault(name, len(self.rules))
            node = call(name)
            number = self.calls[name] = self.code.add(node, [rule])
            if self.depends(node, []):
                self.doubt(number, node, [])
        return self.calls[name]

    def finish(self, name: str) -> None:
        """Record the instruction of a rule. Raises BudgetExceeded if it is too large."""
        body = self.bodies[name]
        number = self.finished[name] = self.number(body)
        if number == _NO_WORD:
            return
        if name in self.dependents:
            self.settle_rule(name)
        if body.source is None and body.op in COMPOSED:
            self.code.labels.append((number, f"the rule {shorten(name, _LABEL)!r}"))
        if self.code.size_of(number) > self.budget.positions and RuleBody(body).size > self.budget.positions:
            raise BudgetExceeded("positions", self.budget.positions, f"the rule {name!r}")

    def program(self, start: str) -> Program | bool | None:
        """The program of the written rules, as ``schema_program`` returns it."""
        root = self.finished[start]
        if root == _NO_WORD:
            return False
        for name in [each for each in self.dependents if each in self.rules]:
            self.settle_rule(str(name))
        called = [root, *(self.finished[name] for name in self.rules)]
        if any(number == _NO_WORD or number in self.unsure for number in called):
            return None
        if self.rules and start not in self.states:
            found = self.call(start)
            assert found is not None
            root = found
        self.code.end_with(root)
        rules = tuple((self.finished[name], False) for name in self.rules)
        return program_of(self.code, rules, tuple(self.rules), self.code.assured)
