"""Grammars on the command line: from a name to a file or bundled grammar, and its notation.

A file takes precedence, so that a user's grammar may have the name of a bundled one. Errors begin with the file's name;
an error for an unknown name suggests similar names.
"""

from __future__ import annotations

import difflib
import enum
import errno
import os
import re
from pathlib import Path

from tokenfst.automata.grammars.grammar import Grammar, refuse_empty
from tokenfst.automata.notations.bundled import bundled_grammar, bundled_grammars
from tokenfst.automata.notations.ebnf import ebnf
from tokenfst.automata.notations.gbnf import gbnf
from tokenfst.automata.notations.lark_syntax import lark_grammar
from tokenfst.budget import Budget
from tokenfst.cli.output.terminal import UsageError
from tokenfst.errors import ConstraintError, EmptyLanguageError, PatternError


class Syntax(enum.StrEnum):
    """The notations; also the endings of their file names."""

    LARK = "lark"
    GBNF = "gbnf"
    EBNF = "ebnf"


_DEFINED = re.compile(
    r"^(?:[?!]+|%override[ \t]+)?([\w-]+)(?:\.\d+)?(?:[ \t]*\{[^}]*\})?[ \t]*:", re.MULTILINE
)


def read_grammar(name: str, start: str | None, syntax: Syntax | None, budget: Budget) -> Grammar:
    """The grammar in the file ``name``, or the bundled grammar of that name.

    Raises UsageError if ``syntax`` is given without a file; OSError; ConstraintError, with the file's name, for an
    invalid text, for an unknown start, and for an unknown name, with similar names.
    """
    path = Path(name)
    shown = "" if start is None else f", start={start!r}"
    if path.is_file():
        text = read_text(path, "the grammar")
        return _sourced(_read(path, text, start, syntax), f"grammar({path.name!r}{shown})", budget)
    names = bundled_grammars()
    if name in names:
        if syntax is not None:
            raise UsageError(f"--syntax needs a file, but {name} is a grammar that comes with tokenfst")
        grammar = bundled_grammar(name)
        if start is not None:
            grammar = _read(path, grammar.text, start, Syntax.LARK)
        return _sourced(grammar, f"bundled_grammar({name!r}{shown})", budget)
    if path.exists() or path.suffix or len(path.parts) != 1:
        code = errno.EISDIR if path.is_dir() else errno.ENOENT
        raise OSError(code, os.strerror(code), name)
    close = difflib.get_close_matches(name, names, 1, 0.5)
    raise ConstraintError(
        f"there is no file {name!r}, and no grammar of that name comes with tokenfst"
        + (f"; did you mean {close[0]}?" if close else f"; there are {', '.join(names)}")
    )


def read_text(path: Path, what: str) -> str:
    """The text of a file. ConstraintError if it is not UTF-8."""
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConstraintError(f"{path} is not UTF-8 at byte {error.start}: save {what} in UTF-8") from error


def _read(path: Path, text: str, start: str | None, syntax: Syntax | None) -> Grammar:
    known = {f".{each.value}": each for each in Syntax}
    guessed = syntax is None and path.suffix.lower() not in known
    chosen = syntax or known.get(path.suffix.lower(), Syntax.LARK)
    try:
        if chosen is Syntax.LARK:
            return lark_grammar(text, start or "start")
        if chosen is Syntax.EBNF:
            return ebnf(text, start or "root")
        grammar = gbnf(text)
        if start is None:
            return grammar
        started = Grammar(grammar.rules, start, text=text, positions=grammar.positions)
        return refuse_empty(started)
    except EmptyLanguageError as error:
        raise EmptyLanguageError(f"{path}: {error}") from error
    except ConstraintError as error:
        found = _DEFINED.findall(text)
        if start is not None and start not in found:
            close = difflib.get_close_matches(start, found, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ConstraintError(f"{path}: the start rule {start!r} is not defined{hint}") from error
        note = ""
        if guessed and isinstance(error, PatternError):
            note = f"\n{path.name} was read in Lark's notation; if it has another, say --syntax gbnf or ebnf"
        raise ConstraintError(f"{path}: {error}{note}") from error


def _sourced(grammar: Grammar, source: str, budget: Budget) -> Grammar:
    return Grammar(
        grammar.rules,
        grammar.start,
        source=source,
        text=grammar.text,
        positions=grammar.positions,
        budget=budget,
    )
