"""A part of an automaton as a picture: the configurations near a state, described in words, and what is left out.

A breadth-first search over configurations (with stacks there may be infinitely many) stops at a number of states;
arrows that leave the part are counted and marked. A character beyond ASCII is one arrow, not up to four bytes, and a
chain of states with one byte each is one arrow with the whole word.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Any

from tokenfst.automata.characters.utf8 import Ranges, normalize
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.languages.display.drawing import bytes_label
from tokenfst.automata.languages.display.readable import character_class, quoted
from tokenfst.automata.languages.texts.walk import Walk
from tokenfst.common.plurals import counted
from tokenfst.explore.layout import place

_ASCII_END = 0x80
_SHOWN = 24
_RULES = 3
"""The number of open rules that are named at a state."""
Code = tuple[int, int]


@dataclass(slots=True)
class _Step:
    """The label of an arrow: one of several characters; one of several bytes that begin no complete character; or, for
    a chain of arrows, a word.
    """

    characters: list[Code] = field(default_factory=list)
    raw: int = 0
    chain: bytes = b""

    def word(self) -> bytes | None:
        """The only word that it reads; None if there are several."""
        if self.chain:
            return self.chain
        if self.raw:
            alone = not self.characters and self.raw & (self.raw - 1) == 0
            return bytes((self.raw.bit_length() - 1,)) if alone else None
        found = normalize(self.characters)
        alone = len(found) == 1 and found[0][0] == found[0][1]
        return chr(found[0][0]).encode() if alone else None

    def bytes(self) -> int:
        """The length of the shortest word that it reads."""
        if self.chain or self.raw:
            return len(self.chain) or 1
        return min(len(chr(low).encode()) for low, _ in self.characters)

    def __str__(self) -> str:
        if (word := self.word()) is not None:
            return quoted(word, _SHOWN)
        names = [character_class(normalize(self.characters))] if self.characters else []
        names += [f"byte {bytes_label(self.raw)}"] if self.raw else []
        return " or ".join(names)


@dataclass(slots=True)
class _Part:
    """A part of an automaton. ``order``: configurations in the order of the search; ``word``: for each, a text that
    leads to it from the first one; ``arrows``: the label of the arrow between two; ``open``: the configurations with
    arrows that leave the part.
    """

    order: list[int] = field(default_factory=list)
    word: dict[int, bytes] = field(default_factory=dict)
    arrows: dict[tuple[int, int], _Step] = field(default_factory=dict)
    open: set[int] = field(default_factory=set)


def picture(constraint: Constraint, before: bytes, *, around: bool, states: int) -> dict[str, Any]:
    """The states near the start or, with ``around``, near the one that ``before`` leads to, as JSON: ``states``,
    ``arrows``, and ``left_out``, a sentence (empty if all states are shown).
    """
    walk = Walk(constraint.automaton, constraint.budget, "the picture of the automaton")
    here = walk.run(before)
    first = here if around else walk.start
    if first is None:
        return {"states": [], "arrows": [], "left_out": "", "here": None}
    part = _near(walk, first, states)
    shown = _joined(part, walk, keep={first, here})
    number = {each: index for index, each in enumerate(shown)}
    start = "here" if around else "the start"
    arrows = [
        (number[a], number[b], str(step))
        for (a, b), step in sorted(part.arrows.items(), key=lambda each: each[0])
    ]
    prefix = before if around else b""
    after = [quoted(part.word[each], _SHOWN) if each != first else start for each in shown]
    rules = [_rules(constraint, prefix + part.word[each]) for each in shown]
    words = [
        len(text) + (len(named[-1]) + 2 if named else 0) for text, named in zip(after, rules, strict=True)
    ]
    placed = place(words, [(source, target, len(label)) for source, target, label in arrows])
    least = _least(part, walk)
    told = [
        {
            "x": x,
            "y": y,
            "after": text,
            "accepting": walk.accepting(each),
            "here": each == here,
            "open": each in part.open,
            "least": least[each],
            "rules": named,
        }
        for each, text, named, (x, y) in zip(shown, after, rules, placed.at, strict=True)
    ]
    lines = [
        {"source": source, "target": target, "label": label, "way": way}
        for (source, target, label), way in zip(arrows, placed.ways, strict=True)
    ]
    return {
        "states": told,
        "arrows": lines,
        "left_out": _left_out(part, len(shown), around),
        "here": number.get(here) if here is not None else None,
    }


def _near(walk: Walk, first: int, states: int) -> _Part:
    part = _Part([first], {first: b""})
    for at in part.order:
        for target, step, word in _characters(walk, at):
            if target not in part.word:
                if len(part.order) >= states:
                    part.open.add(at)
                    continue
                part.order.append(target)
                part.word[target] = part.word[at] + word
            known = part.arrows.setdefault((at, target), _Step())
            known.characters += step.characters
            known.raw |= step.raw
    return part


def _characters(walk: Walk, at: int) -> list[tuple[int, _Step, bytes]]:
    """The successors of a configuration by one character: the target, the label, and a readable character of it. Bytes
    that begin no complete character are labels by themselves.
    """
    found: list[tuple[int, _Step, bytes]] = []
    for target, live in walk.arcs(at):
        if ascii := [byte for byte in live if byte < _ASCII_END]:
            readable = max(ascii, key=lambda byte: (chr(byte).isalnum(), -byte))
            found.append((target, _Step([(byte, byte) for byte in ascii]), bytes((readable,))))
        for missing, low, high in ((1, 0xC2, 0xE0), (2, 0xE0, 0xF0), (3, 0xF0, 0xF5)):
            leads = [byte for byte in live if low <= byte < high]
            ends = (
                _whole(walk, target, missing, [(byte & (63 >> missing),) * 2 for byte in leads])
                if leads
                else {}
            )
            found += [(end, _Step(list(codes)), chr(codes[0][0]).encode()) for end, codes in ends.items()]
            if ends:
                live = bytes(byte for byte in live if byte not in leads)
        if raw := [byte for byte in live if byte >= _ASCII_END]:
            found.append((target, _Step(raw=sum(1 << byte for byte in raw)), bytes(raw[:1])))
    return found


def _whole(walk: Walk, at: int, missing: int, begun: list[Code]) -> dict[int, Ranges]:
    """The configurations after ``missing`` continuation bytes, each with the code points that lead to it. ``begun``:
    the leading bits of these code points, from the bytes before.
    """
    here: dict[int, Ranges] = {at: normalize(begun)}
    for _ in range(missing):
        onward: dict[int, list[Code]] = {}
        for state, values in here.items():
            for target, live in walk.arcs(state):
                bits = normalize((byte & 63, byte & 63) for byte in live if 0x80 <= byte < 0xC0)
                if bits == ((0, 63),):  # what is most common
                    onward.setdefault(target, []).extend((low << 6, high << 6 | 63) for low, high in values)
                elif bits:
                    onward.setdefault(target, []).extend(
                        (value << 6 | first, value << 6 | last)
                        for low, high in values
                        for value in range(low, high + 1)
                        for first, last in bits
                    )
        here = {state: normalize(values) for state, values in onward.items()}
    return here


def _joined(part: _Part, walk: Walk, keep: set[int | None]) -> list[int]:
    """The remaining states, after chains of arrows that read one byte each were joined."""
    into: dict[int, list[int]] = {}
    out: dict[int, list[int]] = {}
    for source, target in part.arrows:
        into.setdefault(target, []).append(source)
        out.setdefault(source, []).append(target)
    stay = []
    for state in part.order:
        before, after = into.get(state, []), out.get(state, [])
        alone = len(before) == len(after) == 1 and state not in keep | part.open and not walk.accepting(state)
        if not alone or state == before[0] or (before[0], after[0]) in part.arrows:
            stay.append(state)
            continue
        source, target = before[0], after[0]
        first, second = part.arrows[source, state].word(), part.arrows[state, target].word()
        if first is None or second is None:
            stay.append(state)
            continue
        del part.arrows[source, state], part.arrows[state, target]
        part.arrows[source, target] = _Step(chain=first + second)
        into[target] = [source if each == state else each for each in into[target]]
        out[source] = [target if each == state else each for each in out[source]]
    return stay


def _least(part: _Part, walk: Walk) -> dict[int, int]:
    """A lower bound of the number of bytes from each state to acceptance. It is exact for states from which no path
    leaves the part.
    The search goes backwards from accepting states, and from those with arrows that leave the part.
    """
    into: dict[int, list[tuple[int, int]]] = {}
    for (source, target), step in part.arrows.items():
        into.setdefault(target, []).append((source, step.bytes()))
    pending = [(0, state) for state in part.order if walk.accepting(state)]
    pending += [(max(1, walk.least(state)), state) for state in part.open]
    heapq.heapify(pending)
    found: dict[int, int] = {}
    while pending:
        bytes_left, state = heapq.heappop(pending)
        if state not in found:
            found[state] = bytes_left
            for source, length in into.get(state, ()):
                heapq.heappush(pending, (bytes_left + length, source))
    return {state: max(found.get(state, 0), walk.least(state)) for state in part.order}


def _rules(constraint: Constraint, before: bytes) -> list[str]:
    """The innermost open rules, the outermost of them first."""
    return list(constraint.open_rules(before) or ())[-_RULES:]


def _left_out(part: _Part, shown: int, around: bool) -> str:
    if not part.open:
        return ""
    where = "the place that was reached" if around else "the start"
    ways = f"{len(part.open)} of them lead{'s' if len(part.open) == 1 else ''} to more that are not drawn"
    return f"The picture has the {counted(shown, 'state')} nearest to {where}; {ways}."
