"""Reading grammars and formulas written as text: what the front ends share.

The idea: lark parses every notation (LALR, so in linear time and without recursion), this module turns its
errors into ours, with the place, and folds its trees without recursion: a text may nest deeper than
Python's stack. Rejected: lark's own transformers, which recurse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from tokenfst.errors import MissingDependencyError, PatternError, PatternSyntaxError

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

_T = TypeVar("_T")


def parse(
    notation: str, text: str, tokens: Mapping[str, str], unfinished: Mapping[str, str], what: str = "grammar"
) -> Tree[Token]:
    """The tree of ``text`` in a notation given as a lark grammar.

    ``tokens`` says in words what the notation's tokens are; ``unfinished``, by its first characters, what
    stands at a place where no token does; ``what`` is read. Raises PatternSyntaxError.
    """
    parser = _parser(notation)
    from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

    try:
        return parser.parse(text)
    except UnexpectedCharacters as error:
        position = int(error.pos_in_stream or 0)
        rest = text[position : position + 3]
        found = [what for opening, what in unfinished.items() if rest.startswith(opening)]
        message = found[0] if found else f"unexpected {rest[:1]!r}"
    except UnexpectedToken as error:
        at_end = error.token.type == "$END"
        position = len(text) if at_end else int(error.token.start_pos or 0)
        found_token = f"the end of the {what}" if at_end else f"{_short(str(error.token))}"
        wanted = sorted({tokens.get(name, name) for name in error.accepts or error.expected} - {""})
        message = f"unexpected {found_token}; expected {_listed(wanted)}"
    except UnexpectedInput as error:
        position, message = int(error.pos_in_stream or 0), f"this is not a {what}"
    raise fault(message, text, position)


def fault(
    message: str, text: str, position: int, kind: type[PatternError] = PatternSyntaxError
) -> PatternError:
    """The error for a place in a grammar: line and column (from 1), message, and a caret."""
    position = min(position, len(text))
    line, column = place(text, position)
    return kind(f"line {line}, column {column}: {message}", text, position)


def place(text: str, position: int) -> tuple[int, int]:
    """Line and column of a position, both from 1."""
    return text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)


@lru_cache(maxsize=8)
def _parser(notation: str) -> Lark:
    try:
        from lark import Lark
    except ImportError:
        raise MissingDependencyError(
            'reading grammars needs lark, which is not installed: pip install "tokenfst[grammars]"'
        ) from None
    return Lark(notation, parser="lalr", lexer="contextual", start="start", maybe_placeholders=False)


def fold(tree: Tree[Token], build: Callable[[str, list[Any]], _T]) -> _T:
    """``build(kind, children)`` for every node, bottom up; tokens stand as they are among the children."""
    above: list[tuple[str, Iterator[Any], list[Any]]] = []
    kind, items = str(tree.data), iter(tree.children)
    built: list[Any] = []
    while True:
        for item in items:
            if not isinstance(item, str):
                above.append((kind, items, built))
                kind, items, built = str(item.data), iter(item.children), []
                break
            built.append(item)
        else:
            value = build(kind, built)
            if not above:
                return value
            kind, items, built = above.pop()
            built.append(value)


def position_of(token: Token) -> int:
    """Where a token begins in its text."""
    return int(token.start_pos or 0)


def _short(text: str) -> str:
    shown = "a line break" if not text.strip() and "\n" in text else repr(text)
    return shown if len(shown) <= 40 else shown[:37] + "..."


def _listed(words: list[str]) -> str:
    return (
        words[0]
        if len(words) == 1
        else ", ".join(words[:-1]) + " or " + words[-1]
        if words
        else "nothing more"
    )
