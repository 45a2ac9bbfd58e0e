"""Grammars of the form ``name ::= alternatives``: what GBNF and EBNF share.

The idea: the two notations differ in their strings, escapes, character classes and wildcards, which are
tokens; a ``Dialect`` says how each reads. The rest is one lark grammar and one fold into expressions. A rule
goes on until the next ``name ::=``, so line breaks mean nothing.

Characters are code points, and a class is their UTF-8 (convention 1). Linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from tokenfst.automata.characters.classes import character_set
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, negate, normalize
from tokenfst.automata.expressions.expression import Expr, call, concat, literal, repeat, union
from tokenfst.automata.grammars.grammar import Grammar, refuse_empty
from tokenfst.automata.notations.reading import Token, fault, fold, parse
from tokenfst.budget import Budget
from tokenfst.errors import ConstraintError, PatternError, PatternSyntaxError, UnsupportedPatternError

if TYPE_CHECKING:
    from lark import Tree

_NOTATION = r"""
start: rule*
rule: HEAD "::=" alternatives
alternatives: sequence ("|" sequence)*
sequence: part*
?part: item | lookahead
item: atom QUANTIFIER*
?atom: reference | string | characters | any | "(" alternatives ")"
lookahead: LOOKAHEAD alternatives ")"
reference: NAME
string: STRING
characters: CLASS
any: ANY
HEAD.2: /@NAME@(?=(\s|#[^\n]*\n)*::=)/
NAME: /@NAME@/
STRING: /@STRING@/
CLASS: /\[(\\[\s\S]|[^\]\\])*\]/
ANY: "."
LOOKAHEAD.2: "(="
QUANTIFIER: /[*+?]|\{\s*[0-9]+\s*(,\s*[0-9]*\s*)?\}/
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
    "QUANTIFIER": "a repetition",
    "LPAR": "'('",
    "RPAR": "')'",
    "VBAR": "'|'",
    "$END": "the end",
    "__ANON_0": "'::='",
}
_ESCAPE = (
    r"\\(?:x(?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})|(?P<c>[\s\S]?))|(?P<p>[^\\])"
)
_CHARACTER = re.compile(_ESCAPE)


@dataclass(frozen=True)
class Dialect:
    """One notation: its ``name``, how names and strings are spelled (patterns), what each escape letter
    stands for, whether ``.`` is any character, and whether ``#x41`` is refused for being read differently
    elsewhere."""

    name: str
    names: str
    strings: str
    escapes: Mapping[str, str]
    wildcard: bool
    refuse_hex: bool

    @property
    def notation(self) -> str:
        """The lark grammar."""
        return _NOTATION.replace("@NAME@", self.names).replace("@STRING@", self.strings)


def read(dialect: Dialect, text: str, start: str, budget: Budget | None) -> Grammar:
    """The grammar of a text. Raises PatternSyntaxError, UnsupportedPatternError, EmptyLanguageError,
    BudgetExceeded("positions")."""
    if not isinstance(text, str):
        raise ConstraintError(f"a grammar is a str, not {type(text).__name__}; decode it first")
    unfinished = {
        '"': "this string does not end",
        "'": "this string does not end"
        if "'" in dialect.strings
        else "strings are written with double quotes",
        "[": "this character class does not end",
        "{": "a repetition is written {m}, {m,} or {m,n}",
    }
    reader = _Reader(dialect, text)
    tree = parse(dialect.notation, text, _TOKENS, unfinished)
    rules: dict[str, Expr] = {}
    positions: dict[str, int] = {}
    for rule in tree.children:
        head, body = _parts(rule)
        if head in positions:
            first = text.count("\n", 0, positions[head]) + 1
            reader.fail(f"the rule {str(head)!r} is defined twice, first in line {first}", head.start_pos)
        positions[str(head)] = head.start_pos
        rules[str(head)] = fold(body, reader.build)
    for name, position in reader.references.items():
        if name not in rules:
            reader.fail(f"there is no rule {name!r}", position)
    if start not in rules:
        reader.fail(f"there is no rule {start!r} to start with", 0)
    source = f"{dialect.name}({text[:60]!r}{'...' if len(text) > 60 else ''})"
    return refuse_empty(Grammar(rules, start, source=source, text=text, positions=positions, budget=budget))


