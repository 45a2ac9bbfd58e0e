"""The bundled grammars: files in ``automata/notations/bundled_grammars/``, in Lark's notation.

Each file starts with a comment that says what it describes and what it omits. Loading a grammar twice returns the same
object.
"""

from __future__ import annotations

import importlib.resources
from functools import lru_cache

from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.notations.lark_syntax import lark_grammar
from tokenfst.errors import ConstraintError

_FOLDER = importlib.resources.files("tokenfst.automata.notations").joinpath("bundled_grammars")


def bundled_grammars() -> list[str]:
    """The names of the bundled grammars."""
    return sorted(
        file.name.removesuffix(".lark") for file in _FOLDER.iterdir() if file.name.endswith(".lark")
    )


@lru_cache(maxsize=64)
def bundled_grammar(name: str) -> Grammar:
    """The bundled grammar ``name`` (see ``bundled_grammars``); its ``text`` is the file.

    Raises ConstraintError for an unknown name, MissingDependencyError without lark.
    """
    names = bundled_grammars()
    if name not in names:
        raise ConstraintError(f"unknown bundled grammar {name!r}; expected one of {', '.join(names)}")
    grammar = lark_grammar(_FOLDER.joinpath(f"{name}.lark").read_text("utf-8"))
    return Grammar(
        grammar.rules,
        grammar.start,
        source=f"bundled_grammar({name!r})",
        text=grammar.text,
        positions=grammar.positions,
    )
