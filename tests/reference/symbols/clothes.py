"""The specification of the paper on automata-guided beam search (appendix C): which clothes may follow which."""

from __future__ import annotations

SYMBOLS = (
    "t_shirt_top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)

_FORBIDDEN_AFTER = {
    "t_shirt_top": ("Shirt", "Dress"),
    "Trouser": ("Dress",),
    "Pullover": ("Dress", "t_shirt_top", "Shirt"),
    "Dress": ("t_shirt_top", "Shirt", "Trouser", "Pullover"),
    "Coat": ("t_shirt_top", "Shirt", "Pullover", "Dress"),
    "Sandal": ("Sneaker", "Trouser", "Ankle boot"),
    "Shirt": ("t_shirt_top", "Dress"),
    "Sneaker": ("Sandal", "Trouser", "Ankle boot"),
    "Bag": ("t_shirt_top", "Shirt", "Dress", "Pullover", "Coat"),
    "Ankle boot": ("Sandal", "Trouser", "Sneaker"),
}
_NEEDED = (
    ("t_shirt_top", "Pullover", "Shirt", "Dress"),
    ("Trouser", "Dress"),
    ("Sandal", "Sneaker", "Ankle boot"),
)


def _quoted(symbol: str) -> str:
    return f'"{symbol}"' if " " in symbol else symbol


FORMULAS = (
    *(
        " & ".join(
            [f"G({_quoted(worn)} -> !F {_quoted(other)})" for other in others]
            + [f"G({_quoted(worn)} -> WXG !{_quoted(worn)})"]
        )
        for worn, others in _FORBIDDEN_AFTER.items()
    ),
    *(f"F({' | '.join(map(_quoted, some))})" for some in _NEEDED),
)
"""The thirteen formulas, in the paper's order."""


def allowed(sequence: tuple[str, ...]) -> bool:
    """The same in plain words: nothing twice, nothing forbidden after something worn, and something of each kind."""
    if len(set(sequence)) < len(sequence):
        return False
    for place, worn in enumerate(sequence):
        if set(_FORBIDDEN_AFTER[worn]) & set(sequence[place + 1 :]):
            return False
    return all(set(some) & set(sequence) for some in _NEEDED)
