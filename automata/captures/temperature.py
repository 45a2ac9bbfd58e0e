"""The temperature of a place: what the rules that may read the next token say.

The idea: every way to read the text so far that goes on waits in some rules for its next byte or token. Of these rules
the innermost that says a temperature counts. Where ways differ, the highest temperature counts, as in llguidance. A way
in which no rule says any has no part in it.

Cost: the ways that are left, and what they have marked since the rule around the next byte began.
"""

from __future__ import annotations

from tokenfst.automata.captures.code import Code
from tokenfst.automata.captures.run import Marks, Run
from tokenfst.automata.captures.trees import Heat


def temperature_of(run: Run, data: bytes) -> float | None:
    """The temperature where ``run`` has read ``data``; ``None`` where no rule says one."""
    found = [heat for marks in run.going_on if (heat := _innermost(run.code, marks, data)) is not None]
    return max(found, default=None)


def _innermost(code: Code, marks: Marks, data: bytes) -> float | None:
    """What the innermost open rule says of those that say one."""
    closed: dict[int | Heat, int] = {}
    while marks is not None:
        name, begins, place, marks = marks
        if isinstance(name, str):
            continue
        if not begins:
            closed[name] = closed.get(name, 0) + 1
        elif closed.get(name, 0) > 0:
            closed[name] -= 1
        elif isinstance(name, Heat):
            return name.temperature
        elif (inner := _within(code.inner[name], data[place:])) is not None:
            return inner
    return None


def _within(readings: list[Code], data: bytes) -> float | None:
    """What a part says that is read once more by each of these."""
    found: list[float] = []
    for code in readings:
        if code.is_heated:
            run = Run(code)
            run.feed(data)
            if (heat := temperature_of(run, data)) is not None:
                found.append(heat)
    return max(found, default=None)
