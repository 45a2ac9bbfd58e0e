"""Mask against mask: where two libraries' masks differ along a valid document, and which of them is wrong.

Each library runs in a process of its own, walks along the document and returns a digest of each mask. At the first
step at which digests differ, the masks themselves are fetched, and some tokens that one mask allows and another
denies are tried. Each library that allows such a token continues the text at random, by its own masks, until the text
may end. If the text is valid, the libraries that denied the token are too narrow. If it is invalid, the library that
made it is too wide. The judge of texts (``Judge``) is none of the libraries. A case in which no text proves anything
is undecided.

Libraries may differ in the white space that they allow between the parts of JSON. So steps at which masks differ only
in tokens with white space are counted by themselves and not decided. A library that denies another order of members
counts as too narrow; ``runner`` counts how often that is the reason.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.measuring.libraries import Walk

Judge = Callable[[str], bool | None]
"""Whether a text is valid; None if the judge cannot tell."""
TRIED = 4
"""The greatest number of tokens that are tried where masks differ."""
TEXTS = 6
"""The number of texts that each library makes after one token."""
LENGTH = 60
"""The greatest number of tokens of such a text."""
LONGEST = 400
"""The greatest number of tokens that are walked along a document."""
_CLOSING = frozenset(b'"}],:0123456789aet')
_LIKELY = 0.75
"""The probability with which a step chooses a token of ``World.closing``, if the mask allows one."""


# --- in the process of a library --------------------------------------------------------------------------


def digests(walk: Walk, tokens: Sequence[int], words: int, plain: bytes) -> list[tuple[bytes, bytes]]:
    """Two digests of the mask before each token, up to the first token that is not allowed: one of the whole mask, one
    of its intersection with the mask ``plain``.
    """
    walk.restart()
    kept = np.frombuffer(plain, np.int32)
    found = []
    for token in tokens:
        walk.fill()
        row = np.ascontiguousarray(walk.bitmask[0, :words])
        found.append((_digest(row), _digest(row & kept)))
        if not (int(row[token >> 5]) >> (token & 31)) & 1 or not walk.accept(token):
            break
        if walk.error():
            break
    return found


def _digest(row: Any) -> bytes:
    return blake2b(row.tobytes(), digest_size=8).digest()


def mask(walk: Walk, tokens: Sequence[int], words: int) -> bytes:
    """The mask after some tokens, all of which are allowed."""
    walk.restart()
    for token in tokens:
        walk.fill()
        walk.accept(token)
    walk.fill()
    return np.ascontiguousarray(walk.bitmask[0, :words]).tobytes()


def complete(
    walk: Walk, tokens: Sequence[int], words: int, end: int, closing: Sequence[int], seed: int
) -> list[int] | None:
    """Random tokens after ``tokens`` up to a place where the text may end; tokens of ``closing`` are preferred. None if
    no end was found.
    """
    generator = random.Random(seed)
    walk.restart()
    for token in tokens:
        walk.fill()
        if not (int(walk.bitmask[0, token >> 5]) >> (token & 31)) & 1 or not walk.accept(token):
            return None
    found: list[int] = []
    while len(found) < LENGTH:
        walk.fill()
        row = np.ascontiguousarray(walk.bitmask[0, :words])
        if (int(row[end >> 5]) >> (end & 31)) & 1:
            return found
        near: Any = [token for token in closing if (int(row[token >> 5]) >> (token & 31)) & 1]
        if not near or generator.random() > _LIKELY:
            bits = np.unpackbits(row.view(np.uint8), bitorder="little").view(bool)
            near = np.flatnonzero(bits)  # Booleans in an array: masks may be long
        if not len(near):
            return None
        token = int(generator.choice(near))
        if not walk.accept(token) or walk.error():
            return None
        found.append(token)
    return None


ANSWERS: dict[str, Callable[..., Any]] = {"digests": digests, "mask": mask, "complete": complete}
"""The questions that a library's process answers about the constraint of the last row."""


# --- beside the libraries ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Case:
    """A step at which masks differ, and the verdict.

    ``kind``: ``"narrow"``, ``"wide"`` or ``"undecided"``. ``wrong``: the libraries that are too narrow or too wide.
    ``right``: if ``kind`` is ``"narrow"``, those that allow the token. ``before``: the text before the step.
    ``token``: the token as text, with escapes for bytes that are not UTF-8; the end token is ``"the end"``. ``text``:
    the text that proves the verdict.
    """

    kind: str
    wrong: tuple[str, ...]
    right: tuple[str, ...]
    before: str
    token: str
    text: str


