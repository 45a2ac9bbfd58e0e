"""Translates llama.cpp's grammar notation (GBNF) into Lark's: ``gbnf_to_lark``.

``python -m tokenfst.compat.llguidance.gbnf_to_lark a.gbnf`` reads a file and writes ``a.lark``.

The grammar accepts the same texts as before. ``root`` becomes ``start``. A rule becomes a terminal, with a name in
capitals, if it contains no special tokens and calls only terminals. Strings and character classes are written in
Lark's syntax; comments are left out.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tokenfst.automata.notations.gbnf import GBNF
from tokenfst.automata.notations.parsing.bnf import Reader, parsed
from tokenfst.automata.notations.parsing.reading import Token, fold, tokens_of
from tokenfst.errors import PatternSyntaxError, UnsupportedPatternError

GbnfToLarkError = PatternSyntaxError
"""The error that is raised for a text that is not a grammar."""
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_SIGNS = {(0, None): "*", (1, None): "+", (0, 1): "?"}


class _Part(NamedTuple):
    """A piece of Lark's notation. ``loose``: a repetition of it needs parentheses. ``choices``: its alternatives."""

    text: str
    loose: bool = False
    choices: tuple[str, ...] = ()


def gbnf_to_lark(text: str) -> str:
    """Translate a grammar from llama.cpp's notation into Lark's.

    Raises PatternSyntaxError, with line and column, for a text that is not in llama.cpp's notation, and
    UnsupportedPatternError for what Lark's notation cannot express (``!<name>``).
    """
    writer = _Writer(text)
    lines = ["%llguidance {}", ""]
    for name, body in writer.rules.items():
        made = fold(body, writer.part)
        lines.append(f"{writer.names[name]}: " + "\n     | ".join(made.choices or (made.text,)))
    return "\n".join(lines) + "\n"


def is_lark_syntax(text: str) -> bool:
    """Whether a text is already in Lark's notation."""
    return re.search(r"(?m)^\s*(%llguidance\b|start\s*:(?!:=))", text) is not None


def any_to_lark(text: str) -> str:
    """Translate a grammar in either notation into Lark's."""
    return text if is_lark_syntax(text) else gbnf_to_lark(text)


class _Writer:
    """The rules of a text, their names in Lark's notation, and the way in which their bodies are written."""

    def __init__(self, text: str) -> None:
        self._reader = Reader(GBNF, text, None)
        self.rules: dict[str, Any] = {}
        for head, *options, body in (rule.children for rule in parsed(GBNF, text)):
            if options:
                self._reader.fail("rules have no options in this notation", options[0].start_pos)
            if head in self.rules:
                self._reader.fail(f"the rule {str(head)!r} is defined twice", head.start_pos)
            self.rules[str(head)] = body
        if "root" not in self.rules:
            self._reader.fail("the start rule 'root' is not defined", 0)
        needs = {name: self._needs(body) for name, body in self.rules.items()}
        terminals: set[str] = set()
        while more := {name for name, needed in needs.items() if needed <= terminals} - terminals - {"root"}:
            terminals |= more
        self.names = {"root": "start"}
        for name in self.rules:
            if name != "root":
                self.names[name] = self._named(name, name in terminals)

    def _needs(self, body: Any) -> set[str]:
        """The rules that a body calls. If the body has special tokens, which terminals cannot contain, the result also
        has the name "", which no rule has.
        """
        for token in tokens_of(body, "NAME"):
            if token not in self.rules:
                self._reader.fail(f"the rule {str(token)!r} is not defined", token.start_pos)
        found = set(map(str, tokens_of(body, "NAME")))
        return found | {""} if tokens_of(body, "TOKEN") else found

    def _named(self, name: str, is_terminal: bool) -> str:
        """A name in Lark's notation that no other rule has."""
        plain = re.sub(r"([a-z])([A-Z])", r"\1_\2", name.replace("-", "_")).lower()
        if not plain[0].isalpha():
            plain = f"r{plain if plain[0] == '_' else '_' + plain}"
        plain = plain.upper() if is_terminal else plain
        number, found = 1, plain
        while found in self.names.values():
            number += 1
            found = f"{plain}_{number}"
        return found

    def part(self, kind: str, children: list[Any]) -> _Part:
        """One part of a rule's body, built from its own parts."""
        if kind == "lookahead":
            message = "look-ahead makes a rule depend on what follows it; leave it out"
            self._reader.fail(message, children[0].start_pos, UnsupportedPatternError)
        if kind in ("quantified", "counted"):
            body, token = self._piece(children[0]), children[1]
            sign = str(token)
            if kind == "counted":
                low, high = self._reader.bounds(token)
                sign = _SIGNS.get((low, high), f"{{{low},{'' if high is None else high}}}")
            return _Part(f"({body.text}){sign}" if body.loose else f"{body.text}{sign}", loose=True)
        parts = [self._piece(each) for each in children]
        if len(parts) == 1:
            return _Part(*parts[0])
        if kind == "expansions":
            choices = tuple(each.text for each in parts)
            return _Part(f"({' | '.join(choices)})", choices=choices)
        return _Part(" ".join(each.text for each in parts) or '""', loose=bool(parts))

    def _piece(self, part: _Part | Token) -> _Part:
        return _Part(self._leaf(part)) if isinstance(part, Token) else part

    def _leaf(self, token: Token) -> str:
        if token.type == "NAME":
            return self.names[str(token)]
        if token.type == "STRING":
            return json.dumps(self._reader.spelled(token), ensure_ascii=False)
        if token.type == "ANY":
            return "/(?s:.)/"
        if token.type == "CLASS":
            negated, ranges = self._reader.ranges(token, token.start_pos)
            inner = (_letter(low) + (f"-{_letter(high)}" if high > low else "") for low, high in ranges)
            return f"/[{'^' if negated else ''}{''.join(inner)}]/"
        if not token.startswith("!"):
            return str(token)
        if token.startswith("!<["):
            return f"<[^{token[3:-2]}]>"
        message = f"Lark's notation cannot say {str(token)!r}; name the token by its id: !<[id]>"
        return self._reader.fail(message, token.start_pos, UnsupportedPatternError)


def _letter(code: int) -> str:
    """A code point, as a character class of a regular expression between slashes spells it."""
    letter = chr(code)
    if letter in r"\]^[-&~|/":
        return f"\\{letter}"
    if letter in _SHORT:
        return _SHORT[letter]
    if letter.isprintable():
        return letter
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the grammar of each file to a file beside it with the ending ``.lark``."""
    files = sys.argv[1:] if arguments is None else arguments
    if not files:
        sys.exit("usage: python -m tokenfst.compat.llguidance.gbnf_to_lark FILE...")
    for name in files:
        path = Path(name)
        path.with_suffix(".lark").write_text(gbnf_to_lark(path.read_text("utf-8")), "utf-8")
        print(f"{path} -> {path.with_suffix('.lark')}")


if __name__ == "__main__":
    main()
