"""Lexing, parsing, errors and folds for grammars and formulas: the common code of the front ends.

Lark makes the tables of every notation (LALR: linear time, no recursion), and ``lalr`` runs on them. This module turns
lark's errors into ours, with the position, and folds trees without recursion, since a text may nest deeper than
Python's stack. Rejected: lark's own transformers, which recurse.

A lexer of our own divides the text into tokens: one regular expression is applied to all of it, and a token has a type
and a position. Lark's own lexer takes as long as the parser: it counts lines and columns, which only an error needs,
and starts a new match for each token.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from tokenfst._native import SyntaxTree
from tokenfst._native import fold as native_fold
from tokenfst.automata.expressions.expression import Expr
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.notations.parsing.lalr import Tables, Tokens, Unparsed, token_of
from tokenfst.automata.notations.parsing.lalr import Token as Token
from tokenfst.budget import Budget
from tokenfst.common.plurals import counted
from tokenfst.common.printable import line_and_column
from tokenfst.common.remedies import READ_FILE, looks_like_a_file, remedy
from tokenfst.errors import ConstraintError, MissingDependencyError, PatternError, PatternSyntaxError

if TYPE_CHECKING:
    from lark import Lark, Tree
    from lark.common import LexerConf

_T = TypeVar("_T")
_JSON_HINT = "; this looks like JSON: json_schema reads a JSON Schema"
_ARROW_HINT = "; gbnf and ebnf read rules that are written name ::= ..."
_COLON_HINT = "; lark_grammar reads rules that are written name: ..."
_FILE_HINT = f"; this looks like the name of a file, and {READ_FILE}"
_MARK = ", a byte order mark: read the file with encoding='utf-8-sig'"
_HINTS = (_JSON_HINT, _ARROW_HINT, _COLON_HINT, _FILE_HINT)
_RULE = re.compile(
    r"^(?:[?!]?[\w-]+(?:\{[^}\n]*\})?(?:\.-?[0-9]+)?(?:\[[^\]\n]*\])?[ \t]*(?:::=|:)|%[a-z])", re.MULTILINE
)
"""Where a rule or a directive begins, in a grammar of any notation: a name in the first column, then its sign."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN, _NODE = 12, 8
"""The approximate time, in microseconds, of parsing a token and of folding a node."""


class Values(dict[str, Expr]):
    """A cache of the expressions of tokens, by their texts. ``read`` makes the expression of a token that is not in it.

    ``lasting``: the types of tokens that mean the same wherever they stand; only these are kept. ``None``: all types.
    """

    def __init__(self, read: Callable[[Token], Expr], lasting: Container[str] | None = None) -> None:
        super().__init__()
        self.read, self.lasting = read, lasting

    def __missing__(self, token: Token) -> Expr:
        found = self.read(token)
        if self.lasting is None or token.type in self.lasting:
            self[token] = found
        return found


def parse(
    notation: str,
    text: str,
    tokens: Mapping[str, str],
    unfinished: Mapping[str, str],
    what: str = "grammar",
    deadline: Deadline | None = None,
    late: str | None = None,
) -> Tree[Any]:
    """The tree of ``text`` in a notation that is given as a lark grammar.

    ``tokens``: descriptions of the notation's tokens. ``unfinished``: by first characters, the description of what
    begins at a position where no token matches. ``what``: the name of what is parsed. ``late``: the kind of outermost
    nodes whose children are made when first needed. Raises PatternSyntaxError and BudgetExceeded("seconds").
    """
    deadline = deadline or Deadline(Budget(), f"the text of a {what}")
    parser, lex, tables = _parser(notation, late)
    try:
        return tables.tree(text, deadline.tick, _TOKEN)
    except Unparsed:
        pass
    arrows = '"::="' in notation
    try:
        return _parse_by_lark(parser, lex, text, tokens, unfinished, what, deadline, arrows=arrows)
    except PatternSyntaxError as error:
        more = _later_faults(tables, text, error.position, deadline) if what == "grammar" else ""
        if not more or error.message.endswith(_HINTS):
            raise
        raise type(error)(error.message + more, text, error.position) from None


