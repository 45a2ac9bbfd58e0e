"""A parser that runs on the tables that lark makes for a notation.

Lark's own loop calls several functions for each step: one that takes a token, one that makes a node, one for each
filter of its children. The native core does the same work (``LalrTables``) on tables that say for each production what
becomes of its parts. The trees are those of lark's parser. A text with an error is left to lark's parser, which knows
what it expected.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from tokenfst._native import LalrTables, PlainPattern, SyntaxTree
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, Ranges
from tokenfst.automata.regex.leftmost import Places
from tokenfst.automata.regex.parse import Pattern
from tokenfst.automata.regex.plain import read_plain
from tokenfst.budget import Budget
from tokenfst.errors import PatternError

if TYPE_CHECKING:
    from lark import Lark, Tree

_ASCII = 128
_TICKED = 64
"""The number of tokens between two checks of the clock in the core."""


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
    """The tokens of a notation: their types with regular expressions. The first type that matches is taken.

    ``pattern`` matches the next token; the name of its last group is the type, ``_other`` if there is no token.
    ``matches``: by the first character of a token, the ``match`` of a pattern of only those types that can begin with
    it. This saves time, because ``re`` tries one alternative after another.
    """

    def __init__(self, types: list[tuple[str, str]]) -> None:
        self.types = types
        self.pattern = _one_of(types)
        self.matches = _Matches(types)

    @property
    def plain(self) -> dict[str, PlainPattern]:
        """The patterns that are plain, by type."""
        made = ((name, read_plain(regexp, None)) for name, regexp in self.types)
        return {name: pattern for name, pattern in made if pattern is not None}

    @property
    def firsts(self) -> list[list[str]]:
        """For each character of ASCII, the types that begin with it; possibly more."""
        return [self.matches.beginning(code) for code in range(_ASCII)]


class _Matches(dict[str, Callable[[str, int], "re.Match[str] | None"]]):
    """By a character, the method ``match`` of the pattern of tokens that begin with it."""

    def __init__(self, types: list[tuple[str, str]]) -> None:
        super().__init__()
        self._types = [(name, regexp, _first(regexp)) for name, regexp in types]
        self._made: dict[tuple[str, ...], re.Pattern[str]] = {}

    def __missing__(self, character: str) -> Callable[[str, int], re.Match[str] | None]:
        names = tuple(self.beginning(ord(character)))
        made = self._made.get(names)
        if made is None:
            made = self._made[names] = _one_of(
                [(name, regexp) for name, regexp, _ in self._types if name in names]
            )
        if ord(character) < _ASCII:
            self[character] = made.match
        return made.match

    def beginning(self, code: int) -> list[str]:
        """The types that begin with a character."""
        return [name for name, _, first in self._types if any(low <= code <= high for low, high in first)]


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
"""A production: the number of its parts; the name of its left side; the indices of the parts that are kept, each with
whether its children take its place; the label of the node (None: its children belong to the node above); and whether a
single child takes the place of the node.
"""


class Tables:
    """A notation's tables, with the loop that runs on them. ``tokens`` divides a text into tokens."""

    def __init__(self, parser: Lark, tokens: Tokens, late: str | None = None) -> None:
        """The tables of lark's ``parser``. ``late``: the kind of nodes whose children are made when first needed."""
        from lark import Tree
        from lark.parsers.lalr_analysis import Shift

        class Late(Tree[Any]):
            """A node of a text of which no Python object is made until it is needed."""

            def __init__(self, data: str, native: SyntaxTree) -> None:
                self.data, self.native = data, native

            @cached_property
            def children(self) -> list[Any]:  # type: ignore[override]  # a plain attribute of lark's
                return self.native.children()

        made = parser.parse_interactive().parser_state.parse_conf
        actions: dict[Any, dict[str, tuple[bool, int]]] = {}
        gotos: dict[Any, dict[str, int]] = {}
        kept: set[str] = set()
        numbers: dict[int, int] = {}
        reductions: list[_Reduction] = []
        for state, row in made.states.items():
            actions[state], gotos[state] = {}, {}
            for name, (action, argument) in row.items():
                if action is not Shift:
                    if id(argument) not in numbers:
                        numbers[id(argument)] = len(reductions)
                        reductions.append(_reduction(argument, kept))
                    actions[state][name] = False, numbers[id(argument)]
                elif name.isupper() or name == "$END":
                    actions[state][name] = True, argument
                else:
                    gotos[state][name] = argument
        self._tables = LalrTables(
            *(tokens.matches, sorted(parser.ignore_tokens), sorted(kept), actions, reductions, gotos),
            *(made.start_state, made.end_state, (Tree, Late, Token), late, tokens.plain, tokens.firsts),
        )

    def tree(self, text: str, tick: Callable[[int], None], work: int) -> Tree[Any]:
        """The tree of a text. ``tick`` counts ``work`` for a token. Raises ``Unparsed``."""
        tree: Tree[Any] | None = self._tables.tree(text, partial(tick, work * _TICKED))
        if tree is None:
            raise Unparsed
        return tree


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
