"""Conversion of programs to the arrays of an artifact (docs/serving/format.md, version 4) and back.

A program is the compiled form of a constraint that the core reads: instructions and the tables that they reference. All
of it is numbers, bytes and texts, so it is written directly; machines and sets of words become tables and words.

Invariant: ``read`` returns a program whose tables have the form that front ends produce (machines trimmed, words
ascending), or raises ``ArtifactCorruptError``. The core checks the instructions when it reads them.

Cost: linear in the output. The program of a schema has a few KB, so nothing is compressed.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tokenfst._native import Lexicon
from tokenfst.automata.expressions.expression import Dfa, TokenName
from tokenfst.automata.expressions.program import Program
from tokenfst.automata.expressions.tables import frozen_dfa, trim
from tokenfst.automata.pieces.substrings import SparseDfa
from tokenfst.common.plurals import counted
from tokenfst.decoding.artifacts.artifact import Artifact
from tokenfst.decoding.artifacts.artifact_format import corrupt, shown
from tokenfst.errors import BudgetExceeded, ConstraintError
from tokenfst.tokenizers.vocabulary.token_classes import TokenClasses

_Numbers = npt.NDArray[np.uint32]
_NAME_PARTS = 3


def arrays(program: Program) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a program, by their names in docs/serving/format.md."""
    words = [lexicon.words() for lexicon in program.lexicons]
    labels = [text.encode("utf-8", "backslashreplace") for _, text in program.labels]
    machines = [_machine_row(dfa) for dfa in program.machines]
    return {
        "assured": program.assured.astype("<i4").view("<u4"),
        "code": program.code.astype("<i4").view("<u4"),
        "labels": _pairs([number for number, _ in program.labels], _ends(labels)),
        "lexicons": _numbers(itertools.accumulate(map(len, words))),
        "machine_numbers": _numbers(itertools.chain.from_iterable(numbers for _, numbers, _ in machines)),
        "machines": _numbers(itertools.chain.from_iterable(row for row, _, _ in machines)).reshape(-1, 4),
        "rules": _pairs([body for body, _ in program.rules], [int(empty) for _, empty in program.rules]),
        "word_ends": _numbers(_ends(list(itertools.chain.from_iterable(words)))),
        "blob": _bytes(program.blob),
        "label_bytes": _bytes(b"".join(labels)),
        "machine_bytes": _bytes(b"".join(data for _, _, data in machines)),
        "sets": program.sets,
        "word_bytes": _bytes(b"".join(itertools.chain.from_iterable(words))),
    }


def token_names(program: Program, classes: TokenClasses | None) -> str | None:
    """The names that a program uses for tokens, as JSON; None if it does not constrain tokens."""
    if classes is None:
        return None
    names = [[name.name, name.special, name.but] for name in program.token_names]
    return json.dumps({"classes": dict(classes.given), "names": names}, separators=(",", ":"))


def read(found: Artifact, path: object) -> tuple[Program, dict[str, list[int]] | None]:
    """The program of an artifact, and the token ids of the classes that it names.

    The token ids are None if the program does not constrain tokens. Raises ``ArtifactCorruptError``.
    """
    made = found.arrays
    names = tuple(_token_names(path, found.token_names))
    try:
        program = Program(
            code=_signed(made["code"]),
            sets=made["sets"],
            blob=made["blob"].tobytes(),
            machines=tuple(_machines(path, made)),
            labels=tuple(_labels(path, made)),
            rules=tuple((body, _is_one(path, "rules", empty)) for body, empty in made["rules"].tolist()),
            assured=_signed(made["assured"]),
            lexicons=tuple(_lexicons(path, made)),
            token_names=names,
            is_token_level=found.token_names is not None,
        )
    except ConstraintError as error:
        raise corrupt(path, str(error)) from None
    return program, None if found.token_names is None else _classes(path, found.token_names, names)


# --- machines: the numbers of the table's row, the table's own, and its bytes --------------------------------------


def _machine_row(dfa: Dfa) -> tuple[list[int], list[int], bytes]:
    classes, table, accepting, start, offsets = dfa.native_tables()
    data = classes.tobytes() + accepting.astype(np.uint8).tobytes()
    if offsets.size:
        return [start, len(accepting), 0, len(table)], offsets.tolist() + table.ravel().tolist(), data
    return [start, len(accepting), table.shape[1], 0], table.ravel().tolist(), data


def _machines(path: object, made: Mapping[str, Any]) -> Iterator[Dfa]:
    numbers, data = made["machine_numbers"], made["machine_bytes"]
    place = at = 0
    for start, states, width, edges in made["machines"].tolist():
        size = states * width if width else states + 1 + 2 * edges
        own, place = numbers[place : place + size], place + size
        rest, at = data[at : at + 256 + states], at + 256 + states
        if len(own) < size or len(rest) < 256 + states or not states or (width and edges):
            raise corrupt(path, "the tables of a machine are cut off")
        classes, accepting = rest[:256], rest[256:].astype(np.bool_)
        if width:
            yield trim(frozen_dfa(classes, own.reshape(states, width), accepting, start))
        else:
            yield _edges(path, classes, accepting, start, own[: states + 1], own[states + 1 :].reshape(-1, 2))
    if place != len(numbers) or at != len(data):
        raise corrupt(path, "numbers follow the tables of the last machine")


