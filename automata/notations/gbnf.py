"""GBNF, the grammar notation of llama.cpp.

A grammar is a list of rules ``name ::= alternatives``; its words are those of ``root``.
``docs/constraints/grammars.md`` has a table of the meaning of each form; ``bnf`` is the parser.
"""

from __future__ import annotations

from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.notations.parsing.bnf import Dialect, read
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked_but

GBNF = Dialect(
    name="gbnf",
    names=r"[A-Za-z0-9_-]+",
    strings=r'"(\\[\s\S]|[^"\\])*"',
    escapes={"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "[": "[", "]": "]"},
    wildcard=True,
    refuse_hex=False,
    class_escapes="-",
    tokens=r"!?<\[[0-9]+\]>|!?<[^<>\s\[\]]+>",
)


@checked_but("text")
def gbnf(text: str, budget: Budget | None = None, *, start: str = "root") -> Grammar:
    r"""The grammar of a text in llama.cpp's notation; its words are those of the rule ``start``.

    ``<name>`` is the special token of that name, ``<[id]>`` the token with that id; with ``!`` before it, any other
    token. ``compile`` looks them up. Two things are more lenient than in llama.cpp: a rule ends where the next one
    begins, wherever its lines are broken, and ``\-`` is a dash in a class. Raises PatternSyntaxError (with position and
    caret) for a malformed text, undefined rules and rules defined twice; UnsupportedPatternError for W3C's ``#x41``
    where a comment may stand; EmptyLanguageError if ``start`` has no words; BudgetExceeded("positions");
    MissingDependencyError without lark.
    """
    return read(GBNF, text, start, budget)