@dataclass(frozen=True, slots=True)
class World:
    """The vocabulary of all libraries. ``closing``: tokens that are likely to lead to an end. ``plain``: one bit for
    each token, which is 1 if the token has no white space; the end token has 1.
    """

    tokens: Sequence[bytes]
    end: int
    closing: tuple[int, ...]
    plain: Any

    @property
    def words(self) -> int:
        return -(-len(self.tokens) // 32)


def world_of(tokens: Sequence[bytes], end: int) -> World:
    closing = tuple(number for number, text in enumerate(tokens) if len(text) == 1 and text[0] in _CLOSING)
    plain = np.zeros(32 * -(-len(tokens) // 32), np.uint8)
    plain[[number for number, text in enumerate(tokens) if not set(text) & set(b" \t\r\n")]] = 1
    return World(tokens, end, closing, plain)


def compared(
    runners: Sequence[Any], documents: Sequence[Sequence[int]], world: World, judge: Judge
) -> tuple[dict[str, list[int]], list[Case]]:
    """Compare masks along documents. Returns two things.

    The first maps each pair of libraries, ``"a|b"``, to three numbers: steps compared, steps at which their masks
    differ, and steps at which they differ in a token without white space. The second is a list with a case for each
    document that has a step of the last kind.
    """
    pairs: dict[str, list[int]] = {}
    cases = []
    plain = np.packbits(world.plain, bitorder="little").tobytes()
    for tokens in documents:
        walked = list(tokens[:LONGEST])
        told = {each.who: each.ask("digests", walked, world.words, plain) for each in runners}
        known = {who: marks for who, marks in told.items() if marks}
        first: int | None = None
        for step in range(len(walked)):
            there = sorted(who for who, marks in known.items() if len(marks) > step)
            for one, other in combinations(there, 2):
                whole, without = (known[one][step][k] != known[other][step][k] for k in (0, 1))
                counts = pairs.setdefault(f"{one}|{other}", [0, 0, 0])
                counts[:] = counts[0] + 1, counts[1] + whole, counts[2] + without
                if without and first is None:
                    first = step
        if first is not None:
            there = [each for each in runners if len(known.get(each.who, ())) > first]
            cases.append(decided(there, walked[:first], world, judge))
    return pairs, cases


def decided(runners: Sequence[Any], before: list[int], world: World, judge: Judge) -> Case:
    """The case for the step after the tokens ``before``, where the libraries' masks differ."""
    bits = {}
    for each in runners:
        if (found := each.ask("mask", before, world.words)) is not None:
            bits[each.who] = np.unpackbits(np.frombuffer(found, np.uint8), bitorder="little") & world.plain
    shown = b"".join(world.tokens[token] for token in before).decode(errors="replace")
    stacked = np.stack(list(bits.values()))
    differing = np.flatnonzero(stacked.any(0) & ~stacked.all(0)).tolist()
    differing.sort(key=lambda token: (token != world.end, len(world.tokens[token]), token))
    wide: Case | None = None
    for token in differing[:TRIED]:
        allow = tuple(who for who, row in bits.items() if row[token])
        deny = tuple(who for who in bits if who not in allow)
        name = world.tokens[token].decode(errors="backslashreplace") if token != world.end else "the end"
        for who, made in _texts(runners, allow, [*before, token], world):
            try:
                verdict = judge(made.decode())
            except UnicodeDecodeError:
                verdict = False
            if verdict:
                return Case("narrow", deny, allow, shown, name, made.decode())
            if verdict is False and wide is None:
                wide = Case("wide", (who,), (), shown, name, made.decode(errors="backslashreplace"))
    return wide or Case("undecided", (), (), shown, "", "")


def _texts(runners: Sequence[Any], allow: Sequence[str], tokens: list[int], world: World) -> Any:
    """Pairs of a library that allows the last of ``tokens``, and a text (bytes) that it makes after it."""
    for each in runners:
        if each.who not in allow:
            continue
        if tokens[-1] == world.end:
            yield each.who, b"".join(world.tokens[token] for token in tokens[:-1])
            continue
        for seed in range(TEXTS):
            made = each.ask("complete", tokens, world.words, world.end, world.closing, seed)
            if made is not None:
                yield each.who, b"".join(world.tokens[token] for token in [*tokens, *made])


def schema_judge(schema: Any) -> Judge:
    """A judge that tells whether a text is JSON that is valid against a schema, by the jsonschema package. It answers
    None where an object repeats a name, and where the verdict depends on whether ``format`` is asserted.
    """
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.validators import validator_for

    kind = validator_for(schema, default=Draft202012Validator)
    strict, loose = kind(schema, format_checker=FormatChecker()), kind(schema)

    def judge(text: str) -> bool | None:
        repeated = False

        def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
            nonlocal repeated
            repeated |= len({name for name, _ in members}) < len(members)
            return dict(members)

        def no_number(text: str) -> Any:
            raise ValueError(text)

        try:
            value = json.loads(text, object_pairs_hook=pairs, parse_constant=no_number)
        except (ValueError, RecursionError):
            return False
        try:
            found = strict.is_valid(value), loose.is_valid(value)
        except (
            Exception
        ):  # references to elsewhere, patterns that Python does not read, numbers of a thousand digits
            return None
        return None if repeated or found[0] != found[1] else found[0]

    return judge
