"""Learned data of automata in files: loading, updating, merging.

A lazy automaton computes a mask when it is first requested. The masks that it has computed are written after its
program (docs/serving/format.md, version 5), identified by the meaning of states and not by their numbers
(docs/decisions/009-learned-state.md). So any automaton of the same program can load them, and the data of several
automata can be merged.

Invariant: data are loaded only if program, vocabulary and release are the same. Another release may compute masks
differently, so its data are ignored.

Cost: loading is linear in the data; writing visits each state and sorts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import tokenfst._native as _native
from tokenfst.automata.expressions.program import Program
from tokenfst.decoding.artifacts import artifact_format, program_arrays
from tokenfst.decoding.artifacts.artifact import Artifact
from tokenfst.decoding.artifacts.tensors import LEARNED_TENSORS, PROGRAM_TENSORS
from tokenfst.errors import ArtifactCorruptError, ArtifactError
from tokenfst.tokenizers.vocabulary.token_classes import TokenClasses

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]


def release() -> str:
    """The version whose masks are comparable: the package name and its version."""
    package = __name__.partition(".")[0]
    return f"{package} {sys.modules[package].__version__}"


def take_up(native: _native.TokenAutomaton, found: Artifact, path: object) -> None:
    """Use masks and distances of an artifact from now on, if it has any and this release computed them.

    The artifact must have the automaton's own program. Raises ``ArtifactCorruptError``.
    """
    if found.version != artifact_format.LEARNED_VERSION or found.learned_by != release():
        return
    try:
        native.learn({tensor.name: found.arrays[tensor.name] for tensor in LEARNED_TENSORS})
    except ArtifactCorruptError as error:
        raise artifact_format.corrupt(path, f"it breaks the rule that {error}") from None


def same_program(
    found: Artifact, path: object, program: Program | None, classes: TokenClasses | None
) -> None:
    """Raise ``ArtifactError`` unless an artifact has this program."""
    if program is None or not found.is_program:
        raise ArtifactError(
            f"cannot learn from {path}: only automata that are not expanded learn, because they compute masks on demand"
        )
    own = program_arrays.arrays(program)
    same = all(
        own[tensor.name].tobytes() == found.arrays[tensor.name].tobytes() for tensor in PROGRAM_TENSORS
    )
    if not same or found.token_names != program_arrays.token_names(program, classes):
        raise ArtifactError(
            f"cannot learn from {path}: it is of another constraint, or of the same one composed in another order"
        )


def merge(native: _native.TokenAutomaton, learned: dict[str, Any] | None = None) -> dict[str, Any]:
    """The union of all data that an automaton has computed or loaded, and of ``learned``; the automaton uses it from
    now on.
    """
    if learned is not None:
        native.learn(learned)
    union: dict[str, Any] = native.learned()
    if native.has_learned:
        native.learn(union, instead=True)
    return union


@contextmanager
def alone(path: str | PathLike[str]) -> Iterator[None]:
    """A context with a lock on the folder of ``path``, so that one process at a time updates files there. Does nothing
    where the system has no such locks (Windows).

    Raises ``ArtifactError``.
    """
    if fcntl is None:
        yield
        return
    try:
        folder = Path(os.path.realpath(path)).parent
        file = os.open(folder, os.O_RDONLY)
    except (OSError, ValueError) as error:  # ValueError: no name of a file
        raise ArtifactError(
            f"cannot open the folder of {path!r}: {getattr(error, 'strerror', error)}"
        ) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
