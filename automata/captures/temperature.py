"""The sampling temperature that the rules which may read the next token set.

In every thread of a run, the next byte or token is read inside some nested rules. The innermost of them that sets a
temperature counts. If threads differ, the highest temperature counts, as in llguidance. Threads in which no rule sets a
temperature are ignored.

Cost: the number of threads, and their marks since the start of the enclosing rule.
"""

from __future__ import annotations

from tokenfst.automata.captures.code import Code
from tokenfst.automata.captures.run import Marks, Run
from tokenfst.automata.captures.trees import Heat


def temperature_of(run: Run, data: bytes) -> float | None:
    """The temperature after ``run`` has read ``data``; ``None`` if no rule sets one."""
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
