"""Grammars in the notation of Lark, the parsing library.

Rules become expressions directly: ``*`` is a repetition, not a rule; a template becomes a rule for each list of
arguments; a named terminal is a rule without calls. The meaning is Lark's *scannerless* one (its Earley parser with the
dynamic lexer): a text belongs to the language if it can be split into terminals in any way at all. So priorities, which
choose among parses, and ``?``, ``!``, ``_`` and aliases, which shape trees, have no effect.
``docs/constraints/grammars.md`` has the table.

``%ignore``: ignored text may stand at the beginning of the text and after every terminal of a rule; after and not
before, so that the first byte of a rule shows that the rule has started. ``lark_ignored`` decides where ignored text
ends if only some terminals or the end of the text may follow. It needs all terminals, so the rules are then built
twice.

Linear in the text, apart from templates, whose instances are counted, and terminals, which are inlined into those that
name them (``BudgetExceeded``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, Ranges
from tokenfst.automata.expressions.expression import (
    EMPTY,
    EPSILON,
    Expr,
    TokenName,
    call,
    concat,
    repeat,
    tokens,
    union,
)
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.grammars.assembly import Assembly
from tokenfst.automata.grammars.captured import NamedParts
from tokenfst.automata.grammars.grammar import Grammar, refuse_empty
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.languages.language import Language
from tokenfst.automata.notations.lark_attributes import with_attributes
from tokenfst.automata.notations.lark_bodies import TerminalBodies, Value, warn_of_blind
from tokenfst.automata.notations.lark_ignored import Runs, may_end_anywhere, runs_of
from tokenfst.automata.notations.lark_parameters import resolved
from tokenfst.automata.notations.lark_source import Definition, File, Source, only_terminal
from tokenfst.automata.notations.parsing.reading import (
    Token,
    Values,
    others_of,
    refuse_text,
    rule_body,
)
from tokenfst.automata.regex import leftmost
from tokenfst.automata.rules.graph import Rules
from tokenfst.budget import DEFAULT, Budget
from tokenfst.common.arguments import checked_but, refuse
from tokenfst.common.plurals import counted
from tokenfst.errors import BudgetExceeded, PatternError, UnsupportedPatternError

if TYPE_CHECKING:
    from lark import Tree

_MAX_INSTANCES = 10_000
_LISTED = re.compile(r"<(\[\^?(?:[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*|\*)\])>")
"""Tokens by id, as in llguidance: ``<[5]>``, ``<[5-7,9]>``, ``<[^5]>``, ``<[*]>``."""
_IGNORED, _START = "%ignore", "%start"
_LASTING = frozenset({"RULE", "TERMINAL", "STRING", "REGEXP"})
"""The types of tokens that mean the same wherever they stand in a file."""
_SURROGATE = re.compile("[\ud800-\udfff]")

_JSON: Ranges = tuple((ord(each), ord(each)) for each in '"-0123456789[fnt{')
"""The characters with which a JSON text can start."""


@checked_but("text")
def lark_grammar(
    text: str,
    start: str = "start",
    budget: Budget | None = None,
    *,
    grammars: Mapping[str, Constraint] | None = None,
    allow_initial_skip: bool = True,
) -> Grammar:
    """The grammar of a text in Lark's notation; its words are those of the rule ``start``.

    ``%import`` finds the grammars that lark ships (``common``, ``python``, ``unicode``). ``grammars``: the constraints
    that ``@name`` refers to. ``allow_initial_skip``: whether ignored text may stand at the beginning of the text, as in
    lark but not in llguidance; an option of that name in the text takes precedence. ``rule[capture]: ...`` and named
    groups of terminals are captured (``Constraint.captures``).

    Raises PatternSyntaxError (with line, column and caret) for a malformed text or regular expression, undefined names
    and names defined twice; UnsupportedPatternError for ``%declare``, relative imports, back-references, and terminals
    for which it cannot be decided whether a shorter match hides a longer one (``lark_terminals``); EmptyLanguageError
    if ``start`` has no words; BudgetExceeded("positions"); MissingDependencyError without lark. Warns of terminals
    that ask about the text around them (PatternWarning): they see only their own.
    """
    if not isinstance(text, str):
        refuse_text("lark_grammar", text)
    given = dict(grammars or {})
    for name, constraint in given.items():
        if not isinstance(constraint, Constraint):
            refuse("lark_grammar", f"grammars[{name!r}]", constraint, "a Language or Grammar")
    deadline = Deadline(budget or DEFAULT, "the text of a grammar (lark_grammar)")
    source = Source(text, deadline, ignored_first=allow_initial_skip)
    made = _Builder(source, budget, grammars=given).build(start)
    warn_of_blind(source, stacklevel=4)
    return made


class _Builder(TerminalBodies):
    def __init__(
        self,
        source: Source,
        budget: Budget | None,
        runs: Runs | None = None,
        *,
        grammars: Mapping[str, Constraint],
    ) -> None:
        super().__init__(source, budget)
        self.runs, self.grammars = runs, grammars
        self.captured: dict[str, str] = {}
        self.temperatures: dict[str, float] = {}
        self.rules: dict[str, Expr] = {}
        self.positions: dict[str, int] = {}
        self.waiting: list[tuple[str, Definition, dict[str, Value], int | None]] = []
        self.calls: dict[str, Expr] = {}
        self.leaves: dict[str, Expr] = {}
        self.known: dict[int, Values] = {}
        self.ignore: Expr = EPSILON
        self.ending: dict[str, tuple[Expr, Ranges]] = {}
        self.schemas = Assembly(budget)

    def build(self, start: str) -> Grammar:
        main = self.source.main
        first = main.scope.get(start)
        if first is None or start[:1].isupper():
            names = [name for name, each in main.scope.items() if each.own and not each.terminal]
            self.source.fail(f"the start rule {start!r} is not defined{others_of(start, names)}", 0)
        if first.params or first.parameterized:
            self.source.fail(f"the start rule {start!r} must not have parameters", first.position)
        if main.ignored:
            self.ignore = call(_IGNORED)
            self.rules[_IGNORED] = (
                self.runs.between
                if self.runs is not None
                else repeat(
                    union(*(self.ignored_part(tree, main) for tree in main.ignored)),
                    0,
                    1 if main.ignored_once else None,
                )
            )
        self.reference(first)
        for definition in main.scope.values():
            plain = not definition.params and not definition.parameterized
            if definition.own and not definition.terminal:
                (self.reference if plain else self.source.check_names)(definition)  # perhaps nothing uses it
        self.translate()
        for definition in main.scope.values():
            if definition.own and definition.terminal and id(definition) not in self.named:
                self.reference(definition)
        self.translate()
        self.rules.update(self.schemas.rules)
        rules: Rules | None = None
        if main.ignored:
            repeated = self.runs is None and not main.ignored_once
            if repeated and (runs := self.ignored_runs(main)) is not None:
                if not runs.plain:
                    return _Builder(self.source, self.budget, runs, grammars=self.grammars).build(start)
                self.rules[_IGNORED] = runs.between
            rules = Rules(self.rules)
            start = self.with_ignored_ends(first.name, rules)
        shown = f"{self.text[:60]!r}{'...' if len(self.text) > 60 else ''}"
        places = dict.fromkeys(self.rules, len(self.text)) | self.positions
        order = sorted(self.rules, key=places.__getitem__)
        made = refuse_empty(
            Grammar(
                Rules({name: self.rules[name] for name in order}, like=rules),
                start,
                source=f"lark_grammar({shown})",
                text=self.text,
                positions=self.positions,
                budget=self.budget,
                marked=self.marked(),
            )
        )
        if self.temperatures and made.reading is not None and made.reading.refusal:
            place = min(self.positions[name] for name in self.temperatures)
            self.source.fail(made.reading.refusal, place, UnsupportedPatternError)
        return made

    def marked(self) -> NamedParts:
        """The named parts of the grammar, which are captured."""
        parts = self.schemas.marked
        temperatures = self.temperatures | parts.temperatures
        return NamedParts(self.captured | parts.rules, [*self.read, *parts.leaves], temperatures)

    def with_ignored_ends(self, start: str, rules: Rules) -> str:
        """The rule of whole texts: ignored text may also come at the beginning, and some of it only at the end.
        ``rules``: the rules so far.
        """
        end = EPSILON if self.runs is None else self.runs.end
        first = self.ignore if self.source.main.ignored_first else EPSILON
        if not any(start in called for called in rules.graph.values()):
            self.rules[start] = concat(first, self.rules[start], end)
            return start
        self.rules[_START] = concat(first, call(start), end)
        self.positions[_START] = self.positions[start]
        return _START

    def ignored_runs(self, main: File) -> Runs | None:
        """The ignored text; None if it is any repetition of what %ignore names."""
        budget = self.budget or DEFAULT
        ignored = [self.ignored(tree, main) for tree in main.ignored]
        words = [each for _, each, _ in ignored]
        plain = [self.regexps.plain(text) for text, _, _ in ignored]
        if may_end_anywhere(list(zip(words, plain, strict=True)), self.ending):
            return None
        pieces: list[leftmost.Leftmost] = []
        for text, _, position in ignored:
            try:
                pattern = self.regexps.parsed(text)
                if pattern.reserved:
                    return None
                piece = leftmost.read(pattern, budget)
            except PatternError as error:
                self.source.fail(error.message, position, type(error))
            if piece is None:
                message = "%ignore must not have look-around or repeat what may be empty: rewrite the pattern"
                self.source.fail(message, position, UnsupportedPatternError)
            pieces.append(piece)
        try:
            runs = runs_of(pieces, self.ending, budget)
        except UnsupportedPatternError as error:
            self.source.fail(error.message, position, type(error))
        every = Language(repeat(union(*words)), "what is ignored", budget)
        return (
            None
            if runs.plain and every.equivalent(Language(runs.between, "what is ignored", budget))
            else runs
        )

    def ended(self, terminal: Expr, key: str, words: Callable[[], Expr], first: Callable[[], Ranges]) -> Expr:
        """A terminal in a rule, with the ignored text after it, and with that before it which is not always allowed
        after a terminal. ``words``: its expression without calls; ``first``: the first characters of the words.
        """
        if self.ignore is EPSILON:
            return terminal
        if key not in self.ending:
            self.ending[key] = words(), first()
        if self.runs is not None:
            terminal = self.runs.led(terminal, key, *self.ending[key])
        return concat(terminal, self.ignore)

    # --- rules ----------------------------------------------------------------------------------------

    def reference(
        self,
        definition: Definition,
        name: str = "",
        bound: dict[str, Value] | None = None,
        parameter: int | None = None,
    ) -> Expr:
        """A call of a definition. It is translated under the name of a template with its arguments, or of a rule with
        its parameter.
        """
        name = name or definition.name
        if name not in self.calls:
            self.calls[name] = call(name)
            self.waiting.append((name, definition, bound or {}, parameter))
        return self.calls[name]

    def translate(self) -> None:
        instances = 0
        while self.waiting:
            name, definition, bound, parameter = self.waiting.pop()
            self.positions[name] = definition.position
            if definition.terminal:
                self.rules[name] = self.terminal(definition)
                continue
            if definition.attributes.temperature is not None:
                self.temperatures[name] = definition.attributes.temperature
            if definition.attributes.of_terminal:
                self.rules[name] = self.terminal_rule(definition)
                continue
            instances += bool(bound) or parameter is not None
            if instances > _MAX_INSTANCES or len(name) > 10 * _MAX_INSTANCES:
                what = "template" if bound else "rule"
                raise BudgetExceeded("template instances", _MAX_INSTANCES, f"the {what} {definition.name!r}")
            bodies = [
                rule_body(
                    resolved(tree, parameter, file.position, self.source.fail, self.source.deadline)
                    if file.has_parameters
                    else tree,
                    self.values(file, bound),
                    partial(self.part, file=file, bound=bound),
                    self.source.deadline,
                )
                for tree, file in definition.bodies
            ]
            self.rules[name] = union(*bodies)
            if definition.attributes.capture is not None:
                self.captured[name] = definition.attributes.capture

    def part(self, kind: str, children: list[Any], file: File, bound: dict[str, Value]) -> Value:
        """One node of a rule's body, of a kind that ``rule_body`` leaves. ``children``: the results of the nodes below,
        and tokens.
        """
        if kind == "never":
            return EMPTY, ""
        if kind in ("both", "negated"):
            operator = next(each for each in children if isinstance(each, Token))
            message = (
                f"{operator!s} stands in terminals, not in rules: give this a terminal's name, in capitals"
            )
            self.source.fail(message, file.position(operator), UnsupportedPatternError)
        if kind == "parameterized":
            return self.rule_value(children[0], [], file, int(children[1]))
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
        body, _ = self.value(children[0], file, bound)
        low, high = self.bounds(kind, children[1:], file)
        return repeat(body, low, high, f"the repetition ~{low}..{high}" if (high or 0) > 8 else None), ""

    def values(self, file: File, bound: dict[str, Value]) -> Values:
        """The expressions of the tokens of a file's rules. Arguments of templates differ from instance to instance."""
        known = None if bound else self.known.get(id(file))
        if known is None:
            known = Values(lambda token: self.value(token, file, bound)[0], _LASTING)
            if not bound:
                self.known[id(file)] = known
        return known

    def value(self, part: Value | Token, file: File, bound: dict[str, Value]) -> Value:
        """The result of a node, or the meaning of a token."""
        if not isinstance(part, Token):
            return part
        if part == '""':
            return EPSILON, part
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
        if part.type == "REGEX":
            return self.substrings(part, file)
        if part.type in ("GRAMMAR", "LARK"):
            return self.subgrammar(part, file)
        return self.anonymous([part], file)

    def special(self, name: str) -> Value:
        """The special token of a name."""
        listed = _LISTED.fullmatch(name)
        token = tokens(
            TokenName(name, special=True) if listed is None else TokenName(listed[1], special=False)
        )
        return self.ended(token, name, lambda: token, lambda: ()), name

    def schema(self, token: Token, file: File) -> Value:
        """The JSON texts of a schema. Raises what ``json_schema`` does."""
        value, key = self.schemas.expr(self.given(token, file)), f"%json at {token.start_pos}"
        return self.ended(value, key, lambda: value, lambda: _JSON), key

    def given(self, token: Token, file: File) -> Constraint:
        """The constraint of a %json, of a %lark, or of an @name."""
        if token.type == "JSON":
            from tokenfst.automata.json_schema.json_schema import json_schema

            return json_schema(file.schemas[token.start_pos], budget=self.budget)
        if token.type == "LARK":
            source = Source(
                file.schemas[token.start_pos],
                self.source.deadline,
                ignored_first=self.source.main.ignored_first,
            )
            if "start" not in source.main.scope:
                self.source.fail("the grammar after %lark defines no rule 'start'", file.position(token))
            made = _Builder(source, self.budget, grammars=self.grammars).build("start")
            self.source.blind |= source.blind
            return made
        found = self.grammars.get(token[1:])
        if found is None:
            known = ", ".join(map(repr, self.grammars)) or "none"
            message = f"nothing is given for {str(token)!r}: pass lark_grammar(..., grammars={{{token[1:]!r}: ...}})"
            self.source.fail(f"{message}; given: {known}", file.position(token))
        return found

    def substrings(self, token: Token, file: File) -> Value:
        """The words of the object after %regex."""
        value = self.compiled(self.object(token, file).patterns, file.position(token))
        key = f"%regex at {token.start_pos}"
        return self.ended(value, key, lambda: value, lambda: ((0, MAX_CODE_POINT),)), key

    def subgrammar(self, token: Token, file: File) -> Value:
        """The texts of an @name or of an inner grammar."""
        value = self.schemas.expr(self.given(token, file))
        key = str(token) if token.type == "GRAMMAR" else f"%lark at {token.start_pos}"
        return self.ended(value, key, lambda: value, lambda: ((0, MAX_CODE_POINT),)), key

    def terminal_rule(self, definition: Definition) -> Expr:
        """A rule that consists of one terminal, with the attributes that only such a rule can have."""
        attributes, (tree, file) = definition.attributes, definition.bodies[0]
        tokens = list(tree.scan_values(lambda value: isinstance(value, Token)))
        if len(definition.bodies) == 1 and [token.type for token in tokens] in (
            ["JSON"],
            ["GRAMMAR"],
            ["LARK"],
        ):
            words = self.regular_value(tokens[0], file, definition)
        else:
            words = self.terminal_words(definition)
        end = None
        if (token := attributes.end) is not None:
            if token.type == "TERMINAL":
                end = self.terminal(self.source.look_up(token, file))
            else:
                end = self.leaf([token], file)
        inner = next((read for expr, read in self.read if expr is words), None)
        found, read = with_attributes(attributes, words, end, inner, self.budget)
        if read is not None:
            self.read.append((found, read))
        key = f"{definition.name} at {definition.position}"
        return self.ended(found, key, lambda: found, lambda: ((0, MAX_CODE_POINT),))

    def terminal_words(self, definition: Definition) -> Expr:
        """The words of a rule that consists of one terminal."""
        for tree, _ in definition.bodies:
            if any(
                token.type in ("RULE", "JSON", "GRAMMAR", "LARK", "SPECIAL")
                for token in tree.scan_values(lambda value: isinstance(value, Token))
            ):
                message = (
                    "lazy, suffix, stop, max_chars and max_tokens are for terminals, the last two also for one "
                    f"%json or @name, and {definition.name!r} names other things: capitalize its rules"
                )
                self.source.fail(message, definition.position, UnsupportedPatternError)
        patterns = self.pattern_of(definition.bodies).patterns
        self.remark(patterns, definition.position)
        return self.compiled(patterns, definition.position)

    def regular_value(self, token: Token, file: File, definition: Definition) -> Expr:
        """The texts of a %json or @name that is the whole body of a rule, as a new expression."""
        if definition.attributes.ends_early:
            message = f"lazy, suffix and stop are for terminals, and {definition.name!r} is none"
            self.source.fail(message, definition.position, UnsupportedPatternError)
        found = self.given(token, file)
        if isinstance(found, Grammar):
            if not found.is_regular():
                message = (
                    f"max_chars and max_tokens are for texts without recursion, and {definition.name!r} needs a "
                    "stack: pass lark_grammar(..., grammars={name: grammar.truncate(depth)})"
                )
                self.source.fail(message, definition.position, UnsupportedPatternError)
            found = found.to_language()
        assert isinstance(found, Language)
        if found.reading is not None:
            self.read.append((found.expr, found.reading))
        return found.expr

    def anonymous(self, tokens: list[Token], file: File) -> Value:
        """A terminal that is written in a rule."""
        key = "..".join(tokens)
        if key not in self.leaves:
            leaf = self.leaf(tokens, file)
            self.leaves[key] = self.ended(leaf, key, lambda: leaf, lambda: self.first_of_leaf(tokens, file))
        return self.leaves[key], key

    def rule_value(
        self, token: Token, arguments: list[Value], file: File, parameter: int | None = None
    ) -> Value:
        definition = self.source.look_up(token, file)
        if definition.parameterized != (parameter is not None):
            wanted = (
                "takes a parameter: write it after ::" if definition.parameterized else "takes no parameter"
            )
            self.source.fail(f"{str(token)!r} {wanted}", file.position(token))
        if len(definition.params) != len(arguments):
            wanted = f"takes {counted(len(definition.params), 'argument')}, not {len(arguments)}"
            self.source.fail(f"{str(token)!r} {wanted}", file.position(token))
        name = definition.name
        if arguments:
            name = f"{name}{{{','.join(key for _, key in arguments)}}}"
        if parameter is not None:
            name = f"{name}::{parameter}"
        bound = dict(zip(definition.params, arguments, strict=True))
        return self.reference(definition, name, bound, parameter), name

    def ignored_part(self, tree: Tree[Any], file: File) -> Expr:
        """The expression of one %ignore."""
        name = only_terminal(tree)
        if name is not None:
            return self.reference(self.source.look_up(name, file))
        return self.compiled(self.pattern_of([(tree, file)]).patterns, 0)
