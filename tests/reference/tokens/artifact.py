"""A reader of artifacts built from docs/serving/format.md alone, with nothing but the standard library; slow.

``read`` checks what a reader must check, ``meaning`` and ``canonical`` what the page says about content and
about writers, by brute force. Each returns or raises the first broken rule.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import struct
from dataclasses import dataclass

UNREACHABLE = 4_294_967_295
MAX_HEADER = 16_777_216
OPENING = b'{"__metadata__":{"digest":"'
TENSORS = {
    "distance": ("U32", "states"),
    "flip_offsets": ("U32", "masks + 1"),
    "flips": ("U32", "flips"),
    "mask": ("U32", "states"),
    "mask_row": ("U32", "masks"),
    "rows": ("U32", "rows words"),
    "table": ("U32", "states classes"),
    "worst": ("U32", "states"),
    "accepting": ("U8", "states"),
    "classes": ("U8", "256"),
}
BOUNDARY = 4_294_967_295
METADATA = [
    "digest",
    "format",
    "inner_start",
    "source",
    "start",
    "version",
    "vocabulary_fingerprint",
    "vocabulary_size",
]


class BrokenRuleError(Exception):
    pass


def rule(holds: object, text: str) -> None:
    if not holds:
        raise BrokenRuleError(text)


@dataclass
class SlowArtifact:
    """``metadata`` as strings, ``tensors`` as flat lists, ``shapes``, and the header's text."""

    metadata: dict[str, str]
    tensors: dict[str, list[int]]
    shapes: dict[str, list[int]]
    text: str

    def __post_init__(self) -> None:
        self.states = len(self.tensors["accepting"])
        self.vocabulary_size = int(self.metadata["vocabulary_size"])
        self.start = int(self.metadata["start"])
        self.inner_start = int(self.metadata["inner_start"])
        pairs = self.tensors.get("token_columns", [])
        self.columns = dict(zip(pairs[::2], pairs[1::2], strict=True))

    def by_column(self, state: int, column: int) -> int:
        return self.tensors["table"][state * self.shapes["table"][1] + column]

    def targets(self, state: int) -> set[int]:
        """Where bytes, special tokens and the boundary lead."""
        bytewise = {self.next(state, bytes([byte])) for byte in range(256)}
        return bytewise | {self.by_column(state, column) for column in self.columns.values()}

    def next(self, state: int, data: bytes) -> int:
        for byte in data:
            state = self.tensors["table"][state * self.shapes["table"][1] + self.tensors["classes"][byte]]
        return state

    def mask(self, number: int) -> frozenset[int]:
        row = self.tensors["mask_row"][number]
        words = self.shapes["rows"][1]
        found = set()
        for token in range(self.vocabulary_size if row else 0):
            if self.tensors["rows"][(row - 1) * words + token // 32] >> token % 32 & 1:
                found.add(token)
        begin, end = self.tensors["flip_offsets"][number : number + 2]
        return frozenset(found ^ set(self.tensors["flips"][begin:end]))


def layout_of(version: str) -> dict[str, tuple[str, str]]:
    """The tensors of a file, in their order."""
    if version != "2":
        return TENSORS
    columns = {"token_columns": ("U32", "columns 2")}
    names = list(TENSORS)
    return {name: {**TENSORS, **columns}[name] for name in [*names[:7], *columns, *names[7:]]}


def read(data: bytes, size: int | None = None) -> SlowArtifact:
    """Read the bytes of a file, for a vocabulary of ``size`` tokens. Raises ``BrokenRuleError``."""
    rule(len(data) >= 8, "a header has a length")
    (length,) = struct.unpack_from("<Q", data)
    rule(length % 8 == 0 and length <= MAX_HEADER and 8 + length <= len(data), "the header's length")
    rule(data[8 : 8 + 27] == OPENING, "the header's beginning")
    try:
        text = data[8 : 8 + length].decode("utf-8")
        header = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise BrokenRuleError(f"the header is JSON in UTF-8: {error}") from None
    content = data[8 + length :]

    metadata = header.pop("__metadata__")
    rule(isinstance(metadata, dict), "metadata")
    extra = ["split_pattern"] if metadata.get("version") == "3" else []
    extra += [key for key in ("vocabulary_added_tokens", "normal_form") if extra and key in metadata]
    rule(sorted(metadata) == sorted(METADATA + extra), "metadata keys")
    rule(all(isinstance(value, str) for value in metadata.values()), "metadata are strings")
    rule(metadata["format"] == "tokenfst.token_automaton", "format")
    rule(metadata["version"] in ("1", "2", "3"), "version")
    for key in ("start", "inner_start", "vocabulary_size"):
        rule(re.fullmatch("0|[1-9][0-9]{0,9}", metadata[key]), f"{key} is a number")
    vocabulary_size = int(metadata["vocabulary_size"])
    rule(1 <= vocabulary_size < 2**32, "vocabulary_size")
    rule(re.fullmatch("[0-9a-f]{64}", metadata["vocabulary_fingerprint"]), "fingerprint")
    for key in ("source", *extra):
        rule(not any("\ud800" <= c <= "\udfff" for c in metadata[key]), f"{key} is text")
    rule(metadata.get("normal_form", "NFC") == "NFC", "normal_form")
    if "vocabulary_added_tokens" in metadata:
        try:
            added = json.loads(metadata["vocabulary_added_tokens"], object_pairs_hook=_unique)
        except (ValueError, RecursionError) as error:
            raise BrokenRuleError(f"vocabulary_added_tokens is JSON: {error}") from None
        rule(isinstance(added, dict) and added, "vocabulary_added_tokens is an object")
        rule(all(type(number) is int for number in added.values()), "vocabulary_added_tokens has ids")
        rule(
            all(text and not re.search("[\ud800-\udfff]", text) for text in added),
            "vocabulary_added_tokens are texts",
        )
        written = json.dumps(dict(sorted(added.items())), ensure_ascii=False, separators=(",", ":"))
        rule(metadata["vocabulary_added_tokens"] == written, "the form of vocabulary_added_tokens")

    layout = layout_of(metadata["version"])
    rule(sorted(header) == sorted(layout), "tensor names")
    named = {"256": 256, "2": 2, "words": -(-vocabulary_size // 32)}
    end_before = 0
    tensors, shapes = {}, {}
    for name, (dtype, sizes) in layout.items():
        entry = header[name]
        rule(isinstance(entry, dict) and sorted(entry) == ["data_offsets", "dtype", "shape"], "entry")
        rule(entry["dtype"] == dtype, f"type of {name}")
        names = ["masks + 1"] if sizes == "masks + 1" else sizes.split()
        shape, offsets = entry["shape"], entry["data_offsets"]
        for numbers, count in ((shape, len(names)), (offsets, 2)):
            rule(isinstance(numbers, list) and len(numbers) == count, f"lists of {name}")
            rule(all(type(number) is int and number >= 0 for number in numbers), f"numbers of {name}")
        for key, found in zip(names, shape, strict=True):
            if key == "masks + 1":
                rule(named.setdefault("masks", found - 1) == found - 1, f"shape of {name}")
            else:
                rule(named.setdefault(key, found) == found, f"shape of {name}")
        count = 1
        for number in shape:
            count *= number
        width = 4 if dtype == "U32" else 1
        rule(offsets == [end_before, end_before + count * width], f"place of {name}")
        end_before = offsets[1]
        rule(end_before <= len(content), f"{name} is inside of the file")
        part = content[offsets[0] : offsets[1]]
        tensors[name] = list(struct.unpack(f"<{count}{'I' if width == 4 else 'B'}", part))
        shapes[name] = shape
    rule(end_before == len(content), "nothing follows the last tensor")
    rule(metadata["digest"] == hashlib.sha256(data[99:]).hexdigest(), "digest")

    found = SlowArtifact(metadata, tensors, shapes, text)
    rule(size is None or size == vocabulary_size, "the vocabulary")
    _indices(found, named)
    return found


def _indices(found: SlowArtifact, named: dict[str, int]) -> None:
    get = found.tensors
    states, classes, masks, rows, size = (
        *(named[k] for k in ("states", "classes", "masks", "rows")),
        found.vocabulary_size,
    )
    rule(states >= 1 and 1 <= classes <= 256 + (65 if found.columns else 0) and masks >= 1, "sizes")
    columns = get.get("token_columns", [])
    rule(columns[::2] == sorted(set(columns[::2])), "columns ascend")
    rule(all(value < size or value == BOUNDARY for value in columns[::2]), "columns of tokens")
    rule(all(value < classes and value not in get["classes"] for value in columns[1::2]), "columns")
    rule(found.start < states and found.inner_start < states, "start states")
    rule(all(value < states for value in get["table"]), "table")
    rule(all(value < classes for value in get["classes"]), "classes")
    rule(all(value < masks for value in get["mask"]), "mask")
    rule(all(value <= rows for value in get["mask_row"]), "mask_row")
    rule(all(value < size for value in get["flips"]), "flips")
    rule(all(value < 2 for value in get["accepting"]), "accepting")
    rule(all(value < states or value == UNREACHABLE for value in get["distance"]), "distance")
    rule(not any(get["table"][:classes]) and not get["accepting"][0], "DEAD is absorbing")
    rule(get["mask"][0] == 0 and get["distance"][0] == UNREACHABLE, "DEAD is not reached")
    offsets = get["flip_offsets"]
    rule(offsets[0] == 0 and offsets[-1] == len(get["flips"]) and offsets == sorted(offsets), "flip_offsets")
    rule(get["mask_row"][0] == 0 and offsets[1] == 0, "mask 0")
    for begin, end in itertools.pairwise(offsets):
        flips = get["flips"][begin:end]
        rule(flips == sorted(set(flips)), "flips ascend")
    if size % 32:
        last_words = get["rows"][named["words"] - 1 :: named["words"]]
        rule(all(word >> size % 32 == 0 for word in last_words), "bits above the vocabulary")


def meaning(found: SlowArtifact, vocabulary: object) -> None:
    """Check *Meaning* against a ``Vocabulary`` by trying every token at every state."""
    get, states = found.tensors, range(found.states)
    tokens, eos = vocabulary.tokens, set(vocabulary.eos_token_ids)
    initial = vocabulary.initial_tokens

    alive = {q for q in states if get["accepting"][q]}
    while more := {q for q in states if q not in alive and found.targets(q) & alive}:
        alive |= more
    entered = {target for q in states for target in found.targets(q)}
    live = set(states) - {0}
    rule(live <= alive, "every state but DEAD can reach acceptance")
    rule(live <= entered | {found.start, found.inner_start}, "every state is reached by bytes")
    rule(
        initial is None or found.start == 0 or found.start not in entered,
        "nothing leads to a start of its own",
    )
    rule(initial is not None or found.start == found.inner_start, "one start")

    def lead(q: int, token: int) -> int:
        if (end := by_bytes(q, token)) and BOUNDARY in found.columns:
            return found.by_column(end, found.columns[BOUNDARY])
        return end

    def by_bytes(q: int, token: int) -> int:
        text = tokens[token]
        if token in found.columns:
            return found.by_column(q, found.columns[token])
        if not text:
            return 0
        if initial is not None and q == found.start:
            text = initial[token]
            if not text:
                return found.start if vocabulary.start_absorbs else found.inner_start
        return found.next(q, text)

    arcs = {q: {t: end for t in range(len(tokens)) if (end := lead(q, t))} for q in live}
    distance = {q: 0 if get["accepting"][q] else UNREACHABLE for q in live}
    for _ in states:
        for q in live:
            shortest = min((distance[end] for end in arcs[q].values()), default=UNREACHABLE)
            distance[q] = min(distance[q], shortest + 1, UNREACHABLE)
    reached = {found.start} if distance.get(found.start, UNREACHABLE) != UNREACHABLE else set()
    if BOUNDARY not in found.columns and all(bytes([b]) in tokens for b in range(256)):
        reached |= live - {found.start}
    queue = list(reached)
    for q in queue:
        for end in arcs[q].values():
            if distance[end] != UNREACHABLE and end not in reached:
                reached.add(end)
                queue.append(end)

    for q in states:
        if q not in reached:
            state = (get["mask"][q], get["distance"][q], get["worst"][q])
            rule(state == (0, UNREACHABLE, 0), f"state {q} is not reached")
            continue
        allowed = {t for t, end in arcs[q].items() if distance[end] != UNREACHABLE}
        rule(
            found.mask(get["mask"][q]) == allowed | (eos if get["accepting"][q] else set()),
            f"mask of state {q}",
        )
        rule(get["distance"][q] == distance[q], f"distance of state {q}")
        rule(all(distance[arcs[q][t]] <= get["worst"][q] for t in allowed), f"bound of state {q}")


def canonical(found: SlowArtifact) -> None:
    """Check *Writers*: everything that makes the bytes a function of the content."""
    get = found.tensors
    header = json.loads(found.text)
    rule(
        list(header) == ["__metadata__", *layout_of(found.metadata["version"])]
        and list(header["__metadata__"]) == sorted(header["__metadata__"]),
        "order of keys",
    )
    compact = json.dumps(header, ensure_ascii=False, separators=(",", ":"))
    padding = -len(compact.encode()) % 8
    rule(found.text == compact + " " * padding, "compact JSON")

    of_tokens = len(set(found.columns.values()))
    classes = list(range(found.shapes["table"][1] - of_tokens))
    rule(list(dict.fromkeys(get["classes"])) == classes, "order of classes")
    width = found.shapes["table"][1]
    order = list(dict.fromkeys([0, found.start, found.inner_start]))
    for q in order:
        order += [p for p in dict.fromkeys(get["table"][q * width : (q + 1) * width]) if p not in order]
    rule(order == list(range(found.states)), "order of states")
    rule(list(dict.fromkeys([0, *get["mask"]])) == list(range(len(get["mask_row"]))), "order of masks")
    rule(
        list(dict.fromkeys([0, *get["mask_row"]])) == list(range(found.shapes["rows"][0] + 1)),
        "order of rows",
    )

    sets = [found.mask(number) for number in range(len(get["mask_row"]))]
    rule(len(set(sets)) == len(sets), "equal sets once")
    rows: list[frozenset[int]] = []
    for number, tokens in enumerate(sets[1:], 1):
        bases = [frozenset(), *rows[:-9:-1]]
        near = [base for base in bases if len(base ^ tokens) <= 512]
        if not near:
            rows.append(tokens)
        base = near[0] if near else tokens
        row = get["mask_row"][number]
        rule((rows[row - 1] if row else frozenset()) == base, f"the row of mask {number}")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a key stands twice")
    return dict(pairs)
