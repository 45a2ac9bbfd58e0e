"""The bodies of a grammar's terminals: each is folded into regular expressions, which become one expression.

``lark_terminals`` defines what the regular expressions mean. This module does what depends on the source text: it finds
the definition of a name, orders terminals that use each other, and gives errors their position.
"""

from __future__ import annotations

import re
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

from tokenfst.automata.captures.trees import Reading
from tokenfst.automata.characters.utf8 import Ranges
from tokenfst.automata.expressions.expression import EMPTY, EPSILON, Expr, literal
from tokenfst.automata.notations import lark_objects
from tokenfst.automata.notations import lark_terminals as terminals
from tokenfst.automata.notations.lark_source import Definition, File, Source, only_terminal
from tokenfst.automata.notations.parsing.reading import Token, fault, fold, tokens_of, words_of
from tokenfst.automata.regex.parse import MAXREPEAT
from tokenfst.automata.regex.translate import reading
from tokenfst.budget import Budget
from tokenfst.errors import (
    BudgetExceeded,
    ConstraintError,
    PatternError,
    PatternWarning,
    UnsupportedPatternError,
)

if TYPE_CHECKING:
    from lark import Tree

_SURROGATE = re.compile("[\ud800-\udfff]")

_BLIND = (
    r"this terminal ends with look-ahead, begins with look-behind, or does either with \b. It sees only its own text, "
    "so (?!...) restricts nothing there, and (?=...) matches nothing: say in the rules what may stand before and "
    "after it"
)

Value = tuple[Expr, str]
"""An expression and a name for it, which is needed if it is an argument of a template."""


