"""Arguments that make no sense: every public call refuses them by an error that names them, or takes them."""

from __future__ import annotations

import enum
import math
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import pytest

import tokenfst
from tokenfst import Budget, Language, Vocabulary
from tokenfst.common.arguments import checked, checked_but, whole
from tokenfst.errors import ArgumentTypeError, ArgumentValueError

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(sys.platform != "linux", reason="limits of processes as Linux has them")
def test_every_public_call_with_every_hostile_value(tmp_path: Path) -> None:
    """Walks ``tokenfst.__all__`` and the methods of what is made there, in processes with limits on time and memory."""
    pytest.importorskip("torch")
    pytest.importorskip("pynini")
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.hostile_calls"],
        cwd=tmp_path,  # some calls create folders
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[-6]) > 20_000, done.stdout


class Shape(enum.IntEnum):
    ROUND = 1


class Speaker(Protocol):
    voice: str

    def speak(self) -> str: ...


class Dog:
    voice = "deep"

    def speak(self) -> str:
        return "woof"


@checked
def sample(
    count: int,
    part: float = 0.5,
    name: str | None = None,
    *,
    flag: bool = False,
    ids: Sequence[int] = (),
    labels: Iterable[str | bytes] = (),
    rows: Sequence[Sequence[int]] = (),
    table: Mapping[str, int] | None = None,
    path: str | PathLike[str] = "x",
    mode: Literal["one", "two"] = "one",
    call: Callable[[], None] | None = None,
    budget: Budget | None = None,
    speaker: Speaker | None = None,
    anything: Any = None,
) -> tuple[Any, ...]:
    return count, part, name, flag, ids, labels, rows, table, path, mode, call, budget, speaker, anything


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": None}, "sample: count must be an integer, not None"),
        ({"count": True}, "sample: count must be an integer, not True"),
        ({"count": 1.0}, "sample: count must be an integer, not 1.0 (a float)"),
        ({"count": np.float64(1)}, "sample: count must be an integer, not"),
        ({"count": 1, "part": "a"}, "sample: part must be a number, not 'a' (a str)"),
        ({"count": 1, "part": False}, "sample: part must be a number, not False"),
        ({"count": 1, "name": b"a"}, "sample: name must be text or None, not b'a' (a bytes)"),
        ({"count": 1, "name": 5}, "sample: name must be text or None, not 5 (an int)"),
        ({"count": 1, "flag": 1}, "sample: flag must be True or False, not 1 (an int)"),
        ({"count": 1, "ids": "ab"}, "sample: ids must be a sequence of integers, not 'ab' (a str)"),
        ({"count": 1, "ids": [1, 2, None]}, "sample: ids[2] must be an integer, not None"),
        (
            {"count": 1, "ids": np.zeros(2)},
            "sample: ids must be a sequence of integers, not a ndarray of shape (2,)",
        ),
        ({"count": 1, "ids": {1: 2}}, "sample: ids must be a sequence of integers, not a dict"),
        ({"count": 1, "labels": ["a", 5]}, "sample: labels[1] must be text or bytes, not 5 (an int)"),
        ({"count": 1, "rows": [[1], [1, "x"]]}, "sample: rows[1][1] must be an integer, not 'x' (a str)"),
        ({"count": 1, "rows": [1]}, "sample: rows[0] must be a sequence of integers, not 1 (an int)"),
        ({"count": 1, "table": [1]}, "sample: table must be a mapping or None, not a list"),
        ({"count": 1, "path": 5}, "sample: path must be text or a path, not 5 (an int)"),
        ({"count": 1, "mode": 5}, "sample: mode must be text, not 5 (an int)"),
        ({"count": 1, "call": 5}, "sample: call must be a function or None, not 5 (an int)"),
        ({"count": 1, "budget": 1000}, "sample: budget must be a Budget or None, not 1000 (an int)"),
        ({"count": 1, "budget": Budget}, "sample: budget must be a Budget or None, not the class Budget"),
        (
            {"count": 1, "speaker": 5},
            "sample: speaker must be a Speaker (with speak, voice) or None, not 5 (an int)",
        ),
    ],
    ids=str,
)
def test_wrong_types(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as refused:
        sample(**arguments)
    assert isinstance(refused.value, ArgumentTypeError) and str(refused.value).startswith(message)
    assert refused.value.__suppress_context__


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"count": 2**63},
            "sample: count must be an integer from -2^63 to 2^63 - 1, not 9223372036854775808",
        ),
        (
            {"count": 10**100},
            "sample: count must be an integer from -2^63 to 2^63 - 1, not an integer of 333 bits",
        ),
        ({"count": 1, "part": math.nan}, "sample: part must be a number, not nan"),
        ({"count": 1, "ids": [2**63]}, "sample: ids[0] must be an integer from -2^63"),
        ({"count": 1, "path": "a\0"}, "sample: path must be a path that a file can have"),
        ({"count": 1, "path": "\ud800"}, "sample: path must be a path that a file can have"),
    ],
    ids=str,
)
def test_wrong_values(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as refused:
        sample(**arguments)
    assert isinstance(refused.value, ArgumentValueError) and str(refused.value).startswith(message)


def test_what_fits_is_passed_on() -> None:
    given = {
        "count": np.int32(3),
        "part": 2,
        "name": "a",
        "flag": np.True_,
        "ids": range(3),
        "labels": (each for each in ("a", b"b")),
        "rows": [np.arange(3), (1, 2)],
        "table": {"a": 1},
        "path": Path("a"),
        "mode": "two",
        "call": print,
        "budget": Budget(),
        "speaker": Dog(),
        "anything": object(),
    }
    read = dict(zip(given, sample(**given), strict=True))
    assert read["count"] == 3 and type(read["count"]) is int
    assert read["flag"] is True and list(read["labels"]) == ["a", b"b"]
    same = set(given) - {"count", "flag", "labels"}
    assert all(read[name] is given[name] for name in same)
    assert sample(Shape.ROUND, math.inf)[:2] == (1, math.inf)
    assert sample(1, ids=np.arange(3))[4] is not None


def test_a_function_may_check_by_itself() -> None:
    @checked_but("first")
    def own(first: int, second: int) -> tuple[int, int]:
        return first, second

    assert own("a", 1) == ("a", 1)  # type: ignore[arg-type, comparison-overlap]
    with pytest.raises(TypeError, match="second must be an integer"):
        own(1, "a")  # type: ignore[arg-type]


def test_bounds() -> None:
    assert whole("f", "n", np.uint8(5), 0, 5) == 5
    with pytest.raises(ValueError, match="f: n must be at most 5, not 6"):
        whole("f", "n", 6, 0, 5)
    with pytest.raises(ValueError, match="f: n must be at least 0, not -1"):
        whole("f", "n", -1, 0, 5)


def test_errors_survive_pickling() -> None:
    for error in (ArgumentTypeError("a"), ArgumentValueError("b")):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error) and str(copy) == str(error)