def _later_faults(tables: Tables, text: str, position: int, deadline: Deadline) -> str:
    """How many rules after the one at ``position`` cannot be read either, each taken alone. Linear in the text."""
    starts = [match.start() for match in _RULE.finditer(text) if match.start() > position]
    faults = []
    for start, end in itertools.pairwise([*starts, len(text)]):
        try:
            tables.tree(text[start:end].rstrip() + "\n", deadline.tick, _TOKEN)
        except Unparsed:
            faults.append(start)
    if not faults:
        return ""
    line = line_and_column(text, faults[0])[0]
    where = f"that of line {line}" if len(faults) == 1 else f"the first at line {line}"
    return f"; {counted(len(faults), 'later rule')} cannot be read either, {where}"


def _parse_by_lark(
    parser: Lark,
    lex: Callable[[str], Iterator[Token]],
    text: str,
    tokens: Mapping[str, str],
    unfinished: Mapping[str, str],
    what: str,
    deadline: Deadline,
    *,
    arrows: bool,
) -> Tree[Any]:
    """``parse`` by lark's own parser, which finds the first error and what was expected there. ``arrows``: whether the
    rules of the notation are written ``name ::=``.
    """
    from lark.exceptions import UnexpectedInput, UnexpectedToken

    reading = parser.parse_interactive()
    try:
        for token in lex(text):
            deadline.tick(_TOKEN)
            tree = reading.feed_token(token)  # type: ignore[arg-type]  # of our class, which has what it needs
        return tree  # type: ignore[no-any-return]
    except _NoToken as error:
        position = error.position
        rest = text[position : position + 3]
        found = [what for opening, what in unfinished.items() if rest.startswith(opening)]
        message = found[0] if found else f"unexpected {rest[:1]!r}{_MARK if rest[:1] == chr(0xFEFF) else ''}"
    except UnexpectedToken as error:
        at_end = error.token.type == "$END"
        position = len(text) if at_end else int(error.token.start_pos or 0)
        found_token = f"the end of the {what}" if at_end else f"{_short(str(error.token))}"
        accepted = reading.accepts() or error.expected  # type: ignore[no-untyped-call]
        wanted = sorted({tokens.get(name, name) for name in accepted} - {""})
        message = f"unexpected {found_token}; expected {_listed(wanted)}"
    except UnexpectedInput as error:
        position, message = int(error.pos_in_stream or 0), f"this is not a {what}"
    if what == "grammar":
        message += _other_notation(arrows, text)
    raise fault(message, text, position)


def _other_notation(arrows: bool, text: str) -> str:
    """Where a text that cannot be read looks like another notation: what reads it. ``arrows``: whether the rules of
    this notation are written ``name ::=``. Linear in the text.
    """
    if looks_like_a_file(text):
        return _FILE_HINT
    if re.match(r'\s*\{\s*["}]', text):
        return _JSON_HINT
    written = re.search(r"^[ \t]*[\w-]+[ \t]*::=", text, re.MULTILINE)
    if not arrows:
        return _ARROW_HINT if written else ""
    if not written and re.search(r"^[ \t]*[?!]?\w+(\.\d+)?[ \t]*:(?!:)", text, re.MULTILINE):
        return _COLON_HINT
    return ""


def refuse_text(call: str, text: object) -> NoReturn:
    """Raise ConstraintError for a grammar ``text`` that is not a str; the message names the ``call`` and the remedy."""
    instead = READ_FILE if hasattr(text, "read_text") or hasattr(text, "readlines") else remedy("text", text)
    raise ConstraintError(
        f"{call}: a grammar must be a str, not {type(text).__name__}{instead and f'; {instead}'}"
    )


def mixed_name(text: str, position: int) -> str:
    """The end of a message about a position inside of a name that is neither a rule's nor a terminal's."""
    for name in _NAME.finditer(text, text.rfind("\n", 0, position) + 1):
        if name.end() > position:
            mixed = name.start() < position and name[0].lower() != name[0] != name[0].upper()
            return (
                f"; {name[0]!r} mixes cases: rules are in lower case, terminals in capitals" if mixed else ""
            )
    return ""


def near_to(name: str, known: Iterable[str]) -> str:
    """The end of a message about an undefined name: at most two similar names, or nothing."""
    near = difflib.get_close_matches(name, list(known), 2, 0.7)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def others_of(start: str, rules: Iterable[str]) -> str:
    """The end of the message about an undefined start rule: what to give as ``start``."""
    names = list(rules)
    if not names:
        return ": the text has no rules"
    first = difflib.get_close_matches(start, names, 1, 0.7) or names[:1]
    return f": give start={first[0]!r}" if len(names) == 1 else f": give start=, such as start={first[0]!r}"


