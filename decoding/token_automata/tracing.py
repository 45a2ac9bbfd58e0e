"""``Trace``: the masks along a token sequence (numbers of allowed tokens, forced bytes, distances), also as a heat map.

Cost: one mask for each position, as in decoding. The given matcher is not advanced.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from tokenfst._native import Matcher
from tokenfst.automata.pictures.drawing import Drawing
from tokenfst.common.renamed import old_attribute
from tokenfst.decoding.token_automata.drawing import named
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_COLUMNS = 12
"""Tokens in a line of a heat map."""
_COLD, _HOT = (222, 235, 247), (8, 69, 148)
"""The colours of one allowed token and of the whole vocabulary."""
_REFUSED = "#b30000"


@dataclass(frozen=True, slots=True)
class Step:
    """One position of a trace.

    ``token``: the next token (None: the sequence ends here), ``name`` its label in pictures, ``spelled`` the bytes that
    it adds, ``taken`` whether it is allowed. Before it: the number of ``allowed`` tokens in the mask, the ``forced``
    bytes that follow in every text, the ``distance`` to acceptance as in ``Matcher.distance``, and ``accepting``.
    """

    token: int | None
    name: str
    spelled: bytes
    taken: bool
    allowed: int
    forced: bytes
    distance: int
    accepting: bool


@dataclass(frozen=True, slots=True)
class Trace:
    """The positions along a sequence: one before each token, up to the first that is not allowed; if all are allowed,
    also one after the last token. ``vocabulary``: the number of tokens in the vocabulary.
    """

    steps: tuple[Step, ...]
    vocabulary: int

    @property
    def taken(self) -> int:
        """The number of leading tokens that are allowed."""
        return sum(step.taken for step in self.steps if step.token is not None)

    @property
    def refused(self) -> int | None:
        """The first token that is not allowed; None if all are allowed."""
        last = self.steps[-1]
        return None if last.taken else last.token

    def intensity(self, allowed: int) -> float:
        """A number of allowed tokens as a colour's intensity, on a logarithmic scale: from 0 (at most one token) to 1
        (the whole vocabulary).
        """
        return math.log(max(allowed, 1)) / math.log(max(self.vocabulary, 2))

    heat = old_attribute("heat", "intensity")

    def draw(self, title: str = "") -> Drawing:
        """The heat map: a cell for each token, darker if more tokens were allowed at its position, with the number of
        allowed tokens below it. A rejected token is red.
        """
        cells = [self._cell(step) for step in self.steps]
        lines = [cells[begin : begin + _COLUMNS] for begin in range(0, len(cells), _COLUMNS)]
        rows = "".join(f"<TR>{''.join(line)}</TR>" for line in lines)
        head = f'<TR><TD BORDER="0" COLSPAN="{len(lines[0])}">{_escaped(title)}</TD></TR>' if title else ""
        table = f'<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="2" COLOR="#c0c0c0">{head}{rows}</TABLE>'
        return Drawing(
            f'digraph {{\n  node [shape=plain, fontname="Helvetica"];\n  heat [label=<{table}>];\n}}\n'
        )

    def _repr_svg_(self) -> str | None:
        return self.draw().svg_or_none()

    def _cell(self, step: Step) -> str:
        intensity = self.intensity(step.allowed)
        shade = "#" + "".join(
            f"{round(a + (b - a) * intensity):02x}" for a, b in zip(_COLD, _HOT, strict=True)
        )
        ink = "white" if intensity > 0.5 else "black"
        if step.token is not None and not step.taken:
            shade, ink = _REFUSED, "white"
        text = f'<FONT COLOR="{ink}">{_escaped(step.name)}<BR/><FONT POINT-SIZE="10">{step.allowed:,}</FONT></FONT>'
        return f'<TD BGCOLOR="{shade}">{text}</TD>'


def _escaped(text: str) -> str:
    """Text inside of Graphviz's tables, where spaces side by side are one."""
    return escape(text).replace(" ", "&#160;")


def mask_of(matcher: Any, vocabulary: Vocabulary) -> npt.NDArray[np.int64]:
    """The token ids that a matcher allows, ascending."""
    mask = np.full((1, -(-len(vocabulary) // 32)), -1, np.int32)
    matcher.fill_next_token_bitmask(mask, 0)
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little", count=len(vocabulary))
    return np.flatnonzero(bits)


def trace(matcher: Any, tokens: Iterable[int], vocabulary: Vocabulary) -> Trace:
    """The positions along ``tokens``, starting from the state of ``matcher``. Raises ``TokenIdError`` outside the
    vocabulary.
    """
    walk = matcher.fork()
    steps = []
    for token in tokens:
        before = vocabulary.decode(walk.tokens)
        name = named(vocabulary, token, first=not walk.tokens)
        spelled = vocabulary.decode([*walk.tokens, token])[len(before) :]
        here = _place(walk, vocabulary)
        taken = not walk.is_terminated() and bool(walk.accept_token(token))
        steps.append(Step(token, name, spelled, taken, *here))
        if not taken:
            break
    else:
        steps.append(Step(None, "(here)", b"", True, *_place(walk, vocabulary)))
    return Trace(tuple(steps), len(vocabulary))


def _place(walk: Any, vocabulary: Vocabulary) -> tuple[int, bytes, int, bool]:
    if walk.is_terminated():
        return 0, b"", 0, True
    forced = (
        walk.forced_bytes()
        if isinstance(walk, Matcher)
        else b"".join(map(vocabulary.token_bytes, walk.forced_tokens()))
    )
    return len(mask_of(walk, vocabulary)), forced, walk.distance(), walk.is_accepting()
