"""Makes the artifacts of this folder; run it at the root of the repository.

    python tests/golden/make.py

They are what some release wrote in version 1 of docs/serving/format.md (a program in version 4, programs with what was
learned in version 5), and each later release must read them. A test also compares their bytes with what the present
code writes. Where that fails because automata or masks are made in another way on purpose, run the command again and
say so in the commit; where the layout of the file changed, that is a new version of the format: keep these files and
add new ones.
"""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import numpy as np

from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.automata.notations.gbnf import gbnf
from tokenfst.automata.regex.translate import regex
from tokenfst.decoding.compiling.compile import compile
from tokenfst.decoding.token_automata import learned
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

FOLDER = Path(__file__).parent
PROGRAM = "program.safetensors"
LEARNED = {"learned-stacks.safetensors": "two stacks", "learned-unique.safetensors": "unique items"}
"""Programs with the masks and distances that ``walk`` finds."""
LEARNED_BY = "golden"
"""The release that they say has learned it: what another one has learned is left aside, and these are to stay."""
WALKED = 4
"""Tokens of each path that is walked: the first that is allowed, one in the middle and the last, again and again."""
SYLLABLES = [a + b for a in "bcdfghjklmnpqrstvwxz" for b in "aeiou"]
BYTES = [bytes([byte]) for byte in range(256)]

# Every byte and some longer tokens, one of them twice.
PLAIN = Vocabulary([*BYTES, b"20", b"-0", b"null", b'"', b': "', b"", b""], 261, {"<pad>": 262}, name="plain")

# Many words: masks too large for lists, so rows and differences to them.
WORDS = Vocabulary(
    [*BYTES, *((a + b).encode() for a in SYLLABLES for b in SYLLABLES[:12]), b""], 256 + 1200, name="words"
)

# No bytes, and a space that is stripped from the first token: a start state of its own. Not all texts have tokens.
PIECES = Vocabulary(
    [b"", b" ", b" the", b" cat", b" sat", b"s", b"t", b"a", "é".encode()],
    0,
    initial_tokens=[b"", b"", b"the", b"cat", b"sat", b"s", b"t", b"a", "é".encode()],
    start_absorbs=True,
    name="pieces",
)

ARTIFACTS: dict[str, tuple[str, Vocabulary]] = {
    "date.safetensors": (r'\{"date": "20[0-9]{2}-[01][0-9]"|null\}', PLAIN),
    "words.safetensors": (r"[a-z]{2,9}(?: [a-m]{1,4}| \d+)?", WORDS),
    "pieces.safetensors": (r"(?:the|a)(?: cats?| é+)* sat", PIECES),
}


def make(name: str) -> TokenAutomaton:
    """The automaton of one of the files."""
    pattern, vocabulary = ARTIFACTS[name]
    return compile(regex(pattern), vocabulary)


TAGGED = Vocabulary(
    [*BYTES, b"ab", b"aab", b"((", b"))", b'{"', b'":', b'",', b"nu", b"", b""], 265, {"<tool>": 264}
)
TWO_STACKS = gbnf('root ::= "(" root ")" | "x" root | "x" | root "y"')


def make_program() -> TokenAutomaton:
    """The automaton of program.safetensors, which needs two stacks and has no tables."""
    return compile(TWO_STACKS, TAGGED)


def make_unwalked(name: str) -> TokenAutomaton:
    """The automaton of one of ``LEARNED``, which has learned nothing yet."""
    if LEARNED[name] == "two stacks":
        return compile(TWO_STACKS, TAGGED)
    return compile(
        json_schema({"type": "array", "items": {"enum": ["ab", 1, [2, 3]]}, "uniqueItems": True}), PLAIN
    )


def walk(automaton: TokenAutomaton) -> list[tuple[list[int], int]]:
    """The allowed tokens, and the distance, after each path; found anew where they are not known."""
    mask = np.zeros((1, (len(automaton.vocabulary) + 31) // 32), np.int32)
    found: list[tuple[list[int], int]] = []

    def visit(tokens: list[int]) -> None:
        matcher = automaton.matcher()
        assert matcher.accept_tokens(tokens)
        matcher.fill_next_token_bitmask(mask)
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()
        found.append((allowed, matcher.distance()))
        for token in sorted({allowed[0], allowed[len(allowed) // 2], allowed[-1]}):
            if len(tokens) < WALKED and token not in automaton.vocabulary.eos_token_ids:
                visit([*tokens, token])

    visit([])
    return found


def make_learned(name: str) -> bytes:
    """One of ``LEARNED``: the same, once it was walked."""
    automaton = make_unwalked(name)
    walk(automaton)
    with patch.object(learned, "release", lambda: LEARNED_BY):
        return automaton.serialize(learned=True)


if __name__ == "__main__":
    make_program().save(FOLDER / PROGRAM, expand=False)
    for name in LEARNED:
        (FOLDER / name).write_bytes(make_learned(name))
        print(name, (FOLDER / name).stat().st_size)
    for name in ARTIFACTS:
        make(name).save(FOLDER / name)
        print(name, (FOLDER / name).stat().st_size)
