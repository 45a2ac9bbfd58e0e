"""A parser that runs on the tables that lark makes for a notation.

Lark's own loop calls several functions for each step: one that takes a token, one that makes a node, one for each
filter of its children. This loop does the same work on tables that say for each production what becomes of its parts.
The trees are those of lark's parser. A text with an error is left to lark's parser, which knows what it expected.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, Ranges
from tokenfst.automata.regex.leftmost import Places
from tokenfst.automata.regex.parse import Pattern
from tokenfst.budget import Budget
from tokenfst.errors import PatternError

if TYPE_CHECKING:
    from lark import Lark, Tree

_ASCII = 128
_TICKED = 64
"""Tokens between two looks at the time."""


class Token(str):
    """A piece of a text with its type and position. Lark's parser also expects lines and columns; they are left empty,
    and ``line_and_column`` computes them for errors.
    """

    __slots__ = ("start_pos", "type")
    type: str
    start_pos: int
    end_pos = line = column = end_line = end_column = 0


def token_of(text: str, kind: str, position: int) -> Token:
    """A token of a type, at a position."""
    token = Token(text)
    token.type, token.start_pos = kind, position
    return token


class Tokens:
    """The tokens of a notation: their types with regular expressions; the first one that matches counts.

    ``pattern`` matches the next token; the name of its last group is the type, ``_other`` if there is no token.
    ``known``: the same by the first character of the token, with the types that begin with it: ``re`` tries each
    alternative by a call of its own.
    """

    def __init__(self, types: list[tuple[str, str]]) -> None:
        self.types = types
        self.pattern = _one_of(types)
        self.known: dict[str, re.Pattern[str]] = {}
        self._made: dict[tuple[str, ...], re.Pattern[str]] = {}
        self._firsts = {name: _first(regexp) for name, regexp in types}

    def of(self, character: str) -> re.Pattern[str]:
        """The pattern of tokens that begin with a character."""
        code = ord(character)
        types = [
            (name, regexp)
            for name, regexp in self.types
            if any(low <= code <= high for low, high in self._firsts[name])
        ]
        names = tuple(name for name, _ in types)
        made = self._made.get(names)
        if made is None:
            made = self._made[names] = _one_of(types)
        if code < _ASCII:
            self.known[character] = made
        return made


def _one_of(types: list[tuple[str, str]]) -> re.Pattern[str]:
    return re.compile("|".join([f"(?P<{name}>{regexp})" for name, regexp in types] + [r"(?P<_other>[\s\S])"]))


def _first(regexp: str) -> Ranges:
    """The characters with which a token can begin; possibly a superset."""
    try:
        return Places(Pattern(regexp, 0, Budget()), folded=True).first
    except PatternError:
        return ((0, MAX_CODE_POINT),)


class Unparsed(Exception):
    """The text has an error."""


_Reduction = tuple[int, str, tuple[tuple[int, bool], ...], str | None, bool]
"""A production: the number of its parts; the name of what it makes; the parts that are kept, each with whether it
stands for its own children; the label of the node, None for children that belong to the node above; and whether a
single child takes the place of the node.
"""


@dataclass(frozen=True, slots=True)
class Tables:
    """A notation's tables. ``actions``: by state and type of token, the next state or the production that ends.
    ``gotos``: by state, the state after what a production makes. ``kept``: the types of tokens that trees hold.
    """

    tokens: Tokens
    ignored: frozenset[str]
    actions: dict[Any, dict[str, int | _Reduction]]
    gotos: dict[Any, dict[str, int]]
    kept: frozenset[str]
    start: int
    end: int
    node: type[Tree[Any]]

    def tree(self, text: str, tick: Callable[[int], None], work: int) -> Tree[Any]:
        """The tree of a text. ``tick`` counts ``work`` for a token. Raises ``Unparsed``."""
        actions, gotos, kept, ignored, node = self.actions, self.gotos, self.kept, self.ignored, self.node
        state: Any = self.start
        states, values = [state], list[Any]()
        count = at = 0
        known, end = self.tokens.known, len(text)
        while at < end:
            begin = at
            pattern = known.get(text[at]) or self.tokens.of(text[at])
            match: Any = pattern.match(text, at)
            at = match.end()
            kind = match.lastgroup
            if kind in ignored:
                continue
            count += 1
            if not count % _TICKED:
                tick(work * _TICKED)
            row = actions[state]
            while (action := row.get(kind)).__class__ is tuple:
                state = _reduced(action, states, values, gotos, node)
                row = actions[state]
            if action is None:
                raise Unparsed
            state = action
            states.append(state)
            values.append(token_of(text[begin:at], kind, begin) if kind in kept else None)
        while state != self.end:
            action = actions[state].get("$END")
            if action.__class__ is not tuple:
                raise Unparsed
            state = _reduced(action, states, values, gotos, node)
        return values[-1]  # type: ignore[no-any-return]


def _reduced(
    reduction: Any, states: list[int], values: list[Any], gotos: dict[Any, dict[str, int]], node: Any
) -> int:
    """The state after a production, whose parts are replaced by what it makes."""
    size, name, parts, label, single = reduction
    if label is None and size == 1 and parts:
        states.pop()
        state = gotos[states[-1]][name]
        states.append(state)
        return state  # the only part takes the place
    children: list[Any] = []
    if size:
        start = len(values) - size
        for k, inlined in parts:
            value = values[start + k]
            if inlined and value.__class__ is list:
                if children:
                    children += value
                else:
                    children = value
            else:
                children.append(value)
        del values[start:]
        del states[-size:]
    if label is None:
        values.append(children)
    elif single and len(children) == 1:
        values.append(children[0])
    else:
        values.append(node(label, children))
    state = gotos[states[-1]][name]
    states.append(state)
    return state


def tables_of(parser: Lark, tokens: Tokens) -> Tables:
    """The tables of lark's parser; ``tokens`` divides a text into tokens."""
    from lark import Tree
    from lark.parsers.lalr_analysis import Shift

    made = parser.parse_interactive().parser_state.parse_conf
    actions: dict[Any, dict[str, int | _Reduction]] = {}
    gotos: dict[Any, dict[str, int]] = {}
    kept: set[str] = set()
    reductions: dict[int, _Reduction] = {}
    for state, row in made.states.items():
        actions[state], gotos[state] = {}, {}
        for name, (action, argument) in row.items():
            if action is not Shift:
                if id(argument) not in reductions:
                    reductions[id(argument)] = _reduction(argument, kept)
                actions[state][name] = reductions[id(argument)]
            elif name.isupper() or name == "$END":
                actions[state][name] = argument
            else:
                gotos[state][name] = argument
    ignored = frozenset(parser.ignore_tokens)
    return Tables(tokens, ignored, actions, gotos, frozenset(kept), made.start_state, made.end_state, Tree)


def _reduction(rule: Any, kept: set[str]) -> _Reduction:
    """A production as a row of the tables; ``kept`` gets the types of its tokens."""
    parts: list[tuple[int, bool]] = []
    for k, symbol in enumerate(rule.expansion):
        if symbol.is_term and symbol.filter_out and not rule.options.keep_all_tokens:
            continue
        parts.append((k, not symbol.is_term and symbol.name.startswith("_")))
        if symbol.is_term:
            kept.add(symbol.name)
    name = str(rule.origin.name)
    label = str(rule.alias or name)
    inlined = name.startswith("_")
    single = bool(rule.options.expand1) and not rule.alias
    return len(rule.expansion), name, tuple(parts), None if inlined else label, single