def _edges(
    path: object,
    classes: npt.NDArray[np.uint8],
    accepting: npt.NDArray[np.bool_],
    start: int,
    offsets: _Numbers,
    edges: _Numbers,
) -> SparseDfa:
    steps = np.diff(offsets.astype(np.int64))
    if start != 1 or len(accepting) < 2 or (steps < 0).any() or offsets[0] or offsets[1] or accepting[0]:
        raise corrupt(path, "a machine of edges does not begin in state 1, or its edges do not ascend")
    if int(offsets[-1]) != len(edges):  # before anything is made of that many
        raise corrupt(path, f"a machine of {counted(len(edges), 'edge')} says that it has {int(offsets[-1])}")
    order = np.repeat(np.arange(len(accepting)), steps) * 256 + edges[:, 0]
    if (np.diff(order) <= 0).any() or (edges >= [256, len(accepting)]).any():
        raise corrupt(path, "the edges of a machine do not ascend, or lead nowhere")
    return SparseDfa(classes, edges, accepting, offsets)


# --- texts ---------------------------------------------------------------------------------------------------------


def _lexicons(path: object, made: Mapping[str, Any]) -> Iterator[Lexicon]:
    words = list(_cut(path, "word_ends", made["word_ends"], made["word_bytes"]))
    for own in _cut(path, "lexicons", made["lexicons"], words):
        if any(one >= other for one, other in itertools.pairwise(own)):
            raise corrupt(path, "the words of a set do not ascend")
        try:
            yield Lexicon(own)
        except BudgetExceeded as error:
            raise ConstraintError(str(error)) from None


def _labels(path: object, made: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    numbers, ends = made["labels"].T
    for number, text in zip(numbers.tolist(), _cut(path, "labels", ends, made["label_bytes"]), strict=True):
        try:
            yield number, text.decode()
        except UnicodeDecodeError:
            raise corrupt(path, f"a label is not UTF-8: {shown(text)}") from None


def _cut(path: object, name: str, ends: _Numbers, whole: Any) -> Iterator[Any]:
    """The parts of ``whole``, bytes or a list, which end there."""
    data = whole.tobytes() if isinstance(whole, np.ndarray) else whole
    begin = 0
    for end in ends.tolist():
        if not begin <= end <= len(data):
            raise corrupt(path, f"{name!r} does not ascend, or ends after what it cuts")
        yield data[begin:end]
        begin = end
    if begin != len(data):
        raise corrupt(path, f"{name!r} does not cover what it cuts")


def _token_names(path: object, text: str | None) -> Iterator[TokenName]:
    for name in _parsed(path, text)["names"] if text is not None else ():
        if not isinstance(name, list) or len(name) != _NAME_PARTS:
            raise corrupt(path, f"a token's name is {shown(name)}, not a name, a kind and what it leaves out")
        own, special, but = name
        if not isinstance(own, str) or not isinstance(special, bool) or not (but is None or _are_texts(but)):
            raise corrupt(path, f"a token's name is {shown(name)}, not a name, a kind and what it leaves out")
        yield TokenName(own, special, None if but is None else tuple(but))


def _classes(path: object, text: str, names: Sequence[TokenName]) -> dict[str, list[int]]:
    found = _parsed(path, text)["classes"]
    for name, ids in found.items():
        if not isinstance(ids, list) or not all(type(each) is int and 0 <= each < 1 << 32 for each in ids):
            raise corrupt(path, f"the token class {shown(name)} is {shown(ids)}, not a list of token ids")
    if set(found) != {name.name for name in names if not name.special}:
        raise corrupt(path, "the token classes are not those that the program names")
    return dict(found)


def _parsed(path: object, text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or set(found) != {"classes", "names"}:
        raise corrupt(path, f"its token names are {shown(text)}, not an object of classes and names")
    if not isinstance(found["classes"], dict) or not isinstance(found["names"], list):
        raise corrupt(path, f"its token names are {shown(text)}, not an object of classes and names")
    return found


# --- numbers -------------------------------------------------------------------------------------------------------


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_one(path: object, name: str, number: int) -> bool:
    if number > 1:
        raise corrupt(path, f"{name!r} has {number} where there is 0 or 1")
    return number == 1


def _ends(parts: Sequence[bytes]) -> list[int]:
    return list(itertools.accumulate(map(len, parts)))


def _numbers(values: Any) -> _Numbers:
    return np.fromiter(values, np.dtype("<u4"))


def _pairs(one: Sequence[int], other: Sequence[int]) -> _Numbers:
    return np.array([one, other], np.dtype("<u4")).T.reshape(-1, 2)


def _bytes(data: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)


def _signed(numbers: _Numbers) -> npt.NDArray[np.int32]:
    return np.ascontiguousarray(numbers).view(np.int32)