def _parts(rule: Any) -> tuple[Token, Tree[Any]]:
    head, body = rule.children
    return head, body


class _Reader:
    """Builds expressions; ``references`` are the rules called, with the first place of each."""

    def __init__(self, dialect: Dialect, text: str) -> None:
        self.dialect, self.text = dialect, text
        self.references: dict[str, int] = {}

    def fail(self, message: str, position: int, kind: type[PatternError] = PatternSyntaxError) -> NoReturn:
        raise fault(message, self.text, position, kind)

    def build(self, kind: str, children: list[Any]) -> Expr:
        if kind == "alternatives":
            return union(*children)
        if kind == "sequence":
            return concat(*children)
        if kind == "item":
            return self.repeated(children[0], children[1:])
        token = children[0]
        position = token.start_pos
        if kind == "reference":
            self.references.setdefault(str(token), position)
            return call(str(token))
        if kind == "string":
            codes = self.characters(token[1:-1], position + 1)
            return literal("".join(chr(code) for code, _, _ in codes).encode())
        if kind == "characters":
            return self.character_class(token, position)
        if kind == "any":
            if not self.dialect.wildcard:
                self.fail("'.' has no meaning here; write a character class", position)
            return character_set(((0, MAX_CODE_POINT),), True)
        message = "look-ahead makes a rule depend on what follows it; leave it out"
        return self.fail(message, position, UnsupportedPatternError)

    def repeated(self, body: Expr, quantifiers: list[Token]) -> Expr:
        for token in quantifiers:
            bounds = re.findall(r"[0-9]+", token)
            if token in ("*", "+", "?"):
                low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[str(token)]
            else:
                low = int(bounds[0]) if len(bounds[0]) < 10 else 2**31
                high = low if "," not in token else None
                if len(bounds) > 1:
                    high = int(bounds[1]) if len(bounds[1]) < 10 else 2**31
            if max(low, high or 0) >= 2**31 - 1:
                self.fail("the bound of this repetition is too large", token.start_pos)
            if high is not None and high < low:
                self.fail(f"a repetition of {low} to {high} is empty", token.start_pos)
            counted = (high or low) > 8
            body = repeat(body, low, high, f"the repetition {token}" if counted else None)
        return body

    def characters(self, spelled: str, position: int) -> list[tuple[int, bool, int]]:
        """The code points of a spelled text, whether each was escaped, and where it stands."""
        found: list[tuple[int, bool, int]] = []
        for match in _CHARACTER.finditer(spelled):
            at = position + match.start()
            if match["p"] is not None:
                code = ord(match["p"])
            elif match["c"] is None:
                code = int(match["x"] or match["u"] or match["U"], 16)
            elif match["c"] in self.dialect.escapes and match["c"]:
                code = ord(self.dialect.escapes[match["c"]])
            else:
                self.fail(f"the escape \\{match['c']} is unknown or incomplete", at)
            if 0xD800 <= code <= 0xDFFF:
                self.fail(f"U+{code:04X} is a surrogate, which no UTF-8 text holds", at)
            if code > MAX_CODE_POINT:
                self.fail(f"there is no code point {code:#x}", at)
            found.append((code, match["p"] is None, at))
        return found

    def character_class(self, token: str, position: int) -> Expr:
        if self.dialect.refuse_hex and (found := re.search(r"#x[0-9a-fA-F]+", token)):
            message = rf"{found[0]} is five characters here and one in W3C notation; write it as \x, \u or \U"
            self.fail(message, position + found.start(), UnsupportedPatternError)
        negated = token.startswith("[^")
        begin = 2 if negated else 1
        codes = self.characters(token[begin:-1], position + begin)
        if not codes:
            self.fail("a character class needs a character", position)
        pairs: list[tuple[int, int]] = []
        k = 0
        while k < len(codes):
            low, _, at = codes[k]
            if k + 2 < len(codes) and codes[k + 1][:2] == (ord("-"), False):
                high = codes[k + 2][0]
                if high < low:
                    self.fail("the range begins after its end", at)
                pairs.append((low, high))
                k += 3
            else:
                pairs.append((low, low))
                k += 1
        ranges = normalize(pairs)
        return character_set(negate(ranges) if negated else ranges, True)
