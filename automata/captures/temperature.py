"""The sampling temperature of the next token, which the rules that may read the token set.

In every thread of a run, some nested rules read the next byte or token. The innermost of them that sets a temperature
counts. If threads differ, the highest temperature counts, as in llguidance. Threads in which no rule sets a temperature
are ignored.

Cost: the number of threads, and their saved positions since the start of the enclosing rule.
"""

from __future__ import annotations

from tokenfst.automata.captures.code import Code
from tokenfst.automata.captures.run import Run, Saved
from tokenfst.automata.captures.trees import Temperature


def temperature_of(run: Run, data: bytes) -> float | None:
    """The temperature of the next token after ``run`` has read ``data``; ``None`` if no rule sets one."""
    found = [
        temperature
        for saved in run.going_on
        if (temperature := _innermost(run.code, saved, data)) is not None
    ]
    return max(found, default=None)


def _innermost(code: Code, saved: Saved, data: bytes) -> float | None:
    """The temperature of the innermost open rule that has one."""
    closed: dict[int | Temperature, int] = {}
    while saved is not None:
        name, begins, place, saved = saved
        if isinstance(name, str):
            continue
        if not begins:
            closed[name] = closed.get(name, 0) + 1
        elif closed.get(name, 0) > 0:
            closed[name] -= 1
        elif isinstance(name, Temperature):
            return name.temperature
        elif (inner := _within(code.inner[name], data[place:])) is not None:
            return inner
    return None


def _within(readings: list[Code], data: bytes) -> float | None:
    """The temperature in a part that is parsed again by each of these readings."""
    found: list[float] = []
    for code in readings:
        if code.has_temperature:
            run = Run(code)
            run.feed(data)
            if (temperature := temperature_of(run, data)) is not None:
                found.append(temperature)
    return max(found, default=None)
