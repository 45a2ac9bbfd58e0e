"""EBNF with ``::=``, as xgrammar reads it.

``docs/constraints/grammars.md`` has a table of the meaning of each form; ``bnf`` is the parser. Forms that only the
W3C's notation has (``#x41`` in a class, ``A - B``, ``/* */``) are rejected. Outside of classes and strings, ``#``
begins a comment, as in xgrammar, so ``#x41`` is one there.
"""

from __future__ import annotations

from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.notations.parsing.bnf import Dialect, read
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked_but

_PLAIN = {letter: letter for letter in "\\\"'?[]-^/"}
_CONTROLS = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "e": "\x1b",
}

_EBNF = Dialect(
    name="ebnf",
    names=r"[A-Za-z_][A-Za-z0-9_.-]*",
    strings=r'"(\\[^\n]|[^"\\\n])*"|\'(\\[^\n]|[^\'\\\n])*\'',
    escapes=_PLAIN | _CONTROLS,
    wildcard=False,
    refuse_hex=True,
    class_escapes="$.*+(){}|",
    macros=r"(TokenTagDispatch|TagDispatch|ExcludeToken|Token|Regex|Substring)(?=\s*\()",
    hex_digits="1,",
    any_class=True,
    options=True,
)


@checked_but("text")
def ebnf(text: str, start: str = "root", budget: Budget | None = None) -> Grammar:
    """The grammar of a text in xgrammar's notation; its words are those of the rule ``start``.

    ``TagDispatch``, ``Regex``, ``Substring``, ``Token``, ``ExcludeToken`` and ``TokenTagDispatch`` are supported; token
    ids are looked up by ``compile``. ``rule[lazy] ::= ...``, ``[max_chars=20]`` and ``[capture]`` are supported, the
    latter as in ``lark_grammar``. Raises PatternSyntaxError (with position and caret) for a malformed text, undefined
    rules and rules defined twice; UnsupportedPatternError for look-ahead ``(=...)``, other options of rules and W3C's
    ``#x41``; EmptyLanguageError if ``start`` has no words; BudgetExceeded("positions"); MissingDependencyError without
    lark.
    """
    return read(_EBNF, text, start, budget)
