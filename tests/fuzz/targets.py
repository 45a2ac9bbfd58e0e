"""What each fuzz target does with its bytes.

Every target keeps to a small budget, so that one input takes well under a second, and lets only the errors through that
the library promises for bad input: ``TokenfstError``, and ``ValueError`` where a value lies outside of its range.
"""

from __future__ import annotations

import contextlib
import functools
import json
import tempfile
import time
import tomllib
import warnings
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from support.worlds.artifact_files import GOOD, VOCABULARY, put_together, take_apart

from tokenfst import (
    Budget,
    Language,
    Matcher,
    Vocabulary,
    bundled_grammar,
    compile,
    ebnf,
    gbnf,
    json_schema,
    lark_grammar,
    load_vocabulary,
    regex,
    structural_tag,
)
from tokenfst.automata.openfst.files import read_fst
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import TokenfstError

Target = Callable[[bytes], None]
BUDGET = Budget(states=3000, bytes=100 << 20, seconds=2.0, positions=20_000)
PIECES = [
    *(bytes([byte]) for byte in range(256)),
    b'{"',
    b'":',
    b'", "',
    b"true",
    b"null",
    b"12",
    b"ab",
    b"aba",
    b"",
]
LETTERS = Vocabulary(PIECES, len(PIECES) - 1)


