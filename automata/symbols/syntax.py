r"""The syntax of temporal formulas: from text to nodes of ``progression``.

Precedence, from the loosest: ``<->``, ``->``, ``|``, ``&``, ``W``, ``U``, ``R``, ``M``, then prefix operators; binary
operators group to the right. The levels are those of ltlf2dfa and pylogics. Their spellings are accepted, and also the
signs of the literature: ``¬ ∧ ∨ → ↔ ○ ● ◇ □ ⊤ ⊥``. A word of the letters of unary operators is a sequence of them
(``GF a``, ``WXG a``).

A name that is followed by ``(`` is a pattern of Declare. Symbols that are not words, or are operators or key words,
must be in quotation marks; inside these, ``\`` takes the next character literally.

Every part knows its position, so that errors can show conjuncts as they were written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tokenfst.automata.notations.parsing.reading import Token, fault, fold, parse
from tokenfst.automata.symbols.declare import PATTERNS
from tokenfst.automata.symbols.progression import Formula, Formulas, negated
from tokenfst.common.plurals import counted

if TYPE_CHECKING:
    from lark import Tree

_NOTATION = r"""
start: formula
?formula: iff
?iff: implies (_IFF implies)*
?implies: disjunction (_IMPLIES disjunction)*
?disjunction: conjunction (_OR conjunction)*
?conjunction: weak (_AND weak)*
?weak: until (_W until)*
?until: release (_U release)*
?release: strong (_R strong)*
?strong: unary (_M unary)*
?unary: NOT unary -> not
    | (NEXT | STRONG_NEXT) unary -> next
    | WEAK_NEXT unary -> weak_next
    | EVENTUALLY unary -> eventually
    | ALWAYS unary -> always
    | primary
?primary: LPAR formula RPAR -> group
    | NAME LPAR formula (_COMMA formula)* RPAR -> pattern
    | (NAME | QUOTED) -> name
    | (TRUE | FALSE | LAST | END) -> constant
LPAR: "("
RPAR: ")"
_COMMA: ","
NOT: /[!~¬]/
_AND: /&&?|∧|⋀/
_OR: /\|\|?|∨|⋁/
_IMPLIES: /->|=>|>>|→|⇒|⟶/
_IFF: /<->|<=>|↔|⇔|⟷/
_W.2: /[W𝒲](?![\w-])/
_U.2: /[U𝒰](?![\w-])/
_R.2: /[Rℛ](?![\w-])/
_M.2: /[Mℳ](?![\w-])/
STRONG_NEXT.3: "X[!]"
NEXT.2: /X(?=(WX|[XGF])*(?![\w-]))|○|◯/
WEAK_NEXT.2: /WX(?=(WX|[XGF])*(?![\w-]))|●/
EVENTUALLY.2: /F(?=(WX|[XGF])*(?![\w-]))|◇|♢|⋄/
ALWAYS.2: /G(?=(WX|[XGF])*(?![\w-]))|□|◻|☐/
TRUE.2: /(true|True|TRUE|tt)(?![\w-])|⊤/
FALSE.2: /(false|False|FALSE|ff)(?![\w-])|⊥/
LAST.2: /(last|Last|LAST)(?![\w-])(?!\s*\()/
END.2: /end(?![\w-])(?!\s*\()/
NAME: /\w+(-\w+)*/
QUOTED: /"(\\.|[^"\\])*"|'(\\.|[^'\\])*'/s
%ignore /\s+/
"""
_TOKENS = {
    "LPAR": "'('",
    "RPAR": "')'",
    "_COMMA": "','",
    "NOT": "'!'",
    "_AND": "'&'",
    "_OR": "'|'",
    "_IMPLIES": "'->'",
    "_IFF": "'<->'",
    **{f"_{letter}": f"'{letter}'" for letter in "WURM"},
    "NEXT": "'X'",
    "WEAK_NEXT": "'WX'",
    "EVENTUALLY": "'F'",
    "ALWAYS": "'G'",
    "NAME": "a symbol",
    **dict.fromkeys(("STRONG_NEXT", "TRUE", "FALSE", "LAST", "END", "QUOTED"), ""),
    "$END": "the end",
}
_UNFINISHED = {'"': "this name has no closing quotation mark", "'": "this name has no closing quotation mark"}
_COUNTS = ("existence", "absence", "exactly")
_NUMBER = re.compile("[0-9]{1,6}")
_CAPITAL = re.compile("(?<=[a-z])(?=[A-Z])")
"""Matches before each capital inside a pattern's name that is written like ``ChainResponse``."""
_MOST = 100_000
"""The largest number that a pattern accepts."""


@dataclass(slots=True)
class Part:
    """A formula and its position in the text.

    ``name``: the name, if the part is a single name that has not been looked up yet. ``conjuncts``: the parts of a
    conjunction; for all others, the part itself.
    """

    begin: int
    end: int
    formula: Formula = (-1, -1)
    name: str | None = None
    conjuncts: list[Part] | None = None


