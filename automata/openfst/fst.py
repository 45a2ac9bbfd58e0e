"""Conversion of machines between numpy arrays and OpenFst; the only module that imports pynini.

An unweighted machine is six arrays (``Arcs``). OpenFst's binary layouts are rows of 32-bit words, so the arrays are
scattered into one buffer of words that OpenFst reads at once (vector layout), and gathered from the buffer that it
writes (const layout, whose arcs are one contiguous table). No loop over states or arcs runs in Python: 180,000 states
and 310,000 arcs take some tens of milliseconds, ten times less than arc by arc.

Only those property bits are written that hold for every machine of the layout ("expanded", "mutable"); the others are
left unknown, and OpenFst computes them on demand. A false property bit (``ILABEL_SORTED``) would make ``compose``
silently return an empty machine.

Invariant: weighted machines are rejected, because dropping weights silently would change their meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokenfst.common.plurals import counted
from tokenfst.errors import FstError, MissingDependencyError

if TYPE_CHECKING:
    import pynini

IntArray = npt.NDArray[np.integer[Any]]

_MAGIC = 2125659606
_VECTOR_VERSION = 2
_EXPANDED_AND_MUTABLE = 0x3
NO_STATE = -1
_ONE = np.float32(0.0)  # tropical semiring: One is 0, Zero (not final) is +inf
_ZERO = np.float32(np.inf)
_STATE_WORDS, _ARC_WORDS, _CONST_STATE_WORDS = 3, 4, 5
INT32_MAX = int(np.iinfo(np.int32).max)


@dataclass(frozen=True, slots=True, eq=False)
class Arcs:
    """An unweighted transducer as arrays. ``start`` is -1 if there are no states; labels are OpenFst's (0 is ε).

    ``final_states``: int64 (finals,), ascending. ``source``, ``ilabel``, ``olabel``, ``nextstate``: int32 (arcs,), in
    ascending order of ``source``.
    """

    num_states: int
    start: int
    final_states: npt.NDArray[np.int64]
    source: npt.NDArray[np.int32]
    ilabel: npt.NDArray[np.int32]
    olabel: npt.NDArray[np.int32]
    nextstate: npt.NDArray[np.int32]


def require_pynini() -> Any:
    """The module ``pynini``; raises ``MissingDependencyError`` if it is not installed."""
    try:
        import pynini
    except ImportError as error:
        raise MissingDependencyError('this call needs OpenFst: pip install "tokenfst[fst]"') from error
    return pynini


# --- arrays to OpenFst and back ------------------------------------------------------------------------


def from_arcs(
    num_states: int,
    start: int,
    final_states: npt.ArrayLike,
    source: npt.ArrayLike,
    ilabel: npt.ArrayLike,
    olabel: npt.ArrayLike,
    nextstate: npt.ArrayLike,
    *,
    sorted_by_source: bool = False,
) -> pynini.Fst:
    """An unweighted OpenFst transducer from its arcs.

    ``final_states``: integers (finals,). ``source``, ``ilabel``, ``olabel``, ``nextstate``: integers (arcs,), one entry
    per arc; labels are OpenFst's (0 is ε). ``start`` is -1 for a machine without states. Arcs of one state keep their
    order. With ``sorted_by_source`` the arcs must already ascend by ``source`` (checked), which saves a sort.

    Linear in states and arcs (plus that sort). Raises ``FstError`` for different lengths and for states or labels out
    of range, ``MissingDependencyError`` without pynini.
    """
    openfst = require_pynini()
    columns = {"source": source, "ilabel": ilabel, "olabel": olabel, "nextstate": nextstate}
    arrays = {name: integer_column(name, column) for name, column in columns.items()}
    finals = integer_column("final_states", final_states)
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise FstError(f"source, ilabel, olabel and nextstate must have one entry per arc, not {lengths}")
    if not 0 <= num_states <= INT32_MAX:
        raise FstError(f"num_states must lie in 0..{INT32_MAX}, not {num_states}")
    if not (0 <= start < num_states or (start == NO_STATE and num_states == 0)):
        raise FstError(f"start {start} is not one of the {num_states} states")
    check_range("final_states", finals, num_states)
    check_range("source", arrays["source"], num_states)
    check_range("nextstate", arrays["nextstate"], num_states)
    check_range("ilabel", arrays["ilabel"], INT32_MAX + 1)
    check_range("olabel", arrays["olabel"], INT32_MAX + 1)

    if not sorted_by_source:
        order = np.argsort(arrays["source"], kind="stable")
        arrays = {name: array[order] for name, array in arrays.items()}
    elif np.any(arrays["source"][1:] < arrays["source"][:-1]):
        raise FstError("sorted_by_source was given, but the arcs do not ascend by source")
    num_arcs = len(arrays["source"])
    words = np.zeros(_STATE_WORDS * num_states + _ARC_WORDS * num_arcs, np.uint32)
    # Before state s come s states and the arcs of smaller states; a state is (weight, arc count as 64 bits).
    narcs = np.bincount(arrays["source"], minlength=num_states)
    state_at = _STATE_WORDS * np.arange(num_states) + _ARC_WORDS * (np.cumsum(narcs) - narcs)
    weight = np.full(num_states, _ZERO)
    weight[finals] = _ONE
    words[state_at] = weight.view(np.uint32)
    words[state_at + 1] = narcs
    # Before arc a come the states up to its source and a arcs; an arc is ilabel, olabel, weight, nextstate.
    arc_at = _STATE_WORDS * (arrays["source"].astype(np.int64) + 1) + _ARC_WORDS * np.arange(num_arcs)
    words[arc_at] = arrays["ilabel"]
    words[arc_at + 1] = arrays["olabel"]
    words[arc_at + 3] = arrays["nextstate"]
    made: pynini.Fst = openfst.Fst.read_from_string(
        _header(num_states, start, num_arcs) + words.astype("<u4").tobytes()
    )
    return made


def to_arcs(fst: pynini.Fst) -> Arcs:
    """The arcs of an unweighted OpenFst transducer; the inverse of ``from_arcs``.

    Symbol tables are dropped (``label_kinds`` interprets labels). Linear. Raises ``FstError`` for a semiring other than
    the tropical one and for any weight except One, naming the first state or arc that has one.
    """
    if is_native(fst):
        return _native_arcs(fst)
    require_pynini()
    import pywrapfst

    if fst.arc_type() != "standard":
        raise FstError(
            f"the transducer's arcs are of type {fst.arc_type()!r}, and only 'standard' is read; "
            'convert it with pynini.arcmap(fst, map_type="to_std")'
        )
    if fst.input_symbols() is not None or fst.output_symbols() is not None:
        fst = fst.copy().set_input_symbols(None).set_output_symbols(None)
    data = pywrapfst.convert(fst, "const").write_to_string()
    # After magic: two strings (fst type, arc type), i32 version, i32 flags, u64 properties, then i64 each:
    at = 4
    for _ in range(2):
        at += 4 + int.from_bytes(data[at : at + 4], "little")
    start, num_states, num_arcs = (int(n) for n in np.frombuffer(data, "<i8", 3, at + 16))
    return const_arcs(start, num_states, num_arcs, np.frombuffer(data, "<i4", offset=at + 40))


def is_native(fst: object) -> bool:
    """Whether a machine is one of ``tokenfst.fst``."""
    return type(fst).__module__.startswith("tokenfst.")


def _native_arcs(fst: Any) -> Arcs:
    if fst.arc_type() not in ("standard", "boolean"):
        raise FstError(
            f"the transducer's arcs are of type {fst.arc_type()!r}, and only 'standard' and 'boolean' are read; "
            'convert it with tokenfst.fst.convert(fst, "boolean")'
        )
    finals, counts, ilabels, olabels, weights, nexts = fst.arrays()
    if fst.arc_type() == "boolean":
        finals, weights = (np.where(each, _ONE, _ZERO).astype(np.float32) for each in (finals, weights))
    source = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    bits = np.ascontiguousarray(weights, np.float32).view(np.int32)
    return plain_arcs(fst.start(), finals, source, np.stack([ilabels, olabels, bits, nexts], axis=1))


def const_arcs(start: int, num_states: int, num_arcs: int, body: npt.NDArray[np.int32]) -> Arcs:
    """The arcs in ``body``, the data after the header of OpenFst's const type, version 2, with standard arcs.

    Raises ``FstError`` for a wrong length, weights, and unknown states.
    """
    if min(num_states, num_arcs) < 0 or len(body) != _CONST_STATE_WORDS * num_states + _ARC_WORDS * num_arcs:
        raise FstError(
            f"OpenFst wrote {counted(len(body), 'word')} for {num_states} states and {num_arcs} arcs: this release of "
            "OpenFst has another binary layout, or the file is damaged"
        )
    states = body[: _CONST_STATE_WORDS * num_states].reshape(num_states, _CONST_STATE_WORDS)
    arcs = body[_CONST_STATE_WORDS * num_states :].reshape(num_arcs, _ARC_WORDS)
    if states[:, 2].min(initial=0) < 0 or states[:, 2].sum() != num_arcs:
        raise FstError(f"its states have other arcs than the {num_arcs} of its header: the file is damaged")
    source = np.repeat(np.arange(num_states, dtype=np.int32), states[:, 2])
    return plain_arcs(start, np.ascontiguousarray(states[:, 0]).view(np.float32), source, arcs)


def plain_arcs(
    start: int,
    weight: npt.NDArray[np.float32],
    source: npt.NDArray[np.int32],
    arcs: npt.NDArray[np.int32],
) -> Arcs:
    """``Arcs`` from OpenFst's data.

    The final ``weight`` of each state; the ``source`` of each arc, ascending; ``arcs`` (arcs, 4): input and output
    label, the bits of the weight, and the next state. Raises ``FstError`` for weights and for unknown states.
    """
    _refuse_weights(weight, np.ascontiguousarray(arcs[:, 2]).view(np.float32), source)
    found = Arcs(
        num_states=len(weight),
        start=start,
        final_states=np.flatnonzero(weight == _ONE),
        source=source,
        ilabel=arcs[:, 0].astype(np.int32),
        olabel=arcs[:, 1].astype(np.int32),
        nextstate=arcs[:, 3].astype(np.int32),
    )
    check_range("nextstate", found.nextstate, len(weight))
    if not (0 <= start < len(weight) or (start == NO_STATE and len(weight) == 0)):
        raise FstError(f"start {start} is not one of the {len(weight)} states")
    return found


def compose(detokenizer: pynini.Fst, acceptor: pynini.Fst) -> pynini.Fst:
    """The token acceptor of a constraint: determinize(rmepsilon(project(detokenizer ∘ acceptor, "input"))), minimized.

    This is the specification: the native token automaton must be equivalent to it. ``detokenizer`` maps token labels to
    byte labels, ``acceptor`` reads byte labels (convention 2). Every token becomes an explicit arc, so use it for small
    vocabularies, tests and research only; for anything else use ``tokenfst.decoding.compile``.
    """
    openfst = require_pynini()
    composed = openfst.compose(detokenizer, acceptor)
    made: pynini.Fst = openfst.determinize(composed.project("input").rmepsilon()).minimize()
    return made


# --- details -------------------------------------------------------------------------------------------


def _header(num_states: int, start: int, num_arcs: int) -> bytes:
    """The header of an OpenFst vector file over the tropical semiring, without symbol tables."""

    def text(value: bytes) -> bytes:
        return len(value).to_bytes(4, "little") + value

    return (
        _MAGIC.to_bytes(4, "little")
        + text(b"vector")
        + text(b"standard")
        + np.array([_VECTOR_VERSION, 0], "<i4").tobytes()
        + np.array([_EXPANDED_AND_MUTABLE, start, num_states, num_arcs], "<i8").tobytes()
    )


def integer_column(name: str, values: npt.ArrayLike) -> npt.NDArray[np.integer[Any]]:
    """An argument as a one-dimensional array of integers. Raises ``FstError`` for anything else."""
    array = np.asarray(values)
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise FstError(f"{name} must be a one-dimensional array of integers, not {array.dtype} {array.shape}")
    return array


def check_range(name: str, array: IntArray, limit: int) -> None:
    """Check that every entry is in 0..limit-1."""
    if len(array) and (array.min() < 0 or array.max() >= limit):
        at = int(np.flatnonzero((array < 0) | (array >= limit))[0])
        raise FstError(f"{name}[{at}] is {array[at]}, outside 0..{limit - 1}")


def _refuse_weights(
    final: npt.NDArray[np.float32], arcs: npt.NDArray[np.float32], source: npt.NDArray[np.int32]
) -> None:
    remedy = 'drop weights with pynini.arcmap(fst, map_type="rmweight")'
    weighted = np.flatnonzero(arcs != _ONE)
    if len(weighted):
        at = weighted[0]
        raise FstError(
            f"a weighted transducer: arc {arc_name(source, at)} has weight {arcs[at]:g}, "
            f"and a language has none; {remedy}"
        )
    weighted = np.flatnonzero((final != _ONE) & (final != _ZERO))
    if len(weighted):
        at = weighted[0]
        raise FstError(
            f"a weighted transducer: state {at} has final weight {final[at]:g}, "
            f"and a language has none; {remedy}"
        )


def arc_name(source: npt.NDArray[np.int32], at: np.intp) -> str:
    """A name for arc number ``at``: its number within its state."""
    return f"{at - np.searchsorted(source, source[at])} of state {source[at]}"