def test_a_number_is_not_taken_for_text() -> None:
    """``bytes(5)`` would be five NULs."""
    language, vocabulary = tokenfst.regex("a"), Vocabulary([b"a", b""], 1)
    for call in (Language.literal, language.accepts, vocabulary.ids, vocabulary.encode_greedy):
        with pytest.raises(TypeError, match=r"must be (text or )?bytes, not 5 \(an int\)"):
            call(5)  # type: ignore[operator]
    assert language.accepts(bytearray(b"a")) and vocabulary.ids(memoryview(b"a")) == (0,)  # type: ignore[arg-type]


def test_errors_name_the_argument_and_the_remedy(tmp_path: Path) -> None:
    vocabulary = Vocabulary([b"a", b"b", b""], 2)
    automaton = tokenfst.compile(tokenfst.regex("a*b"), vocabulary)
    mask = tokenfst.allocate_token_bitmask(1, 3)
    listed = tmp_path / "labels.txt"
    listed.write_text("a\nb\n")
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: automaton.matcher(-1), "matcher: max_new_tokens must be at least 0, not -1"),
        (lambda: tokenfst.fill_bitmasks([automaton.matcher()], mask, 0), "threads must be at least 1, not 0"),
        (lambda: tokenfst.choices(None), "labels must be several texts, not None"),  # type: ignore[arg-type]
        (lambda: tokenfst.multi_choice(None), "labels must be several texts"),  # type: ignore[arg-type]
        (lambda: tokenfst.concepts(None), "concepts: forms must be a mapping"),  # type: ignore[arg-type]
        (lambda: tokenfst.template("{x}", x=3), "the hole {x} must be a Language.*not 3 .an int"),  # type: ignore[arg-type]
        (lambda: vocabulary.to_json(tmp_path), "cannot write"),
        (lambda: tokenfst.load_vocabulary(f"symbols:{listed}"), "is a file: symbols:@"),
    ]
    for call, message in calls:
        with pytest.raises(tokenfst.TokenfstError, match=message):
            call()
    assert tokenfst.load_vocabulary(f"symbols:@{listed}").symbols == ("a", "b", None)
    assert tokenfst.load_vocabulary("symbols:labels.txt").symbols == ("labels.txt", None)