class Reader:
    """Reads a text into a formula; ``symbol(name, position)`` returns the formula of a symbol, or raises.

    A key word that is also one of the ``declared`` symbols is refused: it must be quoted.
    """

    def __init__(
        self,
        formulas: Formulas,
        text: str,
        symbol: Callable[[str, int], Formula],
        declared: Container[str] = (),
    ) -> None:
        self._formulas = formulas
        self._symbol = symbol
        self._declared = declared
        self._text = text
        everything = formulas.everything
        self._constants = {
            "TRUE": formulas.letters(everything),
            "FALSE": formulas.letters(0),
            "LAST": negated(formulas.next(formulas.letters(everything))),
            "END": formulas.letters(formulas.end),
        }

    def read(self, tree: Tree[Any] | None = None) -> list[Part]:
        """The conjuncts of the formula in the text; ``tree``: its tree, if it is known."""
        whole = self._known(fold(tree or tree_of(self._text), self._build))
        return whole.conjuncts or [whole]

    def _build(self, kind: str, children: list[Any]) -> Part:
        if kind == "start":
            return children[0]  # type: ignore[no-any-return]
        begin, end = _begin(children[0]), _end(children[-1])
        if kind == "name":
            token = children[0]
            name = (
                str(token) if token.type == "NAME" else re.sub(r"\\(.)", r"\1", token[1:-1], flags=re.DOTALL)
            )
            return Part(begin, end, name=name)
        if kind == "constant":
            if children[0] in self._declared:
                message = (
                    f"{str(children[0])!r} is a key word; write the symbol of that name in quotation marks"
                )
                raise fault(message, self._text, begin)
            return Part(begin, end, self._constants[children[0].type])
        if kind == "group":
            inner = self._known(children[1])
            return Part(begin, end, inner.formula, None, inner.conjuncts)
        if kind == "pattern":
            return Part(begin, end, self._pattern(children[0], children[2:-1]))
        parts = [self._known(child) for child in children if isinstance(child, Part)]
        formula = self._apply(kind, [part.formula for part in parts])
        if kind == "conjunction":
            return Part(
                begin, end, formula, None, [each for part in parts for each in part.conjuncts or [part]]
            )
        return Part(begin, end, formula)

    def _known(self, part: Part) -> Part:
        """The part with its symbol looked up."""
        if part.name is not None:
            part.formula, part.name = self._symbol(part.name, part.begin), None
        return part

    def _apply(self, kind: str, parts: list[Formula]) -> Formula:
        """An operator of the grammar, grouped to the right."""
        make = self._formulas
        if kind == "conjunction":
            return make.conjunction(parts)
        if kind == "disjunction":
            return make.disjunction(parts)
        if len(parts) == 1:
            return self._unary(kind, parts[0])
        right = parts[-1]
        for left in reversed(parts[:-1]):
            if kind == "iff":
                yes, no = make.disjunction([negated(left), right]), make.disjunction([left, negated(right)])
                right = make.conjunction([yes, no])
            elif kind == "implies":
                right = make.disjunction([negated(left), right])
            elif kind == "until":
                right = make.until(left, right)
            elif kind == "release":
                right = negated(make.until(negated(left), negated(right)))
            elif kind == "strong":
                right = make.until(right, make.conjunction([left, right]))
            else:  # left W right = right R (left or right)
                both = make.disjunction([left, right])
                right = negated(make.until(negated(right), negated(both)))
        return right

    def _unary(self, kind: str, part: Formula) -> Formula:
        if kind == "not":
            return negated(part)
        if kind == "next":
            return self._formulas.next(part)
        if kind == "weak_next":
            return negated(self._formulas.next(negated(part)))
        if kind == "eventually":
            return self._eventually(part)
        return negated(self._eventually(negated(part)))

    def _eventually(self, part: Formula) -> Formula:
        return self._formulas.until(self._constants["TRUE"], part)

    # --- Declare ------------------------------------------------------------------------------------------

    def _pattern(self, token: Token, arguments: list[Part]) -> Formula:
        name = _CAPITAL.sub("_", str(token)).lower()
        pattern = PATTERNS.get(name)
        if pattern is None:
            message = f"{str(token)!r} is no pattern of Declare; known are {', '.join(PATTERNS)}"
            raise fault(message, self._text, token.start_pos)
        counts = name in _COUNTS
        if not len(pattern.parameters) - counts <= len(arguments) <= len(pattern.parameters):
            message = (
                f"{token} takes {' and '.join(pattern.parameters)}, not {counted(len(arguments), 'argument')}"
            )
            raise fault(message, self._text, token.start_pos)
        if counts:
            return self._counted(name, self._known(arguments[0]).formula, arguments[1:])
        values = dict(zip(pattern.parameters, (self._known(part).formula for part in arguments), strict=True))
        template = Reader(self._formulas, pattern.formula, lambda parameter, _: values[parameter])
        return self._formulas.conjunction(part.formula for part in template.read(_template(pattern.formula)))

    def _counted(self, name: str, formula: Formula, numbers: Iterable[Part]) -> Formula:
        times = 1
        for part in numbers:
            if part.name is None or not _NUMBER.fullmatch(part.name) or not 1 <= int(part.name) <= _MOST:
                raise fault(f"{name} takes a number from 1 to {_MOST:,}", self._text, part.begin)
            times = int(part.name)
        if name == "existence":
            return self._existence(formula, times)
        if name == "absence":
            return negated(self._existence(formula, times))
        fewer = negated(self._existence(formula, times + 1))
        return self._formulas.conjunction([self._existence(formula, times), fewer])

    def _existence(self, formula: Formula, times: int) -> Formula:
        """!a U (a & X(!a U (a & X ...))): it counts the first places, so one obligation is open at a time. With
        F(a & X F(a & X ...)), which means the same, all of them would be.
        """
        make, elsewhere, result = self._formulas, negated(formula), self._eventually(formula)
        for _ in range(times - 1):
            result = make.until(elsewhere, make.conjunction([formula, make.next(result)]))
        return result


def tree_of(text: str) -> Tree[Any]:
    """The tree of a formula. Raises ``PatternSyntaxError`` for other texts."""
    return parse(_NOTATION, text, _TOKENS, _UNFINISHED, "formula")


_template = lru_cache(maxsize=len(PATTERNS))(tree_of)
"""A cache of the trees of patterns."""


def _begin(child: Any) -> int:
    return child.begin if isinstance(child, Part) else int(child.start_pos)


def _end(child: Any) -> int:
    return child.end if isinstance(child, Part) else int(child.start_pos) + len(child)