class TerminalBodies:
    """The terminals of one grammar.

    ``patterns`` and ``words``: caches by definition. ``named``: the definitions that a terminal uses. ``read``: the
    readings of expressions that have named groups.
    """

    def __init__(self, source: Source, budget: Budget | None) -> None:
        self.source, self.budget = source, budget
        self.text = source.text
        self.patterns: dict[int, terminals.Body] = {}
        self.regexps = terminals.Patterns(budget)
        self.regular_bodies: dict[str, terminals.Body] = {}
        self.named: set[int] = set()
        self.words: dict[int, Expr] = {}
        self.read: list[tuple[Expr, Reading]] = []

    def terminal(self, definition: Definition) -> Expr:
        """The words of a terminal."""
        if id(definition) not in self.words:
            body = self.pattern(definition)
            self.words[id(definition)] = self.compiled(body.patterns, definition.position)
            if definition.own:
                self.remark(body.patterns, definition.position)
        return self.words[id(definition)]

    def ignored(self, tree: Tree[Any], file: File) -> tuple[str, Expr, int]:
        """The pattern of one %ignore, its words, and its position."""
        token = next(tree.scan_values(lambda value: isinstance(value, Token)), None)
        if token is None:
            message = "%ignore names nothing here: write a terminal, a string or a regular expression"
            self.source.fail(message, self.text.find("%ignore"))
        position, name = file.position(token), only_terminal(tree)
        patterns = self.pattern_of([(tree, file)]).patterns
        named = self.terminal(self.source.look_up(name, file)) if name is not None else None
        return terminals.joined(patterns), named or self.compiled(patterns, position), position

    def leaf(self, tokens: list[Token], file: File) -> Expr:
        """The words of a string, a regular expression, or a range (two strings)."""
        if len(tokens) == 1 and tokens[0].endswith('"'):
            return literal(self.spelled(tokens[0], file).encode())
        if len(tokens) == 1 and (pattern := self.plain_pattern(tokens[0])) is not None:
            patterns = [pattern]
        else:
            body = self.range(tokens, file) if len(tokens) == 2 else self.terminal_value(tokens[0], file)
            patterns = body.patterns
        found = self.compiled(patterns, file.position(tokens[0]))
        if file.at is None:
            self.remark(patterns, file.position(tokens[0]))
        return found

    def remark(self, patterns: list[str], position: int) -> None:
        """Note the position of a terminal that asks about the text around it."""
        if self.regexps.asks_around(terminals.joined(patterns)):
            self.source.blind.add(position)

    def plain_pattern(self, token: Token) -> str | None:
        """The pattern of a regular expression that is plain and has no flags, so that nothing is wrong with it."""
        if token.type != "REGEXP" or token[-1] != "/" or "\n" in token:
            return None
        pattern = token[1:-1]
        return None if self.regexps.plain(pattern) is None else pattern

    def first_of_leaf(self, tokens: list[Token], file: File) -> Ranges:
        """The first characters of the words of a string, regular expression or range in a rule; possibly a superset."""
        if len(tokens) == 1 and tokens[0].endswith('"'):
            code = ord(self.spelled(tokens[0], file)[0])
            return ((code, code),)
        body = self.range(tokens, file) if len(tokens) == 2 else self.terminal_value(tokens[0], file)
        return self.first_of(body.patterns)

    def first_of(self, alternatives: list[str]) -> Ranges:
        """The first characters of the words of a terminal; possibly a superset."""
        return self.regexps.first(terminals.joined(alternatives))

    def compiled(self, alternatives: list[str], position: int) -> Expr:
        """The expression of alternatives; errors are reported at ``position``."""
        try:
            found = terminals.expression_of(alternatives, self.regexps)
            read = None
            if any("(?P<" in each for each in alternatives):
                whole = self.regexps.parsed(terminals.joined(alternatives))
                read = reading(whole, budget=self.budget)
        except PatternError as error:
            self.source.fail(error.message, position, type(error))
        if read is not None and found not in (EMPTY, EPSILON):
            found = found.named(found.source)
            self.read.append((found, read))
        return found

    def pattern(self, wanted: Definition) -> terminals.Body:
        """The alternatives of a terminal as patterns; the terminals that it uses are folded first."""
        stack, entered = [wanted], {id(wanted)}
        while stack:
            definition = stack[-1]
            if id(definition) in self.patterns:
                stack.pop()
                continue
            missing: list[Definition] = []
            for tree, file in definition.bodies:
                for token in tokens_of(tree, "TERMINAL"):
                    needed = self.source.look_up(token, file, in_terminal=True)
                    self.named.add(id(needed))
                    if id(needed) not in self.patterns:
                        if id(needed) in entered:
                            self.source.fail(
                                f"the terminal {str(token)!r} is defined by itself; only rules may be recursive",
                                file.position(token),
                            )
                        missing.append(needed)
            if missing:
                stack.append(missing[0])
                entered.add(id(missing[0]))
                continue
            self.patterns[id(definition)] = self.alternatives_of(definition.bodies)
            entered.discard(id(definition))
        return self.patterns[id(wanted)]

    def pattern_of(self, bodies: list[tuple[Tree[Any], File]]) -> terminals.Body:
        """The alternatives of several bodies; the terminals that they use are folded first."""
        for tree, file in reversed(bodies):
            for token in tokens_of(tree, "TERMINAL"):
                self.pattern(self.source.look_up(token, file, in_terminal=True))
        return self.alternatives_of(bodies)

    def alternatives_of(self, bodies: list[tuple[Tree[Any], File]]) -> terminals.Body:
        """The alternatives of several bodies; as in lark, those of a later body come first."""
        words = words_of(bodies[0][0]) if len(bodies) == 1 else None
        if words is not None:
            self.source.deadline.tick(len(words))
            return self.bounded(terminals.of_words(words))
        found: list[terminals.Body] = []
        for tree, file in reversed(bodies):
            build = partial(self.terminal_part, file=file)
            self.source.deadline.tick(len(tree.children))
            parts = [
                self.terminal_value(each.children[0], file)
                if len(each.children) == 1 and isinstance(each.children[0], Token)
                else fold(each, build, self.source.deadline)
                for each in tree.children
            ]
            found += parts if tree is bodies[0][0] else [terminals.in_order(parts)]
        return self.bounded(terminals.in_order(found))

    def bounded(self, body: terminals.Body) -> terminals.Body:
        """The body, unless its patterns are very long."""
        if sum(map(len, body.patterns)) > terminals.MAX_PATTERN:
            raise BudgetExceeded(
                "characters", terminals.MAX_PATTERN, f"a terminal that begins {body.patterns[0][:40]!r}"
            )
        return body

    def terminal_part(self, kind: str, children: list[Any], file: File) -> terminals.Body:
        """One node of a terminal's body: its alternatives as patterns."""
        if kind == "expansions":
            return terminals.in_order(children)
        if kind == "both":
            return terminals.in_all([each for each in children if not isinstance(each, Token)])
        if kind == "negated":
            return terminals.not_in(self.terminal_value(children[1], file))
        if kind == "parameterized":
            self.source.fail("a terminal cannot have parameters; use a rule", file.position(children[1]))
        if kind == "range":
            return self.range(children, file)
        if kind == "special":
            self.source.fail(
                "a special token is allowed in rules only, not in terminals", file.position(children[0])
            )
        if kind == "alias":
            self.source.fail(
                "an alias (->) is allowed in rules only, not in terminals", file.position(children[0])
            )
        if kind == "alternative":
            parts = [self.terminal_value(each, file) for each in children]
            bare = [
                file.position(each) if isinstance(each, Token) else part.bare
                for each, part in zip(children, parts, strict=True)
                if part.bare is not None
            ]
            if len(parts) > 1 and bare:
                self.source.fail(
                    "lark joins this regular expression to others without brackets, so that its alternatives extend "
                    "over them; write (?:...) around it",
                    bare[0],
                    UnsupportedPatternError,
                )
            return terminals.one_after_the_other(parts) if parts else terminals.EMPTY_BODY
        body = self.terminal_value(children[0], file)
        if kind == "maybe":
            return body.repeated(0, 1, "?")
        low, high = self.bounds(kind, children[1:], file)
        written = str(children[1])
        if kind == "counted":
            written = f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}"
        return body.repeated(low, high, written)

    def terminal_value(self, part: terminals.Body | Token, file: File) -> terminals.Body:
        """The alternatives of a node that was folded already, or of a token."""
        if not isinstance(part, Token):
            return part
        if part.type == "STRING":
            return self.string(part, file)
        if part.type == "TERMINAL":
            return self.patterns[id(self.source.look_up(part, file, in_terminal=True))]
        if part.type == "CONDITION":
            self.source.fail(
                "a condition (%if) is allowed in rules with a parameter only, not in terminals",
                file.position(part),
            )
        if part.type == "REGEX":
            return self.object(part, file)
        if part.type in ("SPECIAL", "JSON", "GRAMMAR", "LARK"):
            self.source.fail(f"{str(part)!r} is allowed in rules only, not in terminals", file.position(part))
        if part.type == "RULE":
            message = f"{str(part)!r} is a rule; a terminal can use only terminals"
            self.source.fail(message, file.position(part))
        if part not in self.regular_bodies:
            self.regular_bodies[part] = self.regular(part, file)
        return self.regular_bodies[part]

    def string(self, token: Token, file: File) -> terminals.Body:
        """The pattern of a string literal."""
        if token == '""':
            return terminals.EMPTY_BODY
        word, flags = self.spelled(token, file), "i" if token.endswith("i") else ""
        size, pattern = len(word), re.escape(word)
        return terminals.Body(
            [terminals.with_flags(pattern, flags)], size, size, size, len(pattern) + 5 * len(flags)
        )

    def object(self, token: Token, file: File) -> terminals.Body:
        """The pattern of the JSON object after ``%regex``."""
        try:
            pattern = lark_objects.pattern_of(file.schemas[token.start_pos])
        except ConstraintError as error:
            self.source.fail(str(error), file.position(token))
        return terminals.Body([pattern], 0, MAXREPEAT, len(pattern), len(pattern))

    def range(self, ends: list[Token], file: File) -> terminals.Body:
        """A range of characters."""
        for end in ends:
            if end.endswith("i"):
                self.source.fail(
                    "a range cannot have flags; write a character class instead, as in /[a-z]/i",
                    file.position(end),
                )
        first, last = (self.spelled(each, file) for each in ends)
        if len(first) != 1 or len(last) != 1 or last < first:
            self.source.fail(
                "a range needs two single characters, the first not after the second", file.position(ends[0])
            )
        if ends[0] == '"^"' or ends[1] == '"]"':
            self.source.fail(
                f"lark reads the range {ends[0]}..{ends[1]} as another class; write \\x{ord(first):02x} or "
                f"\\x{ord(last):02x} for that end, or a regular expression",
                file.position(ends[0]),
                UnsupportedPatternError,
            )
        size = len(ends[0] + ends[1]) - 1
        return terminals.Body([f"[{re.escape(first)}-{re.escape(last)}]"], 1, 1, size, size)

    def spelled(self, token: Token, file: File) -> str:
        """The text of a string literal."""
        inner = token[1 : token.rindex('"')]
        word = terminals.unescape(inner) if "\\" in inner else inner
        if isinstance(word, int):
            self.source.fail(
                "this escape is incomplete, or is not the number of a character",
                file.position(token) + 1 + word,
            )
        if not word.isascii() and _SURROGATE.search(word):
            self.source.fail(
                "this string contains a surrogate, which UTF-8 cannot encode", file.position(token)
            )
        if not word:
            self.source.fail(
                "an empty string cannot be a terminal or the end of a range", file.position(token)
            )
        return word

    def regular(self, token: Token, file: File) -> terminals.Body:
        """A regular expression; errors are reported at its position."""
        end = token.rindex("/")
        body, flags = str(token[1:end]), str(token[end + 1 :])
        position = file.position(token)
        if "\n" in body and "x" not in flags:
            self.source.fail("a regular expression may contain a line break only with the flag x", position)
        pattern = terminals.with_flags(body, flags)
        try:
            low, high = self.regexps.width(pattern)
        except PatternError as error:
            shift = len(set(flags)) + 3 if flags else 0
            inside = max(error.position - shift, 0) + 1 if file.at is None else 0
            self.source.fail(error.message, min(position + inside, position + end), type(error))
        except RecursionError:
            message = "groups are nested too deeply in this regular expression"
        else:
            bare = position if not flags and terminals.has_outer_bar(body) else None
            written = len(body) + 5 * len(set(flags))
            return terminals.Body([pattern], low, high, len(body), written, bare)
        return self.source.fail(message, position, UnsupportedPatternError)

    def bounds(self, kind: str, tokens: list[Token], file: File) -> tuple[int, int | None]:
        """The least and greatest number of repetitions."""
        if kind == "quantified":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[str(tokens[0])]
        texts = list(map(str, tokens))
        if tokens[0].type == "BOUNDS":
            texts = [each.strip() or "0" for each in tokens[0].strip("{}").split(",")]
            if tokens[0].rstrip("} \t").endswith(","):
                texts[1:] = [str(2**31 - 2)]
        low, high = (int(text) if len(text) < 11 else 2**31 for text in (texts[0], texts[-1]))
        if high == 2**31 - 2 and low < high:
            return low, None
        if not 0 <= low <= high < 2**31 - 1:
            self.source.fail(
                f"the repetition {texts[0]}..{texts[-1]} is not valid: its bounds are in the wrong order or too large",
                file.position(tokens[0]),
            )
        return low, high


def warn_of_blind(source: Source, stacklevel: int) -> None:
    """Warn of each terminal that asks about the text around it."""
    for position in sorted(source.blind):
        message = fault(_BLIND, source.text, position).message
        warnings.warn(message, PatternWarning, stacklevel)
