"""Random decoder chains against the tokenizers library: either refused, or exact on every token sequence."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running.parts import in_parts
from tokenizers import decoders

from reference.tokens.detokenize import slow_decode
from tokenfst.errors import UnknownTokenizerError
from tokenfst.tokenizers.adapters.decoder_chain import decoded_forms
from tokenfst.tokenizers.vocabulary.encoding import byte_level_alphabet

TOKENS = [
    *("a", "ab", "b", "▁", "▁a", "▁▁", "a▁b", "▁▁b", "##a", "##", "###b", ".", "é", "▁é"),
    *(
        "Ġ",
        "Ġa",
        "Ã",
        "©",
        "Ġé",
        "x y",
        " ",
        "  ",
        " a",
        "a ",
        " .",
        " n't",
        "do not",
        " do not",
        " ' ",
        "'s",
    ),
    *("<0x20>", "<0x41>", "<0x2E>", "<0xE2>", "<0x96>", "<0x81>", "<0xc3>", "<0x+9>", "<0xZZ>", "▁<0x41>"),
]

STEPS = st.one_of(
    st.just({"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}),
    st.just({"type": "ByteFallback"}),
    st.just({"type": "Fuse"}),
    st.builds(
        lambda mark, scheme: {
            "type": "Metaspace",
            "replacement": mark,
            "prepend_scheme": scheme,
            "split": True,
        },
        st.sampled_from("▁a"),
        st.sampled_from(["always", "first", "never"]),
    ),
    st.builds(
        lambda prefix, cleanup: {"type": "WordPiece", "prefix": prefix, "cleanup": cleanup},
        st.sampled_from(["##", "a", ""]),
        st.booleans(),
    ),
    st.builds(
        lambda old, new: {"type": "Replace", "pattern": {"String": old}, "content": new},
        st.sampled_from(["▁", "a", "ab", " ", "é"]),
        st.sampled_from([" ", "", "b", "▁", "ab"]),
    ),
    st.builds(
        lambda mark, start, stop: {"type": "Strip", "content": mark, "start": start, "stop": stop},
        st.sampled_from(" ▁a"),
        st.integers(0, 2),
        st.just(0),
    ),
)


def exact(steps: list[dict], ids: list[int]) -> None:
    decoder = steps[0] if len(steps) == 1 else {"type": "Sequence", "decoders": steps}
    later, first = decoded_forms(TOKENS, decoder)
    silent = {token for token in range(len(TOKENS)) if not later[token] and not first[token]}
    # A token that writes nothing anywhere counts as special, and its place as first one goes to the next.
    ids = [token for token in ids if token not in silent]
    ours = slow_decode(later, first, (), False, ids)
    real = decoders.Sequence([])
    real.__setstate__(json.dumps({"type": "Sequence", "decoders": steps}).encode())
    theirs = real.decode([TOKENS[token] for token in ids])
    try:
        text = ours.decode()
    except UnicodeDecodeError:
        assert "\ufffd" in theirs
    else:
        assert theirs == text, (steps, [TOKENS[token] for token in ids])


@settings(max_examples=1500, deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=4), st.lists(st.integers(0, len(TOKENS) - 1), max_size=6))
def test_refused_or_exact(steps: list[dict], ids: list[int]) -> None:
    try:
        exact(steps, ids)
    except UnknownTokenizerError as error:
        assert any(step["type"] in str(error) for step in steps)


@in_parts(
    10,
    5_000,
    st.lists(STEPS, min_size=1, max_size=5),
    st.lists(st.integers(0, len(TOKENS) - 1), max_size=8),
)
def test_refused_or_exact_for_long(steps: list[dict], ids: list[int]) -> None:
    try:
        exact(steps, ids)
    except UnknownTokenizerError as error:
        assert any(step["type"] in str(error) for step in steps)


@pytest.mark.parametrize(
    "steps",
    [
        [{"type": "ByteLevel"}],
        [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"},
            {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ],
        [{"type": "Strip", "content": " ", "start": 1, "stop": 1}],
        [{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}, {"type": "ByteFallback"}],
        [{"type": "Sequence", "decoders": [{"type": "Fuse"}]}],
    ],
)
def test_known_chains_are_not_refused(steps: list[dict]) -> None:
    decoded_forms(TOKENS, {"type": "Sequence", "decoders": steps})


def test_old_metaspace_files() -> None:
    for flag, scheme in ((True, "always"), (False, "never")):
        old = decoded_forms(TOKENS, {"type": "Metaspace", "replacement": "▁", "add_prefix_space": flag})
        assert old == decoded_forms(
            TOKENS, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme}
        )


def test_byte_level_alphabet_is_the_library_s() -> None:
    from tokenizers import pre_tokenizers

    alphabet = byte_level_alphabet()
    assert set(alphabet) == set(pre_tokenizers.ByteLevel.alphabet())
    assert sorted(alphabet.values()) == list(range(256))
