"""Grammars as recursive transition networks, and their pictures.

The idea: each rule is a small automaton whose edges are labelled with calls of rules and with parts of the
rule's body that hold no call; a call is passed by a word of the rule called (Woods, "Transition Network Grammars
for Natural Language Analysis", CACM 1970). A whole regular part is one edge: what matters here is which rule
leads where, and ``Language.draw`` shows a regular part in full.

The construction is Thompson's without its ε-edges, states of equal future merged. So a network accepts exactly
the words of the grammar, and a body of n parts takes at most n + 1 states for each place at which it is written
out by counted repetitions.

Rejected: deterministic networks, which are larger and hide the rule as it was written; one state for each byte
of a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tokenfst.automata.expressions.expression import Expr, Op, bounds_of
from tokenfst.automata.languages.display.drawing import bytes_label
from tokenfst.automata.languages.display.readable import readable, shorten
from tokenfst.automata.pictures.drawing import HEADER, Drawing, quoted
from tokenfst.automata.rules.graph import holding, name_of
from tokenfst.automata.rules.permutations import written_out
from tokenfst.common.plurals import counted
from tokenfst.common.printable import printable
from tokenfst.errors import DrawingError

IGNORED = "%ignore"
"""The rule that ``lark_grammar`` calls before every terminal; drawn as a dot before the terminal."""
_ROOM = 10
"""While a rule is built, it may have this many times as many states, and edges, as states may be drawn."""
_WIDTH = 60
_ROWS = 14
"""The greatest number of labels of one edge in a picture."""
_DEFINED = re.compile(r"(?s)[^\s:]+\s*::?=?(.*?)(?=\n(?![ \t]*\|)|\Z)")


@dataclass(frozen=True, slots=True)
class Arc:
    """A step of a network. ``label``: a call, or an expression without calls."""

    source: int
    target: int
    label: Expr


@dataclass(frozen=True, slots=True)
class Network:
    """The automaton of one rule, without ε-edges: states from 0, which is the start."""

    rule: str
    num_states: int
    accepting: frozenset[int]
    arcs: tuple[Arc, ...]


def network(rule: str, body: Expr, max_states: int = 200) -> Network:
    """The network of a rule. Raises DrawingError if it grows far beyond ``max_states``.

    Linear in the body with counted repetitions written out, apart from the merging of states, which is
    quadratic at worst.
    """
    epsilons, arcs = _Thompson(rule, _ROOM * max_states).build(body)
    following: list[list[tuple[Expr, int]]] = []
    accepting: list[bool] = []
    room = _ROOM * max_states
    for state in range(len(epsilons)):
        closure = _closure(epsilons, state)
        following.append([arc for each in closure for arc in arcs[each]])
        accepting.append(_END in closure)
        room -= len(following[-1]) + len(closure) // 10
        if room < 0:
            raise _too_large(rule, _ROOM * max_states)
    return _merged(rule, following, accepting)


# --- construction -------------------------------------------------------------------------------------

_START, _END = 0, 1


class _Thompson:
    def __init__(self, rule: str, limit: int) -> None:
        self.rule, self.limit = rule, limit
        self.epsilons: list[list[int]] = [[], []]
        self.arcs: list[list[tuple[Expr, int]]] = [[], []]

    def build(self, body: Expr) -> tuple[list[list[int]], list[list[tuple[Expr, int]]]]:
        """For each state the targets of its ε-edges, and its other edges."""
        inside = holding(body)
        body = written_out(body, lambda node: id(node) in inside, f"the picture of the rule {self.rule!r}")
        calling = holding(body)
        work = [(body, _START, _END)]
        while work:
            node, source, target = work.pop()
            if len(work) > self.limit:
                raise _too_large(self.rule, self.limit)
            if node.op is Op.EPSILON:
                self.epsilons[source].append(target)
            elif node.op is Op.UNION and (calling or node is not body):
                work += ((arg, source, target) for arg in reversed(node.args))
            elif node.op is Op.CALL or id(node) not in calling:
                if node.op is not Op.EMPTY:
                    self.arcs[source].append((node, target))
            elif node.op is Op.CONCAT:
                places = [source, *(self.state() for _ in range(len(node.args) - 1)), target]
                work += reversed(list(zip(node.args, places[:-1], places[1:], strict=True)))
            else:
                work += reversed(self.repetition(node, source, target))
        return self.epsilons, self.arcs

    def repetition(self, node: Expr, source: int, target: int) -> list[tuple[Expr, int, int]]:
        low, high = bounds_of(node)
        (part,) = node.args
        work = []
        for _ in range(low):
            work.append((part, source, after := self.state()))
            source = after
        if high is None:
            loop = self.state()
            self.epsilons[source].append(loop)
            self.epsilons[loop].append(target)
            return [*work, (part, loop, loop)]
        for _ in range(high - low):
            self.epsilons[source].append(target)
            work.append((part, source, after := self.state()))
            source = after
        self.epsilons[source].append(target)
        return work

    def state(self) -> int:
        if len(self.arcs) >= self.limit:
            raise _too_large(self.rule, self.limit)
        self.epsilons.append([])
        self.arcs.append([])
        return len(self.arcs) - 1


def _too_large(rule: str, limit: int) -> DrawingError:
    return DrawingError(
        f"the rule {rule!r} needs more than {limit:,} states or edges while its network is built; write its "
        "counted repetitions smaller, or pass a larger max_states"
    )


def _closure(epsilons: Sequence[Sequence[int]], state: int) -> dict[int, None]:
    """The states that ε-edges lead to, itself first."""
    found: dict[int, None] = {}
    stack = [state]
    while stack:
        at = stack.pop()
        if at not in found:
            found[at] = None
            stack += reversed(epsilons[at])
    return found


def _merged(rule: str, following: list[list[tuple[Expr, int]]], accepting: list[bool]) -> Network:
    """One state for all that have the same edges into the same states; only those on a way from the start."""
    labels: dict[object, int] = {}
    keys = [
        [(labels.setdefault(_key(label), len(labels)), target) for label, target in arcs]
        for arcs in following
    ]
    block = [int(accepts) for accepts in accepting]
    count = len(set(block))
    while True:
        known: dict[object, int] = {}
        block = [
            known.setdefault(
                (block[state], frozenset((label, block[target]) for label, target in arcs)), len(known)
            )
            for state, arcs in enumerate(keys)
        ]
        if len(known) == count:
            break
        count = len(known)
    alive = _alive(keys, accepting)
    number = {block[_START]: 0}
    frontier = [_START]
    arcs: list[Arc] = []
    for state in frontier:
        drawn: set[tuple[int, int]] = set()
        for (label, target), (key, _) in zip(following[state], keys[state], strict=True):
            if not alive[target] or (key, block[target]) in drawn:
                continue
            drawn.add((key, block[target]))
            if block[target] not in number:
                number[block[target]] = len(number)
                frontier.append(target)
            arcs.append(Arc(number[block[state]], number[block[target]], label))
    final = frozenset(number[block[state]] for state in frontier if accepting[state])
    return Network(rule, len(number), final, tuple(arcs))


def _key(label: Expr) -> object:
    """Equal for labels that mean the same at a glance."""
    return (label.op, label.value) if isinstance(label.value, (int, bytes, str)) else id(label)


def _alive(keys: list[list[tuple[int, int]]], accepting: list[bool]) -> list[bool]:
    """Which states lead to acceptance."""
    before: list[list[int]] = [[] for _ in keys]
    for state, arcs in enumerate(keys):
        for _, target in arcs:
            before[target].append(state)
    alive = [False] * len(keys)
    stack = [state for state, accepts in enumerate(accepting) if accepts]
    while stack:
        state = stack.pop()
        if not alive[state]:
            alive[state] = True
            stack += before[state]
    return alive


# --- pictures -----------------------------------------------------------------------------------------


def draw_rules(
    rules: Mapping[str, Expr],
    start: str,
    title: str = "",
    max_states: int = 200,
    text: str = "",
    positions: Mapping[str, int] | None = None,
) -> Drawing:
    """A picture of all rules, the start first, each in a separate frame: calls are boxes, literals are in quotation
    marks, and ``·`` is ignored text.

    ``text`` and ``positions`` as in ``Grammar``: a terminal is then shown as it was written. Raises DrawingError
    beyond ``max_states`` states.
    """
    order = sorted(rules, key=lambda name: name != start)
    networks = []
    count = 0
    for name in order:
        networks.append(network(name, rules[name], max_states))
        count += networks[-1].num_states
        if count > max_states:
            raise DrawingError(
                f"the rules up to {name!r} already have {counted(count, 'state')}, and at most {max_states:,} "
                "are drawn; "
                "draw fewer rules, or pass a larger max_states"
            )
    written = _definitions(text, positions or {})
    lines = [*HEADER, '  node [label="", width=0.18];', "  nodesep=0.3;"]
    if title:
        lines.append(f'  label={quoted(title)}; labelloc=t; fontname="Helvetica";')
    clusters = []
    first = 0
    for number, each in enumerate(networks):
        clusters.append(_cluster(number, first, each, each.rule == start, written))
        first += each.num_states
    lines += (line for cluster in reversed(clusters) for line in cluster)  # the last one is drawn on top
    return Drawing("\n".join([*lines, "}", ""]))


def _cluster(number: int, first: int, part: Network, is_start: bool, written: Mapping[str, str]) -> list[str]:
    title = f"{part.rule} ·" if part.rule == IGNORED else part.rule
    lines = [
        f"  subgraph cluster_{number} {{",
        f'    label={quoted(title)}; labeljust=l; fontname="Helvetica-Bold"; style=rounded; margin=16; '
        f"penwidth={2 if is_start else 0.5};",
        f'    "start {number}" [shape=point, width=0.08]; "start {number}" -> {first};',
    ]
    arcs, hidden = _with_ignored(part)
    for state in range(part.num_states):
        if state not in hidden:
            shape = " [shape=doublecircle]" if state in part.accepting else ""
            lines.append(f"    {first + state}{shape};")
    between: dict[tuple[int, int], list[tuple[bool, str]]] = {}
    for arc, dotted in arcs:
        shown = written.get(part.rule, "") if len(part.arcs) == 1 else ""
        between.setdefault((arc.source, arc.target), []).append((dotted, _cell(arc.label, shown)))
    lines += (
        f"    {first + source} -> {first + target} [label=<{_table(cells)}>];"
        for (source, target), cells in between.items()
    )
    return [*lines, "  }"]


def _table(cells: list[tuple[bool, str]]) -> str:
    """The labels of an edge, one below the other, with ignored text in a separate column."""
    shown = cells if len(cells) <= _ROWS else cells[: _ROWS - 1]
    if any(dotted for dotted, _ in shown):
        rows = [f"<tr><td>{'·' if dotted else ''}</td>{cell}</tr>" for dotted, cell in shown]
    else:
        rows = [f"<tr>{cell}</tr>" for _, cell in shown]
    if len(shown) < len(cells):
        rows.append(f'<tr><td colspan="2">… ({len(cells) - len(shown):,} more)</td></tr>')
    return f'<table border="0" cellborder="0" cellspacing="2">{"".join(rows)}</table>'


def _with_ignored(part: Network) -> tuple[list[tuple[Arc, bool]], set[int]]:
    """The edges to draw and whether each has a dot, and the states that are not drawn, which are between ignored
    text and a terminal.
    """
    entering: dict[int, list[Arc]] = {}
    for arc in part.arcs:
        entering.setdefault(arc.target, []).append(arc)
    hidden = {
        state
        for state, arcs in entering.items()
        if state not in part.accepting and state != 0 and all(_is_ignored(arc) for arc in arcs)
    }
    leaving: dict[int, list[Arc]] = {}
    for arc in part.arcs:
        leaving.setdefault(arc.source, []).append(arc)
    drawn: list[tuple[Arc, bool]] = []
    for arc in part.arcs:
        if arc.source in hidden:
            continue
        if arc.target not in hidden:
            drawn.append((arc, False))
        else:
            drawn += ((Arc(arc.source, on.target, on.label), True) for on in leaving[arc.target])
    return drawn, hidden


def _is_ignored(arc: Arc) -> bool:
    return arc.label.op is Op.CALL and arc.label.value == IGNORED


def _cell(label: Expr, written: str) -> str:
    """One label: a call is a box."""
    if label.op is not Op.CALL:
        return f"<td>{_html(shorten(_label(label, written), _WIDTH))}</td>"
    name = name_of(label)
    if name == IGNORED:
        return "<td>·</td>"
    return f'<td border="1" style="rounded" bgcolor="#e6eef8">{_html(shorten(name, _WIDTH))}</td>'


def _label(label: Expr, written: str) -> str:
    if written:
        return written
    if isinstance(label.value, bytes):
        return '"' + label.value.decode("utf-8", "backslashreplace").replace('"', '\\"') + '"'
    if isinstance(label.value, int):
        return bytes_label(label.value)
    return readable(label, _WIDTH)


def _html(text: str) -> str:
    return printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _definitions(text: str, positions: Mapping[str, int]) -> dict[str, str]:
    """The bodies of the rules as they are written in the text, on one line, for those that are found there."""
    found = {}
    for name, position in positions.items():
        match = _DEFINED.match(text, position)
        if match is not None and match[0].startswith(name):
            found[name] = " ".join(match[1].split())
    return found
