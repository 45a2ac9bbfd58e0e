"""The patterns of Declare, the language of declarative process models, as formulas of temporal logic.

Each formula is a text in the syntax of ``ltlf``, in which ``a`` and ``b`` stand for the arguments. The patterns that
count occurrences have no text; ``syntax`` makes their formulas. Arguments are meant to be symbols, but may be any
formulas ("branched" Declare).

Sources: Pesic, "Constraint-based workflow management systems" (thesis, Eindhoven 2008); Di Ciccio, Montali,
"Declarative process specifications" (Process Mining Handbook, 2022), which is followed where authors differ:
``chain_precedence`` also forbids ``b`` in the first place.
"""

from __future__ import annotations

from typing import NamedTuple


class Pattern(NamedTuple):
    """One pattern: its parameters, its formula (empty if it counts occurrences), and its meaning in words."""

    parameters: tuple[str, ...]
    formula: str
    meaning: str


_ONE, _TWO, _COUNT = ("a",), ("a", "b"), ("a", "n")

PATTERNS: dict[str, Pattern] = {
    "existence": Pattern(_COUNT, "", "a stands at n places at least (1)"),
    "absence": Pattern(_COUNT, "", "a stands at fewer than n places (1: nowhere; 2: at most once)"),
    "exactly": Pattern(_COUNT, "", "a stands at exactly n places (1)"),
    "init": Pattern(_ONE, "a", "the trace begins with a"),
    "end": Pattern(_ONE, "F(a & last)", "the trace ends with a"),
    "choice": Pattern(_TWO, "F a | F b", "a or b stands somewhere"),
    "exclusive_choice": Pattern(_TWO, "(F a | F b) & !(F a & F b)", "either a or b stands somewhere"),
    "responded_existence": Pattern(_TWO, "F a -> F b", "if a stands somewhere, so does b"),
    "co_existence": Pattern(_TWO, "F a <-> F b", "a and b stand somewhere, or neither does"),
    "response": Pattern(_TWO, "G(a -> F b)", "after each a, b follows"),
    "precedence": Pattern(_TWO, "!b W a", "before each b, a has stood"),
    "succession": Pattern(_TWO, "G(a -> F b) & (!b W a)", "response and precedence"),
    "alternate_response": Pattern(_TWO, "G(a -> X(!a U b))", "after each a, b follows before the next a"),
    "alternate_precedence": Pattern(
        _TWO, "(!b W a) & G(b -> WX(!b W a))", "before each b, a has stood since the last b"
    ),
    "alternate_succession": Pattern(
        _TWO, "G(a -> X(!a U b)) & (!b W a) & G(b -> WX(!b W a))", "alternate response and precedence"
    ),
    "chain_response": Pattern(_TWO, "G(a -> X b)", "right after each a, b stands"),
    "chain_precedence": Pattern(_TWO, "!b & G(X b -> a)", "right before each b, a stands"),
    "chain_succession": Pattern(_TWO, "!b & G(a <-> X b)", "chain response and precedence"),
    "not_co_existence": Pattern(_TWO, "!(F a & F b)", "not both a and b stand somewhere"),
    "not_responded_existence": Pattern(_TWO, "F a -> !F b", "if a stands somewhere, b does not"),
    "not_response": Pattern(_TWO, "G(a -> !F b)", "after no a, b follows"),
    "not_precedence": Pattern(_TWO, "G(a -> !F b)", "before no b, a has stood"),
    "not_succession": Pattern(_TWO, "G(a -> !F b)", "after no a, b follows"),
    "not_chain_response": Pattern(_TWO, "G(a -> !X b)", "right after no a, b stands"),
    "not_chain_precedence": Pattern(_TWO, "G(a -> !X b)", "right before no b, a stands"),
    "not_chain_succession": Pattern(_TWO, "G(a -> !X b)", "right after no a, b stands"),
}
"""By name, as formulas call them: ``response(a, b)``, ``existence(a, 2)``."""
