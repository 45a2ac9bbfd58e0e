"""Grammars in the notation of Lark, the parsing library.

The idea: rules become expressions as they stand, ``*`` a repetition and not a rule; a template becomes a rule
for each list of arguments; a named terminal is a rule without calls. The meaning is Lark's *scannerless* one
(its Earley parser with the dynamic lexer): a text belongs to the language if it can be cut into terminals in
any way at all. So priorities, which choose among ways, and ``?``, ``!``, ``_`` and aliases, which shape
trees, have no effect. ``docs/grammars.md`` has the table.

``%ignore``: what is ignored may stand at the beginning of the text and behind every terminal of a rule; behind and not
before, so that a rule's first byte tells that the rule has begun. Where it ends, and what only some terminals or the
end of the text may follow, is in ``lark_ignored``, which has to know all terminals: then the rules are made twice.

Linear in the text, apart from templates, whose instances are counted, and terminals, which are written into
those that name them (``BudgetExceeded``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from tokenfst.arguments import checked_but
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, Ranges
from tokenfst.automata.expressions.expression import (
    EPSILON,
    Expr,
    TokenName,
    call,
    concat,
    literal,
    optional,
    repeat,
    tokens,
    union,
)
from tokenfst.automata.grammars.assembly import Assembly
from tokenfst.automata.grammars.grammar import Grammar, refuse_empty
from tokenfst.automata.languages.language import Language
from tokenfst.automata.notations import lark_terminals as terminals
from tokenfst.automata.notations.lark_ignored import Runs, runs_of
from tokenfst.automata.notations.lark_source import Definition, File, Source, is_terminal, terminals_in
from tokenfst.automata.notations.reading import Token, fold
from tokenfst.automata.regex import leftmost
from tokenfst.automata.regex.named_groups import NAMES
from tokenfst.automata.regex.parse import MAXREPEAT, Pattern
from tokenfst.automata.rules.graph import called
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, ConstraintError, PatternError, UnsupportedPatternError

if TYPE_CHECKING:
    from lark import Tree

_MAX_INSTANCES = 10_000
_IGNORED, _START = "%ignore", "%start"
_SURROGATE = re.compile("[\ud800-\udfff]")

_JSON: Ranges = tuple((ord(each), ord(each)) for each in '"-0123456789[fnt{')
"""What a JSON text begins with."""

_Value = tuple[Expr, str]
"""An expression and, for what can be an argument of a template, a name for it."""


@checked_but("text")
def lark_grammar(text: str, start: str = "start", budget: Budget | None = None) -> Grammar:
    """The grammar of a text in Lark's notation; its words are those of the rule ``start``.

    ``%import`` finds the grammars that lark ships (``common``, ``python``, ``unicode``). Raises
    PatternSyntaxError (with line, column and caret) for a malformed text or regular expression, undefined
    names and names defined twice; UnsupportedPatternError for ``%declare``, relative imports, back-references,
    and terminals that are lazy and greedy at once; EmptyLanguageError if ``start`` has no word;
    BudgetExceeded("positions"); MissingDependencyError without lark.
    """
    if not isinstance(text, str):
        raise ConstraintError(f"a grammar is a str, not {type(text).__name__}; decode it first")
    return _Builder(Source(text), budget).build(start)


class _Builder:
    def __init__(self, source: Source, budget: Budget | None, runs: Runs | None = None) -> None:
        self.source, self.budget, self.runs = source, budget, runs
        self.text = source.text
        self.patterns: dict[int, terminals.Body] = {}
        self.parsed: dict[str, Pattern] = {}
        self.named: set[int] = set()
        self.rules: dict[str, Expr] = {}
        self.positions: dict[str, int] = {}
        self.waiting: list[tuple[str, Definition, dict[str, _Value]]] = []
        self.calls: dict[str, Expr] = {}
        self.leaves: dict[str, Expr] = {}
        self.ignore: Expr = EPSILON
        self.ending: dict[str, tuple[Expr, Ranges]] = {}
        self.words: dict[int, Expr] = {}
        self.schemas = Assembly(budget)

    def build(self, start: str) -> Grammar:
        main = self.source.main
        first = main.scope.get(start)
        if first is None or start[:1].isupper() or first.params:
            self.source.fail(f"there is no rule {start!r} to start with", 0)
        if main.ignored:
            self.ignore = call(_IGNORED)
            self.rules[_IGNORED] = (
                self.runs.between
                if self.runs is not None
                else repeat(union(*(self.ignored_part(tree, main) for tree in main.ignored)))
            )
        self.reference(first)
        for definition in main.scope.values():
            if definition.own and not definition.params and not is_terminal(definition.name):
                self.reference(definition)
        self.translate()
        for definition in main.scope.values():
            if definition.own and is_terminal(definition.name) and id(definition) not in self.named:
                self.reference(definition)
        self.translate()
        self.rules.update(self.schemas.rules)
        if main.ignored:
            if self.runs is None and (runs := self.ignored_runs(main)) is not None:
                if not runs.plain:
                    return _Builder(self.source, self.budget, runs).build(start)
                self.rules[_IGNORED] = runs.between
            start = self.with_ignored_ends(first.name)
        shown = f"{self.text[:60]!r}{'...' if len(self.text) > 60 else ''}"
        order = sorted(self.rules, key=lambda name: self.positions.get(name, len(self.text)))
        return refuse_empty(
            Grammar(
                {name: self.rules[name] for name in order},
                start,
                source=f"lark_grammar({shown})",
                text=self.text,
                positions=self.positions,
                budget=self.budget,
            )
        )

    def with_ignored_ends(self, start: str) -> str:
        """The rule for whole texts: what is ignored may stand at their beginning as well, and some of it at their end
        only."""
        end = EPSILON if self.runs is None else self.runs.end
        if not any(start in called(body) for body in self.rules.values()):
            self.rules[start] = concat(self.ignore, self.rules[start], end)
            return start
        self.rules[_START] = concat(self.ignore, call(start), end)
        self.positions[_START] = self.positions[start]
        return _START

    def ignored_runs(self, main: File) -> Runs | None:
        """What lark ignores; None where that is all repetitions of what %ignore names."""
        budget = self.budget or Budget()
        pieces: list[leftmost.Leftmost] = []
        written: list[Expr] = []
        for tree in main.ignored:
            body = self.pattern_of([(tree, main)])
            position = main.position(next(tree.scan_values(lambda value: isinstance(value, Token))))
            try:
                pattern = terminals.parse_pattern(terminals.joined(body.patterns), self.parsed, self.budget)
                if pattern.reserved:
                    return None
                piece = leftmost.read(pattern, budget)
            except PatternError as error:
                self.source.fail(error.message, position, type(error))
            if piece is None:
                message = "look-around in what is ignored, or a repetition of what may be empty: leave it out"
                self.source.fail(message, position, UnsupportedPatternError)
            pieces.append(piece)
            written.append(terminals.expression_of(body.patterns, self.parsed, self.budget))
        try:
            runs = runs_of(pieces, self.ending, budget)
        except UnsupportedPatternError as error:
            self.source.fail(error.message, position, type(error))
        every = Language(repeat(union(*written)), "what is ignored", budget)
        return (
            None
            if runs.plain and every.equivalent(Language(runs.between, "what is ignored", budget))
            else runs
        )

    def ended(self, terminal: Expr, key: str, words: Callable[[], Expr], first: Callable[[], Ranges]) -> Expr:
        """A terminal in a rule, with what is ignored behind it, and before it where it is not always ignored behind.
        ``words``: its expression without calls; ``first``: what they begin with."""
        if self.ignore is EPSILON:
            return terminal
        if key not in self.ending:
            self.ending[key] = words(), first()
        if self.runs is not None:
            terminal = self.runs.led(terminal, key, *self.ending[key])
        return concat(terminal, self.ignore)

    # --- rules ----------------------------------------------------------------------------------------

    def reference(
        self, definition: Definition, name: str = "", bound: dict[str, _Value] | None = None
    ) -> Expr:
        """A call of a definition (of a template under ``name``), which is translated in its turn."""
        name = name or definition.name
        if name not in self.calls:
            self.calls[name] = call(name)
            self.waiting.append((name, definition, bound or {}))
        return self.calls[name]

    def translate(self) -> None:
        instances = 0
        while self.waiting:
            name, definition, bound = self.waiting.pop()
            self.positions[name] = definition.position
            if is_terminal(definition.name.split(".")[-1]):
                self.rules[name] = self.terminal(definition)
                continue
            instances += bool(bound)
            if instances > _MAX_INSTANCES or len(name) > 10 * _MAX_INSTANCES:
                raise BudgetExceeded(
                    "template instances", _MAX_INSTANCES, f"the template {definition.name!r}"
                )
            bodies = [
                fold(tree, partial(self.part, file=file, bound=bound))[0] for tree, file in definition.bodies
            ]
            self.rules[name] = union(*bodies)

    def part(self, kind: str, children: list[Any], file: File, bound: dict[str, _Value]) -> _Value:
        """One node of a rule's body. ``children``: what was made of nodes below, and tokens."""
        if kind == "expansions":
            return union(*[expr for expr, _ in children]), ""
        if kind == "alias":
            return EPSILON, ""
        if kind == "range":
            return self.anonymous(children, file)
        if kind == "special":
            return self.special(self.spelled(children[0], file))
        if kind == "usage":
            arguments = [self.value(each, file, bound) for each in children[1:]]
            if children[0] in bound:
                message = f"{str(children[0])!r} is a parameter and takes no arguments"
                self.source.fail(message, file.position(children[0]))
            return self.rule_value(children[0], arguments, file)
        if kind == "alternative":
            return concat(*[self.value(each, file, bound)[0] for each in children]), ""
        body, _ = self.value(children[0], file, bound)
        if kind == "maybe":
            return optional(body), ""
        low, high = self.bounds(kind, children[1:], file)
        shown = f"the repetition ~{low}..{high}" if kind == "counted" and (high or 0) > 8 else None
        return repeat(body, low, high, shown), ""

    def value(self, part: _Value | Token, file: File, bound: dict[str, _Value]) -> _Value:
        """What was made of a node, or what a token stands for."""
        if not isinstance(part, Token):
            return part
        if part.type == "RULE":
            return bound[part] if part in bound else self.rule_value(part, [], file)
        if part.type == "TERMINAL":
            definition = self.source.look_up(part, file)
            terminal = self.reference(definition)
            return self.ended(
                terminal,
                definition.name,
                lambda: self.terminal(definition),
                lambda: self.first_of(self.pattern(definition).patterns),
            ), definition.name
        if part.type == "SPECIAL":
            return self.special(str(part))
        if part.type == "JSON":
            return self.schema(part, file)
        return self.anonymous([part], file)

    def special(self, name: str) -> _Value:
        """The special token of a name."""
        token = tokens(TokenName(name, special=True))
        return self.ended(token, name, lambda: token, lambda: ()), name

    def schema(self, token: Token, file: File) -> _Value:
        """The JSON texts of a schema. Raises what ``json_schema`` does."""
        from tokenfst.automata.json_schema.door import json_schema

        found = json_schema(file.schemas[token.start_pos], budget=self.budget)
        value, key = self.schemas.expr(found), f"%json at {token.start_pos}"
        return self.ended(value, key, lambda: value, lambda: _JSON), key

    def anonymous(self, tokens: list[Token], file: File) -> _Value:
        """A terminal that is spelled out in a rule."""
        key = "..".join(tokens)
        if key not in self.leaves:
            leaf = self.leaf(tokens, file)
            self.leaves[key] = self.ended(leaf, key, lambda: leaf, lambda: self.first_of_leaf(tokens, file))
        return self.leaves[key], key

    def rule_value(self, token: Token, arguments: list[_Value], file: File) -> _Value:
        definition = self.source.look_up(token, file)
        if len(definition.params) != len(arguments):
            wanted = f"takes {len(definition.params)} arguments, not {len(arguments)}"
            self.source.fail(f"{str(token)!r} {wanted}", file.position(token))
        name = definition.name
        if arguments:
            name = f"{name}{{{','.join(key for _, key in arguments)}}}"
        return self.reference(definition, name, dict(zip(definition.params, arguments, strict=True))), name

    def bounds(self, kind: str, tokens: list[Token], file: File) -> tuple[int, int | None]:
        if kind == "quantified":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[str(tokens[0])]
        low, high = (int(token) if len(token) < 11 else 2**31 for token in (tokens[0], tokens[-1]))
        if not 0 <= low <= high < 2**31 - 1:
            self.source.fail(
                f"a repetition of {tokens[0]} to {tokens[-1]} is empty or too large", file.position(tokens[0])
            )
        return low, high

    # --- terminals ------------------------------------------------------------------------------------

    def ignored_part(self, tree: Tree[Any], file: File) -> Expr:
        """What one %ignore names, or spells out."""
        alternatives: list[Any] = tree.children
        parts = alternatives[0].children
        if len(alternatives) == 1 and len(parts) == 1 and getattr(parts[0], "type", "") == "TERMINAL":
            return self.reference(self.source.look_up(parts[0], file))
        return self.compiled(self.pattern_of([(tree, file)]).patterns, 0)

    def terminal(self, definition: Definition) -> Expr:
        if id(definition) not in self.words:
            body = self.pattern(definition)
            self.words[id(definition)] = self.compiled(body.patterns, definition.position)
        return self.words[id(definition)]

    def leaf(self, tokens: list[Token], file: File) -> Expr:
        """The words of a string, a regular expression or, given two strings, a range."""
        if len(tokens) == 1 and tokens[0].endswith('"'):
            return literal(self.spelled(tokens[0], file).encode())
        body = self.range(tokens, file) if len(tokens) == 2 else self.terminal_value(tokens[0], file)
        return self.compiled(body.patterns, file.position(tokens[0]))

    def first_of_leaf(self, tokens: list[Token], file: File) -> Ranges:
        if len(tokens) == 1 and tokens[0].endswith('"'):
            code = ord(self.spelled(tokens[0], file)[0])
            return ((code, code),)
        body = self.range(tokens, file) if len(tokens) == 2 else self.terminal_value(tokens[0], file)
        return self.first_of(body.patterns)

    def first_of(self, alternatives: list[str]) -> Ranges:
        """What the words of a terminal begin with, or more."""
        pattern = terminals.parse_pattern(terminals.joined(alternatives), self.parsed, self.budget)
        return ((0, MAX_CODE_POINT),) if pattern.reserved else leftmost.Places(pattern, folded=True).first

    def compiled(self, alternatives: list[str], position: int) -> Expr:
        try:
            return terminals.expression_of(alternatives, self.parsed, self.budget)
        except PatternError as error:
            self.source.fail(error.message, position, type(error))

    def pattern(self, wanted: Definition) -> terminals.Body:
        """The alternatives of a terminal as patterns; the terminals it names come first."""
        stack, entered = [wanted], {id(wanted)}
        while stack:
            definition = stack[-1]
            if id(definition) in self.patterns:
                stack.pop()
                continue
            missing: list[Definition] = []
            for tree, file in definition.bodies:
                for token in terminals_in(tree):
                    needed = self.source.look_up(token, file, in_terminal=True)
                    self.named.add(id(needed))
                    if id(needed) not in self.patterns:
                        if id(needed) in entered:
                            self.source.fail(
                                f"the terminal {str(token)!r} names itself", file.position(token)
                            )
                        missing.append(needed)
            if missing:
                stack.append(missing[0])
                entered.add(id(missing[0]))
                continue
            self.patterns[id(definition)] = self.pattern_of(definition.bodies)
            entered.discard(id(definition))
        return self.patterns[id(wanted)]

    def pattern_of(self, bodies: list[tuple[Tree[Any], File]]) -> terminals.Body:
        """The alternatives of bodies, what a later one adds in front, as lark has it."""
        found: list[terminals.Body] = []
        for tree, file in reversed(bodies):
            for token in terminals_in(tree):
                self.pattern(self.source.look_up(token, file, in_terminal=True))
            parts = [fold(each, partial(self.terminal_part, file=file)) for each in tree.children]
            found += parts if tree is bodies[0][0] else [terminals.in_order(parts)]
        body = terminals.in_order(found)
        if sum(map(len, body.patterns)) > terminals.MAX_PATTERN:
            raise BudgetExceeded(
                "characters", terminals.MAX_PATTERN, f"a terminal that begins {body.patterns[0][:40]!r}"
            )
        return body

    def terminal_part(self, kind: str, children: list[Any], file: File) -> terminals.Body:
        """One node of a terminal's body: its alternatives as patterns."""
        if kind == "expansions":
            return terminals.in_order(children)
        if kind == "range":
            return self.range(children, file)
        if kind == "special":
            self.source.fail(
                "special tokens stand in rules only, not in terminals", file.position(children[0])
            )
        if kind == "alias":
            self.source.fail("a terminal has no aliases", file.position(children[0]))
        if kind == "alternative":
            parts = [self.terminal_value(each, file) for each in children]
            if len(parts) > 1 and any(part.bare for part in parts):
                self.bare(children, parts, file)
            return terminals.one_after_the_other(parts) if parts else terminals.EMPTY_BODY
        body = self.terminal_value(children[0], file)
        if kind == "maybe":
            return body.repeated(0, 1, "?")
        low, high = self.bounds(kind, children[1:], file)
        counts = ",".join(str(token) for token in children[1:])
        return body.repeated(low, high, f"{{{counts}}}" if kind == "counted" else counts)

    def bare(self, children: list[Any], parts: list[terminals.Body], file: File) -> NoReturn:
        """Refuses a sequence with a regular expression that lark writes into it without brackets."""
        tokens = [
            each for each, part in zip(children, parts, strict=True) if isinstance(each, Token) and part.bare
        ]
        self.source.fail(
            "lark writes this regular expression beside others without brackets, so that its alternatives reach over "
            "them; write (?:...) around it",
            file.position(tokens[0]) if tokens else 0,
            UnsupportedPatternError,
        )

    def terminal_value(self, part: terminals.Body | Token, file: File) -> terminals.Body:
        """What was made of a node, or what a token stands for."""
        if not isinstance(part, Token):
            return part
        if part.type == "TERMINAL":
            return self.patterns[id(self.source.look_up(part, file, in_terminal=True))]
        if part.type in ("SPECIAL", "JSON"):
            self.source.fail(f"{str(part)!r} stands in rules only, not in terminals", file.position(part))
        if part.type == "RULE":
            message = f"{str(part)!r} is a rule, and terminals are made of terminals only"
            self.source.fail(message, file.position(part))
        if part.type == "REGEXP":
            return self.regular(part, file)
        word, flags = self.spelled(part, file), "i" if part.endswith("i") else ""
        size, pattern = len(word), re.escape(word)
        return terminals.Body(
            [terminals.with_flags(pattern, flags)], size, size, size, len(pattern) + 5 * len(flags)
        )

    def range(self, ends: list[Token], file: File) -> terminals.Body:
        for end in ends:
            if end.endswith("i"):
                self.source.fail("a range has no flags; write /[a-z]/i for it", file.position(end))
        first, last = (self.spelled(each, file) for each in ends)
        if len(first) != 1 or len(last) != 1 or last < first:
            self.source.fail("a range goes from one character up to another", file.position(ends[0]))
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
        word = terminals.unescape(token[1 : token.rindex('"')])
        if isinstance(word, int):
            self.source.fail("this escape is incomplete or no character", file.position(token) + 1 + word)
        if _SURROGATE.search(word):
            self.source.fail("this holds a surrogate, which no UTF-8 text holds", file.position(token))
        if not word:
            self.source.fail("an empty string is no terminal; leave it out", file.position(token))
        return word

    def regular(self, token: Token, file: File) -> terminals.Body:
        """A regular expression, checked where it stands."""
        end = token.rindex("/")
        body, flags = str(token[1:end]), str(token[end + 1 :])
        position = file.position(token)
        if "\n" in body and "x" not in flags:
            self.source.fail("a regular expression goes over a line break only under the flag x", position)
        pattern = terminals.with_flags(body, flags)
        try:
            self.parsed[pattern] = Pattern(pattern, 0, self.budget or Budget(), reserved=NAMES)
        except PatternError as error:
            shift = len(set(flags)) + 3 if flags else 0
            inside = max(error.position - shift, 0) + 1 if file.at is None else 0
            self.source.fail(error.message, min(position + inside, position + end), type(error))
        except RecursionError:
            message = "groups are nested too deeply in this regular expression"
        else:
            low, high = self.parsed[pattern].tree.getwidth()
            bare = not flags and terminals.has_outer_bar(body)
            high, written = min(high, MAXREPEAT), len(body) + 5 * len(set(flags))
            return terminals.Body([pattern], low, high, len(body), written, bare)
        return self.source.fail(message, position, UnsupportedPatternError)
