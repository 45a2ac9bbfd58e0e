"""Grammars of the form ``name ::= alternatives``: the common part of GBNF and EBNF.

The two notations differ in their strings, escapes, character classes and wildcards, which are tokens; a ``Dialect``
defines how each is read. The rest is one lark grammar and one fold into expressions. A rule extends to the next ``name
::=``, so line breaks have no meaning.

Characters are code points, and a class is the set of their UTF-8 encodings. Linear in the text.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from tokenfst.automata.characters.classes import character_set
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, negate, normalize
from tokenfst.automata.expressions.expression import (
    Expr,
    TokenName,
    call,
    literal,
    repeat,
    tokens,
    union,
)
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.grammars.captured import NamedParts
from tokenfst.automata.grammars.grammar import Grammar, refuse_empty
from tokenfst.automata.notations.parsing.bnf_macros import Argument, Macros, token_class, token_id
from tokenfst.automata.notations.parsing.bnf_options import read_options
from tokenfst.automata.notations.parsing.reading import (
    Token,
    Values,
    fault,
    near_to,
    others_of,
    parse,
    refuse_text,
    rule_body,
    tokens_of,
)
from tokenfst.automata.pieces.tokens import TEXT_TOKEN
from tokenfst.budget import DEFAULT, Budget
from tokenfst.common.digits import natural
from tokenfst.errors import (
    PatternError,
    PatternSyntaxError,
    PatternWarning,
    UnsupportedPatternError,
)

_NOTATION = r"""
start: rule*
rule: HEAD "::=" expansions | HEAD OPTIONS "::=" expansions -> options
expansions: alternative ("|" alternative)*
alternative: (_item | lookahead)*
_item: NAME | STRING | CLASS | ANY | TOKEN | W3C | macro | "(" expansions ")" | quantified | counted
quantified: _item OP
counted: _item BOUNDS
macro: MACRO "(" [argument ("," argument)*] ")"
argument: NAME "=" _argument | _argument
_argument: tuple | STRING | INT | NAME
tuple: "(" [argument ("," argument)* ","?] ")"
lookahead: LOOKAHEAD expansions ")"
HEAD.2: /@NAME@(?=(\s|#[^\n]*\n)*(\[[^\]\n]*\]\s*)?::=)/
OPTIONS.3: /\[[^\]\n]*\](?=\s*::=)/
MACRO.3: /@MACROS@/
TOKEN: /@TOKENS@/
INT: /[0-9]+/
NAME: /@NAME@/
STRING: /@STRING@/
CLASS: /\[(\\[\s\S]|[^\]\\])*\]/
ANY: "."
LOOKAHEAD.2: "(="
OP: /[*+?]/
BOUNDS: /\{\s*[0-9]+\s*(,\s*((-1|[0-9]+)\s*)?)?\}/
W3C.1: /#x[0-9a-fA-F]+(?![^\s()|*+?-])/
COMMENT: /#[^\n]*/
%ignore /\s+/
%ignore COMMENT
"""
_TOKENS = {
    "HEAD": "a rule (name ::=)",
    "NAME": "a name",
    "STRING": "a string",
    "CLASS": "a character class",
    "ANY": "",
    "LOOKAHEAD": "",
    "OP": "a repetition",
    "BOUNDS": "a repetition",
    "LPAR": "'('",
    "RPAR": "')'",
    "VBAR": "'|'",
    "$END": "the end",
    "__ANON_0": "'::='",
    **dict.fromkeys(("OPTIONS", "MACRO", "TOKEN", "W3C", "INT", "EQUAL", "COMMA"), ""),
}
_ESCAPE = r"\\(?:x(?P<x>[0-9a-fA-F]{@HEX@})|u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})|(?P<c>[\s\S]?))|(?P<p>[^\\])"
_CHARACTERS = {digits: re.compile(_ESCAPE.replace("@HEX@", digits)) for digits in ("2", "1,")}
_NEVER = "(?!a)a"
_MOST_REPEATED = 2**31 - 2
_SET = re.compile(r"(\s|#[^\n]*\n)*=")
"""What follows the name of an argument."""


@dataclass(frozen=True)
class Dialect:
    r"""One notation.

    ``names``, ``strings``, ``macros``, ``tokens``: the patterns of names, of string literals, of the names of macros
    and of tokens of the vocabulary (``macros`` and ``tokens`` match nothing by default). ``escapes``: the meaning of
    each escape letter; ``class_escapes``: further ones in character classes. ``wildcard``: whether ``.`` is any
    character. ``refuse_hex``: whether ``#x41`` is refused because other readers give it another meaning.
    ``hex_digits``: how many digits follow ``\x``. ``any_class``: whether ``[^]`` is any character. ``options``: whether
    rules have options in brackets.
    """

    name: str
    names: str
    strings: str
    escapes: Mapping[str, str]
    wildcard: bool
    refuse_hex: bool
    class_escapes: str = ""
    macros: str = _NEVER
    tokens: str = _NEVER
    hex_digits: str = "2"
    any_class: bool = False
    options: bool = False

    @property
    def notation(self) -> str:
        """The lark grammar."""
        found = _NOTATION.replace("@NAME@", self.names).replace("@STRING@", self.strings)
        return found.replace("@MACROS@", self.macros).replace("@TOKENS@", self.tokens)


def parsed(dialect: Dialect, text: str, deadline: Deadline | None = None) -> list[Any]:
    """The trees of a text's rules: a head, perhaps options, and alternatives. Raises PatternSyntaxError,
    UnsupportedPatternError for characters as W3C writes them, and BudgetExceeded("seconds").
    """
    if not isinstance(text, str):
        refuse_text(dialect.name, text)
    unfinished = {
        '"': "this string does not end",
        "'": "this string does not end"
        if "'" in dialect.strings
        else "strings are written with double quotes",
        "[": "this character class does not end",
        "{": "a repetition is written {m}, {m,} or {m,n}",
    }
    trees = list(
        parse(dialect.notation, text, _TOKENS, unfinished, deadline=deadline, late="expansions").children
    )
    for rule in trees if "#x" in text else ():
        for token in tokens_of(rule.children[-1], "W3C"):
            message = (
                rf"{token} is a comment here and one character in W3C notation; write it as \x, \u or \U in a string, "
                "or a space after the # of a comment"
            )
            raise fault(message, text, token.start_pos, UnsupportedPatternError)
    return trees


def read(dialect: Dialect, text: str, start: str, budget: Budget | None) -> Grammar:
    """The grammar of a text. Raises PatternSyntaxError, UnsupportedPatternError, EmptyLanguageError,
    BudgetExceeded("positions" or "seconds").
    """
    deadline = Deadline(budget or DEFAULT, f"the text of a grammar ({dialect.name})")
    reader = Reader(dialect, text, budget)
    rules: dict[str, Expr] = {}
    positions: dict[str, int] = {}
    captured: dict[str, str] = {}
    temperatures: dict[str, float] = {}
    trees = parsed(dialect, text, deadline)
    for rule in trees:
        head, *between, body = rule.children
        if head in positions:
            first = text.count("\n", 0, positions[head]) + 1
            reader.fail(f"the rule {str(head)!r} is defined twice, first in line {first}", head.start_pos)
        positions[str(head)] = head.start_pos
        rules[str(head)] = rule_body(body, reader.values, reader.part, deadline)
        if between:
            if not dialect.options:
                reader.fail(
                    "this notation has no options of rules: remove the brackets",
                    between[0].start_pos,
                    UnsupportedPatternError,
                )
            options = read_options(str(head), between[0], reader.fail)
            rules[str(head)] = options.applied(rules[str(head)], str(head), reader.fail)
            if options.capture is not None:
                captured[str(head)] = options.capture
            if options.temperature is not None:
                temperatures[str(head)] = options.temperature
    if not reader.called <= rules.keys():
        reader.fail_undefined(rules, trees)
    reader.warn_of_rules_in_brackets(rules)
    if start not in rules:
        reader.fail(f"the start rule {start!r} is not defined{others_of(start, rules)}", 0)
    source = f"{dialect.name}({text[:60]!r}{'...' if len(text) > 60 else ''})"
    made = refuse_empty(
        Grammar(
            rules,
            start,
            source=source,
            text=text,
            positions=positions,
            budget=budget,
            marked=NamedParts(captured, temperatures=temperatures),
        )
    )
    if temperatures and made.reading is not None and made.reading.refusal:
        place = min(positions[name] for name in temperatures)
        reader.fail(made.reading.refusal, place, UnsupportedPatternError)
    return made


class Reader:
    """Builds expressions. ``values``: those of tokens, by their texts. ``called``: the rules that are called."""

    def __init__(self, dialect: Dialect, text: str, budget: Budget | None) -> None:
        self.dialect, self.text = dialect, text
        self.macros = Macros(self.reference, self.spelled, self.fail, budget)
        self.values = Values(self.leaf)
        self.classes: dict[str, int] = {}
        """What classes contain, and where one of them is."""
        self.called: set[str] = set()

    def fail(self, message: str, position: int, kind: type[PatternError] = PatternSyntaxError) -> NoReturn:
        """Raise the error for a position in the text."""
        raise fault(message, self.text, position, kind)

    def fail_undefined(self, rules: Collection[str], trees: list[Any]) -> NoReturn:
        """Raise the error for the first name in the text that is no rule's."""
        names = (
            token
            for rule in trees
            for token in tokens_of(rule.children[-1], "NAME")
            if token in self.called and token not in rules
        )
        first = next(each for each in names if not _SET.match(self.text, each.start_pos + len(each)))
        self.fail(f"the rule {str(first)!r} is not defined{near_to(str(first), rules)}", first.start_pos)

    def reference(self, token: Token) -> Expr:
        """A call of a rule."""
        self.called.add(str(token))
        return call(str(token))

    def spelled(self, token: Token) -> str:
        """The text of a string literal."""
        return "".join(chr(code) for code, _, _ in self.characters(token[1:-1], token.start_pos + 1))

    def part(self, kind: str, children: list[Any]) -> Any:
        """The result of a node of a kind that ``rule_body`` leaves. ``children``: the results of the nodes below, and
        tokens.
        """
        if kind == "tuple":
            return children
        if kind == "argument":
            return Argument(children[-1], children[0] if len(children) > 1 else None)
        if kind == "macro":
            return self.macros.expr(children[0], children[1:])
        if kind == "counted":
            body = self.values[children[0]] if isinstance(children[0], Token) else children[0][0]
            return self.repeated(body, children[1])
        message = "look-ahead is not supported: remove it"
        return self.fail(message, children[0].start_pos, UnsupportedPatternError)

    def leaf(self, token: Token) -> Expr:
        """The expression of a token of the text."""
        if token.type == "NAME":
            return self.reference(token)
        if token.type == "STRING":
            return literal(self.spelled(token).encode())
        if token.type == "TOKEN":
            return self.token(token)
        if token.type == "CLASS":
            self.classes[token[1:-1]] = token.start_pos
            return self.character_class(token, token.start_pos)
        if not self.dialect.wildcard:
            self.fail("'.' has no meaning here; write a character class", token.start_pos)
        return character_set(((0, MAX_CODE_POINT),), True)

    def warn_of_rules_in_brackets(self, rules: Collection[str]) -> None:
        """Warn of classes whose characters are a rule's name or a string: other notations write optional parts so."""
        for name, position in self.classes.items():
            where = f"[{name}] in line {self.text.count(chr(10), 0, position) + 1} is one of the characters"
            if len(name) > 1 and name in rules:
                said = f"{', '.join(name)}; for the rule {name!r}, if it may be left out, write {name}?"
            elif len(text := name.strip()) > 2 and text[0] == text[-1] and text[0] in "\"'":
                said = f"in the brackets; for a string that may be left out, write ({text})?"
            else:
                continue
            warnings.warn(f"{where} {said}", PatternWarning, stacklevel=5)

    def token(self, token: Token) -> Expr:
        """A token of the vocabulary, by name or id; after ``!`` any other token."""
        name = token.lstrip("!")
        if name.startswith("<["):
            number = token_id(name[2:-2], token.start_pos, self.fail)
            return token_class([number], excluded=token.startswith("!"))
        if not token.startswith("!"):
            return tokens(TokenName(name, special=True))
        return union(TEXT_TOKEN, tokens(TokenName.others([name])))

    def repeated(self, body: Expr, token: Token) -> Expr:
        """A body with a number of repetitions."""
        low, high = self.bounds(token)
        return repeat(body, low, high, f"the repetition {token}" if (high or low) > 8 else None)

    def bounds(self, token: Token) -> tuple[int, int | None]:
        """The least and greatest number of repetitions."""
        bounds = re.findall(r"[0-9]+", token.replace("-1", ""))
        low = natural(bounds[0], _MOST_REPEATED)
        high = low if "," not in token else None
        if len(bounds) > 1:
            high = natural(bounds[1], _MOST_REPEATED)
        if max(low, high or 0) > _MOST_REPEATED:
            self.fail("the bound of this repetition is too large", token.start_pos)
        if high is not None and high < low:
            self.fail(
                f"the repetition {{{low},{high}}} is not valid: its bounds are in the wrong order",
                token.start_pos,
            )
        return low, high

    def characters(self, spelled: str, position: int, more: str = "") -> list[tuple[int, bool, int]]:
        """The code points of a literal: for each whether it was escaped, and its position. ``more``: further characters
        that may be escaped here.
        """
        found: list[tuple[int, bool, int]] = []
        for match in _CHARACTERS[self.dialect.hex_digits].finditer(spelled):
            at = position + match.start()
            if match["p"] is not None:
                code = ord(match["p"])
            elif match["c"] is None:
                code = int(match["x"] or match["u"] or match["U"], 16)
            elif match["c"] in self.dialect.escapes and match["c"]:
                code = ord(self.dialect.escapes[match["c"]])
            elif match["c"] and match["c"] in more:
                code = ord(match["c"])
            else:
                self.fail(f"the escape \\{match['c']} is unknown or incomplete", at)
            if 0xD800 <= code <= 0xDFFF:
                self.fail(f"U+{code:04X} is a surrogate, which UTF-8 cannot encode", at)
            if code > MAX_CODE_POINT:
                self.fail(f"{code:#x} is not a code point: the greatest is 0x10ffff", at)
            found.append((code, match["p"] is None, at))
        return found

    def character_class(self, token: str, position: int) -> Expr:
        """The characters of a character class."""
        negated, pairs = self.ranges(token, position)
        if negated and not pairs:
            return character_set(((0, MAX_CODE_POINT),), True)
        ranges = normalize(pairs)
        return character_set(negate(ranges) if negated else ranges, True)

    def ranges(self, token: str, position: int) -> tuple[bool, list[tuple[int, int]]]:
        """Whether a class is negated, and its ranges of code points, in the order of the text."""
        if self.dialect.refuse_hex and (found := re.search(r"#x[0-9a-fA-F]+", token)):
            message = rf"{found[0]} is five characters here and one in W3C notation; write it as \x, \u or \U"
            self.fail(message, position + found.start(), UnsupportedPatternError)
        negated = token.startswith("[^")
        begin = 2 if negated else 1
        codes = self.characters(token[begin:-1], position + begin, self.dialect.class_escapes)
        if not codes and not (negated and self.dialect.any_class):
            self.fail("the character class is empty", position)
        pairs: list[tuple[int, int]] = []
        k = 0
        while k < len(codes):
            low, _, at = codes[k]
            if k + 2 < len(codes) and codes[k + 1][:2] == (ord("-"), False):
                high = codes[k + 2][0]
                if high < low:
                    self.fail("the range is in the wrong order: its first character comes after its last", at)
                pairs.append((low, high))
                k += 3
            else:
                pairs.append((low, low))
                k += 1
        return negated, pairs
