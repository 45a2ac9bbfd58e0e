"""Events of captures: the same however the text is cut, never taken back, and in the end what ``captures`` says."""

from __future__ import annotations

import random

import pytest

from tokenfst import gbnf, lark_grammar, regex
from tokenfst.automata.events.event import Event
from tokenfst.errors import ConstraintError

LINES = lark_grammar(r"""
    start: line+
    line[capture]: key "=" value ";"
    key[capture]: /[a-z]+/
    value: /(?P<int>[0-9]+)(?:\.(?P<frac>[0-9]+))?/ | "(" start ")"
    %ignore " "
""")
CASES = [
    (LINES, "a=1;b = 2.5 ;c=(d=3;);"),
    (regex("(?P<a>a+)(?P<b>b*)"), "aaabb"),
    (regex("(?P<a>a*?)(?P<rest>[ab]*)"), "aab"),
    (regex("(?:(?P<x>a)|(?P<y>ab))(?P<z>b?c)"), "abc"),
    (gbnf('root ::= "(" root ")" | [0-9]+').capturing("root"), "((12))"),
    (regex("(?P<first>[a-z]+)") + gbnf('root ::= "<" root ">" | "."').capturing(n="root"), "ab<.>"),
]


def told(constraint: object, parts: list[bytes]) -> list[Event]:
    stream = constraint.stream()  # type: ignore[attr-defined]
    return [event for part in parts for event in stream.feed(part)] + stream.close()


@pytest.mark.parametrize(("constraint", "text"), CASES)
def test_events_are_the_captures_however_the_text_is_cut(constraint: object, text: str) -> None:
    data = text.encode()
    rng = random.Random(3)
    whole = told(constraint, [data])
    expected = constraint.captures(text)  # type: ignore[attr-defined]
    for name, captures in expected.items():
        ended = [event.value for event in whole if event.kind == "capture ended" and event.path == (name,)]
        assert sorted(ended, key=lambda each: (each.begin, -each.end)) == captures
        begun = [event.value for event in whole if event.kind == "capture begun" and event.path == (name,)]
        assert sorted(begun) == sorted(each.begin for each in captures)
    for _ in range(30):
        cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(6)))
        parts = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        assert told(constraint, parts) == whole
    assert told(constraint, [bytes([byte]) for byte in data]) == whole


@pytest.mark.parametrize(("constraint", "text"), CASES)
def test_what_was_told_is_true_of_every_completion(constraint: object, text: str) -> None:
    data = text.encode()
    for cut in range(len(data)):
        stream = constraint.stream()  # type: ignore[attr-defined]
        events = stream.feed(data[:cut])
        ending = constraint.completion(data[:cut])  # type: ignore[attr-defined]
        for end in {ending, data[cut:]}:
            found = constraint.captures(data[:cut] + end)  # type: ignore[attr-defined]
            for kind, (name,), value in events:
                if kind == "capture ended":
                    assert value in found[name]
                else:
                    assert value in [each.begin for each in found[name]]


def test_texts_that_leave_or_stop() -> None:
    stream = LINES.stream()
    begun = [event.path for event in stream.feed("a=1;") if event.kind == "capture begun"]
    assert begun == [("line",), ("key",), ("int",)]
    with pytest.raises(ConstraintError, match="leaves the constraint within its first 5 bytes"):
        stream.feed("!")
    with pytest.raises(ConstraintError, match="stops too early"):
        told(LINES, [b"a="])