@contextlib.contextmanager
def promised() -> Iterator[None]:
    """Let the errors pass that bad input may raise, and no warning be printed."""
    with warnings.catch_warnings(), contextlib.suppress(TokenfstError, ValueError):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def as_file(data: bytes, ending: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"input{ending}"
        path.write_bytes(data)
        yield path


def text_of(data: bytes) -> str:
    """Text of any characters, lone surrogates among them."""
    return data.decode("utf-8", "surrogateescape")


def value_of(data: bytes) -> Any:
    """The JSON value that the bytes spell. Raises ValueError: there is none."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("too deep for Python's parser") from None


def follow(matcher: Matcher, choices: bytes, size: int) -> None:
    """Walk on: the mask, one of its tokens, and now and then another call.

    The budget bounds each call and not their sum, so the walk ends after 4 s: libFuzzer calls 20 s a hang.
    """
    mask = np.zeros((1, (size + 31) // 32), np.int32)
    end = time.monotonic() + 2 * BUDGET.seconds
    for choice in choices[:60]:
        if time.monotonic() > end:
            return
        if choice < 16:
            matcher.rollback(choice % (matcher.num_tokens + 1))
        elif choice < 32:
            matcher = matcher.fork()
        elif choice < 48:
            matcher.distance(), matcher.forced_bytes(), matcher.forced_tokens(), matcher.is_accepting()
        elif choice < 56:
            with promised():
                matcher.max_tokens_left = choice - 48
        elif matcher.is_terminated():
            matcher.reset()
        else:
            matcher.fill_next_token_bitmask(mask)
            allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            if not len(allowed):
                return
            assert allowed[-1] < size, "the mask allows a token outside of the vocabulary"
            token = int(allowed[choice % len(allowed)])
            assert matcher.accept_token(token), f"token {token} is in the mask, and refused"


def compiled(source: object, data: bytes) -> None:
    automaton = compile(source, LETTERS, budget=BUDGET)  # type: ignore[arg-type]
    follow(automaton.matcher(), data[-40:], len(LETTERS))


def fuzz_regex(data: bytes) -> None:
    with promised():
        compiled(regex(text_of(data[:200]), budget=BUDGET), data)


def fuzz_lark(data: bytes) -> None:
    with promised():
        compiled(lark_grammar(text_of(data), budget=BUDGET), data)


def fuzz_gbnf(data: bytes) -> None:
    with promised():
        compiled(gbnf(text_of(data), budget=BUDGET), data)


def fuzz_ebnf(data: bytes) -> None:
    with promised():
        compiled(ebnf(text_of(data), budget=BUDGET), data)


def fuzz_json_schema(data: bytes) -> None:
    with promised():
        compiled(json_schema(value_of(data), budget=BUDGET), data)


SCHEMA_OPTIONS: tuple[dict[str, Any], ...] = (
    {"property_order": "any"},
    {"spelling": "any"},
    {"property_order": "any", "spelling": "any", "repeated_names": "allow"},
    {"on_unsupported": "relax", "formats": "annotate"},
    {"additional_properties": "forbid", "indent": 2},
    {"draft": "draft4", "surrounding": "flexible"},
)


def fuzz_schema_options(data: bytes) -> None:
    """The first byte chooses options of ``json_schema``, the others are the schema."""
    options = SCHEMA_OPTIONS[data[0] % len(SCHEMA_OPTIONS) if data else 0]
    with promised():
        compiled(json_schema(value_of(data[1:]), budget=BUDGET, **options), data)


def fuzz_structural_tag(data: bytes) -> None:
    with promised():
        compiled(structural_tag(value_of(data), vocabulary=LETTERS, budget=BUDGET), data)


def fuzz_openfst(data: bytes) -> None:
    with promised(), as_file(data, ".fst") as path:
        compiled(Language.from_fst(read_fst(path)), data)


def fuzz_artifact(data: bytes) -> None:
    """The bytes are edits of a good artifact: eight each, four of place and four of value; the rest are calls."""
    header, content = take_apart(GOOD)
    changed = bytearray(content)
    for at in range(1, min(1 + 8 * (data[0] % 8 if data else 0), len(data) - 7), 8):
        place = int.from_bytes(data[at : at + 4], "little") % max(1, len(changed) - 3)
        changed[place : place + 4] = data[at + 4 : at + 8]
    with promised(), as_file(put_together(header, bytes(changed)), ".tokenfst") as path:
        automaton = TokenAutomaton.load(path, VOCABULARY)
        with promised():
            matcher = automaton.matcher()
            mask = np.zeros((1, (len(VOCABULARY) + 31) // 32), np.int32)
            for choice in data[-8:]:
                matcher.fill_next_token_bitmask(mask)
                matcher.distance(), matcher.forced_bytes()
                if matcher.is_terminated() or not matcher.accept_token(choice % len(VOCABULARY)):
                    break


def fuzz_artifact_file(data: bytes) -> None:
    """The bytes are the file."""
    with promised(), as_file(data, ".tokenfst") as path:
        TokenAutomaton.load(path, VOCABULARY)


@functools.cache
def automata() -> tuple[TokenAutomaton, ...]:
    unique = {"type": "array", "items": {"type": "string", "maxLength": 2}, "uniqueItems": True}
    members = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", 1, None]}}}
    sources = [
        regex("(?:a|b)*abb|[0-9]{2,9}"),
        json_schema(unique),
        json_schema(members, property_order="any"),
    ]
    return tuple(compile(source, LETTERS) for source in [*sources, bundled_grammar("python_expression")])


def fuzz_matcher(data: bytes) -> None:
    """The first byte chooses an automaton, the others are calls."""
    known = automata()
    with promised():
        follow(known[data[0] % len(known) if data else 0].matcher(), data[1:], len(LETTERS))


VOCABULARY_KINDS = (
    ("hf:", ".json"),
    ("tiktoken:", ".tiktoken"),
    ("spm:", ".model"),
    ("tokens:", ".json"),
    ("symbols:@", ".syms"),
    ("pack:", ".pack"),
)


def fuzz_vocabulary(data: bytes) -> None:
    """The first byte chooses the kind of file and whether the end token is given, the others are the file."""
    first = data[0] if data else 0
    kind, ending = VOCABULARY_KINDS[first % len(VOCABULARY_KINDS)]
    with promised(), as_file(data[1:], ending) as path:
        vocabulary = load_vocabulary(f"{kind}{path}", eos_token_id=1 if first >= 128 else None)
        compile(regex("[a-z]*"), vocabulary, budget=BUDGET).matcher()


TARGETS: dict[str, Target] = {
    name.removeprefix("fuzz_"): target for name, target in globals().items() if name.startswith("fuzz_")
}


def seeds(name: str) -> list[bytes]:
    """Inputs to begin with, so that the fuzzer need not find out what the text looks like."""
    grammar = b'start: "a" start? | WORD\nWORD: /[a-c]+/i\n%ignore " "\n'
    made: dict[str, list[bytes]] = {
        "regex": [rb"(?:a|b)*?\d{2,3}[^x-z]|(?P<n>x)(?=y)\bq", rb"(?i)\w+@[a-z]{1,9}\.(com|org)$"],
        "lark": [grammar, b'?start: x ~ 2..3\nx{y}: y "b"\n!x.2: /a/ -> z\n%import common.INT\n'],
        "gbnf": [b'root ::= "a" x* | [^a-c]+\nx ::= ("b" | root){1,3}  # y\n'],
        "ebnf": [
            b'root ::= [a-c]* "b" | TagDispatch(("<f>", x), stop_str=("z"))\nx ::= "a"{2,3} [^\\n] # y\n'
        ],
        "structural_tag": [
            b'{"type":"tag","begin":"<a>","content":{"type":"json_schema","json_schema":{"type":"integer"}},"end":"</a>"}',
            b'{"type":"triggered_tags","triggers":["<"],"tags":[{"begin":"<b>","content":{"type":"any_text"},"end":"x"}]}',
            b'{"type":"sequence","elements":[{"type":"regex","pattern":"a+"},{"type":"star","content":{"type":"or",'
            b'"elements":[{"type":"const_string","value":"b"},{"type":"grammar","grammar":"root ::= [c]"}]}}]}',
        ],
        "json_schema": [
            b'{"type":"object","properties":{"a":{"type":"integer","minimum":3}},"required":["a"]}',
            b'{"anyOf":[{"type":"string","pattern":"^a+$","format":"date"},{"enum":[1,"x",null]},{"$ref":"#"}]}',
            b'{"type":"array","prefixItems":[{"const":1}],"items":{"multipleOf":3},"uniqueItems":true}',
        ],
        "artifact": [b"\1" + bytes(8), b"\2" + bytes(16)],
        "artifact_file": [GOOD],
        "matcher": [bytes([k, 200, 100, 90, 3, 40, 250, 51, 99]) for k in range(4)],
        "vocabulary": [
            b'\x84{"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]},"added_tokens":[]}',
            b"\x85YQ== 0\nYg== 1\n",
            b"\x86\n\x08\n\x01a\x15\0\0\0\0\n\x08\n\x01b\x15\0\0\0\0",
            b'\3{"tokens": ["YQ==", ""], "eos_token_id": 1}',
            b"\4<eps>\t0\na\t1\n",
            b"\5" + packed(Vocabulary([b"a", b"ab", b""], 2)),
        ],
    }
    if name == "schema_options":
        return [bytes([k % len(SCHEMA_OPTIONS)]) + data for k, data in enumerate(seeds("json_schema"))]
    return made.get(name, [b"\0"]) + [data for data in from_corpora(name) if len(data) < 4000]


def packed(vocabulary: Vocabulary) -> bytes:
    """The file of a vocabulary pack."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.pack"
        vocabulary.to_pack(path)
        return path.read_bytes()


def from_corpora(name: str) -> list[bytes]:
    """The examples of the target's notation that the data-driven tests and the package have."""
    corpus = Path(__file__).resolve().parents[1] / "corpus"
    match name:
        case "regex":
            patterns = tomllib.loads((corpus / "regex.toml").read_text())["pattern"]
            return [entry["regex"].encode() for entry in patterns]
        case "json_schema":
            cases = tomllib.loads((corpus / "json_schema.toml").read_text())["case"]
            return [entry["schema"].encode() for entry in cases]
        case "lark":
            bundled = resources.files("tokenfst.automata.notations") / "bundled_grammars"
            return [file.read_bytes() for file in bundled.iterdir() if file.name.endswith(".lark")]
        case _:
            return []