def fault(
    message: str, text: str, position: int, kind: type[PatternError] = PatternSyntaxError
) -> PatternError:
    """The error for a position in a grammar: line and column (from 1), message, and a caret."""
    position = min(position, len(text))
    line, column = line_and_column(text, position)
    return kind(f"line {line}, column {column}: {message}", text, position)


class _NoToken(Exception):
    """No token matches at ``position``."""

    def __init__(self, position: int) -> None:
        self.position = position


@lru_cache(maxsize=8)
def _parser(notation: str, late: str | None = None) -> tuple[Lark, Callable[[str], Iterator[Token]], Tables]:
    """Lark's parser of a notation, the lexer of its texts, and the tables of both."""
    try:
        from lark import Lark
        from lark.lexer import Lexer
    except ImportError:
        raise MissingDependencyError(
            'reading grammars needs lark, which is not installed: pip install "tokenfst[grammars]"'
        ) from None

    class NoLexer(Lexer):
        """Keeps lark from making its own lexer: ``parse`` feeds the tokens."""

        def __init__(self, conf: LexerConf) -> None:
            pass

        def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Any]:
            return iter(())

    parser = Lark(notation, parser="lalr", lexer=NoLexer, start="start", maybe_placeholders=False)
    # The order decides between two terminals that match at the same position, as in lark's own lexer.
    order = sorted(
        parser.terminals,
        key=lambda t: (-t.priority, -t.pattern.max_width, -len(t.pattern.value), t.name),
    )
    tokens = Tokens([(terminal.name, terminal.pattern.to_regexp()) for terminal in order])
    return parser, _lexer(parser, tokens.pattern), Tables(parser, tokens, late)


def _lexer(parser: Lark, pattern: re.Pattern[str]) -> Callable[[str], Iterator[Token]]:
    """The tokens of a text, and one of type ``$END``; ``_NoToken`` where none matches."""
    ignored = frozenset(parser.ignore_tokens)

    def lex(text: str) -> Iterator[Token]:
        for match in pattern.finditer(text):
            kind = str(match.lastgroup)
            if kind in ignored:
                continue
            if kind == "_other":
                raise _NoToken(match.start())
            yield token_of(match[0], kind, match.start())
        yield token_of("", "$END", len(text))

    return lex


def fold(tree: Tree[Any], build: Callable[[str, list[Any]], _T], deadline: Deadline | None = None) -> _T:
    """``build(kind, children)`` for every node, from the leaves up; tokens are passed on among the children.

    Raises BudgetExceeded("seconds") after ``deadline``.
    """
    tick = None if deadline is None else lambda count: deadline.tick(count * _NODE)
    found: _T = native_fold(tree, build, tick)
    return found


def rule_body(
    tree: Tree[Any], values: Values, part: Callable[[str, list[Any]], Any], deadline: Deadline
) -> Expr:
    """The expression of the body of a rule, in a notation whose nodes are called as in Lark's.

    ``values``: the expressions of tokens. ``part``: a fold's function for nodes that are neither sequences,
    alternatives, optional parts nor repetitions by a sign. It returns an expression, or a pair of an expression and a
    name, or any value that the node above it can use. Its ``children`` contain expressions only in such pairs. Raises
    BudgetExceeded("seconds") after ``deadline``.
    """
    return _native_of(tree).rule(values, part, deadline.tick, _NODE)


def tokens_of(tree: Tree[Any], kind: str) -> list[Token]:
    """The tokens of a type in a tree, in the order of the text."""
    return _native_of(tree).tokens(kind)


def words_of(tree: Tree[Any]) -> list[str] | None:
    """The texts of the strings in a terminal's body, if each of its alternatives is one string of printable ASCII
    without escapes and flags; otherwise None.
    """
    return _native_of(tree).words()


def _native_of(tree: Tree[Any]) -> SyntaxTree:
    """The core's form of a tree, which late nodes have."""
    found: SyntaxTree | None = getattr(tree, "native", None)
    return SyntaxTree.of(tree) if found is None else found


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
