"""Canonical tokenizations on disk: walked as before they were saved, refused where anything was altered."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from support.programs.command_line import tokenfst
from support.worlds.artifact_files import put_together, seal, take_apart

from reference.tokens import artifact as slow
from tokenfst import CanonicalAutomaton, TokenAutomaton, Vocabulary, allocate_token_bitmask, compile, regex
from tokenfst.automata.languages.language import Language
from tokenfst.decoding.artifacts import artifact
from tokenfst.decoding.canonical.matcher import CanonicalMatcher
from tokenfst.errors import (
    ArtifactCorruptError,
    ArtifactError,
    ArtifactVersionError,
    ArtifactVocabularyError,
    TokenfstError,
    TokenLimitError,
)
from tokenfst.tokenizers.vocabulary.encoding import BytePairEncoding

TOKENS = [bytes([byte]) for byte in range(256)] + [b"ab", b"abc", b"  ", b"bc", b"ca", b"abca", b""]
END = len(TOKENS) - 1
SPLIT = r"\s+(?!\S)|\s+|\S+"
PATTERNS = ["abd|abcabc x", "(?:a|b|c){0,6}", "(?:abc? ?)*", r"[abc]{2,4}(?: +[abc]{1,3})?", "é?(?:ab|ca)+"]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary(TOKENS, END, split_pattern=SPLIT)


def saved(pattern: str, vocabulary: Vocabulary, folder: Path) -> tuple[CanonicalAutomaton, Path]:
    automaton, path = (
        compile(regex(pattern), vocabulary, tokenization="canonical"),
        folder / "saved.safetensors",
    )
    automaton.save(path)
    return automaton, path


def altered(path: Path, change: Mapping[str, object]) -> None:
    """Change metadata of a file, under a right digest; None removes them."""
    header, content = take_apart(path.read_bytes())
    metadata = {**header["__metadata__"], **change}
    header["__metadata__"] = {key: metadata[key] for key in sorted(metadata) if metadata[key] is not None}
    path.write_bytes(put_together(header, content))


def mask(matcher: CanonicalMatcher) -> np.ndarray:
    row = allocate_token_bitmask(1, len(matcher.automaton.vocabulary))
    matcher.fill_next_token_bitmask(row, 0)
    return np.asarray(row)


def walk_both(
    one: CanonicalAutomaton, other: CanonicalAutomaton, rng: random.Random, limit: int | None
) -> int:
    """One random walk of both at once: the same masks, distances and forced texts at each place."""
    try:
        first = one.matcher(limit)
    except TokenLimitError:
        with pytest.raises(TokenLimitError):
            other.matcher(limit)
        return 0
    second = other.matcher(limit)
    steps = 0
    while True:
        found = mask(first)
        np.testing.assert_array_equal(found, mask(second))
        assert first.distance() == second.distance()
        assert first.forced_bytes() == second.forced_bytes()
        assert (first.is_accepting(), first.max_tokens_left) == (
            second.is_accepting(),
            second.max_tokens_left,
        )
        ids = np.flatnonzero(np.unpackbits(found.view(np.uint8), bitorder="little"))
        if first.is_terminated() or not len(ids) or steps == 12:
            return steps
        token = int(rng.choice(ids))
        assert first.accept_token(token) and second.accept_token(token)
        steps += 1


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_loaded_one_is_walked_as_before(pattern: str, vocabulary: Vocabulary, tmp_path: Path) -> None:
    automaton, path = saved(pattern, vocabulary, tmp_path)
    rng = random.Random(2)
    for other in (CanonicalAutomaton.load(path, vocabulary), automaton.expand()):
        assert other.source == automaton.source
        assert sum(walk_both(automaton, other, rng, limit) for limit in [None, 2, 3, 5, 8] * 4) > 10


def test_tekken(tekken: Vocabulary, tmp_path: Path) -> None:
    automaton, path = saved(r'\{"name": "[^"\\\x00-\x1f]*", "age": [0-9]{1,3}\}', tekken, tmp_path)
    other, rng = CanonicalAutomaton.load(path, tekken), random.Random(3)
    assert sum(walk_both(automaton, other, rng, limit) for limit in (None, None, 16)) > 20


def test_the_same_automaton_gives_the_same_bytes(vocabulary: Vocabulary, tmp_path: Path) -> None:
    automaton, path = saved(PATTERNS[0], vocabulary, tmp_path)
    data = path.read_bytes()
    automaton.matcher().accept_tokens([256, ord("d")])
    automaton.save(path)
    assert path.read_bytes() == data
    CanonicalAutomaton.load(path, vocabulary).save(path)
    assert path.read_bytes() == data


def test_the_format_by_its_page(vocabulary: Vocabulary, tmp_path: Path) -> None:
    automaton, path = saved(PATTERNS[3], vocabulary, tmp_path)
    found = slow.read(path.read_bytes(), len(vocabulary))
    assert found.metadata["version"] == "3" and found.metadata["split_pattern"] == SPLIT
    plain = artifact.serialize(
        automaton.every_sequence.arrays(), vocabulary.fingerprint, len(vocabulary), automaton.source
    )
    assert slow.read(plain).tensors == found.tensors
    slow.meaning(found, vocabulary)
    slow.canonical(found)
    assert artifact.read(path).encoding == BytePairEncoding(SPLIT)


def test_each_kind_is_loaded_as_what_it_is(vocabulary: Vocabulary, tmp_path: Path) -> None:
    _, path = saved(PATTERNS[0], vocabulary, tmp_path)
    with pytest.raises(ArtifactError, match=r"only canonical token sequences.*CanonicalAutomaton\.load"):
        TokenAutomaton.load(path, vocabulary)
    compile(regex("ab"), vocabulary).save(path)
    with pytest.raises(ArtifactError, match=r"all token sequences.*TokenAutomaton\.load"):
        CanonicalAutomaton.load(path, vocabulary)


def test_the_vocabulary_must_be_the_one(vocabulary: Vocabulary, tmp_path: Path) -> None:
    _, path = saved(PATTERNS[1], vocabulary, tmp_path)
    with pytest.raises(ArtifactVocabularyError, match="splits texts by"):
        CanonicalAutomaton.load(path, Vocabulary(TOKENS, END, split_pattern=r"[\s\S]+"))
    with pytest.raises(ArtifactVocabularyError, match="compiled for the vocabulary"):
        CanonicalAutomaton.load(path, Vocabulary([*TOKENS, b"zz"], END, split_pattern=SPLIT))
    with pytest.raises(ArtifactVocabularyError, match=r"is not known.*split_pattern="):
        CanonicalAutomaton.load(path, Vocabulary(TOKENS, END))


def test_altered_bytes_are_refused(vocabulary: Vocabulary, tmp_path: Path) -> None:
    _, path = saved(PATTERNS[0], vocabulary, tmp_path)
    whole, rng = path.read_bytes(), random.Random(5)
    place = whole.index(b"split_pattern")
    places = [*range(place, place + 40), *(rng.randrange(len(whole)) for _ in range(150))]
    for at in places:
        data = bytearray(whole)
        data[at] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        with pytest.raises(ArtifactError):
            CanonicalAutomaton.load(path, vocabulary)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"split_pattern": None}, ArtifactCorruptError, "lacks 'split_pattern'"),
        ({"version": "1"}, ArtifactCorruptError, "holds 'split_pattern'"),
        ({"version": "2"}, ArtifactCorruptError, "holds 'split_pattern'"),
        ({"version": "6"}, ArtifactVersionError, "reads versions 1 to 5"),
        ({"split_pattern": 3}, ArtifactCorruptError, "not a string"),
        ({"split_pattern": "\ud800"}, ArtifactCorruptError, "split_pattern has a lone surrogate"),
        ({"normal_form": "NFD"}, ArtifactCorruptError, "normal_form is 'NFD', not NFC"),
        ({"vocabulary_added_tokens": "{}"}, ArtifactCorruptError, "not as this format writes"),
        ({"vocabulary_added_tokens": '{"b":3,"a":4}'}, ArtifactCorruptError, "not as this format writes"),
        ({"vocabulary_added_tokens": '{"a": 3}'}, ArtifactCorruptError, "not as this format writes"),
        ({"vocabulary_added_tokens": '{"a":-3}'}, ArtifactCorruptError, "no JSON object of texts to ids"),
        (
            {"vocabulary_added_tokens": f'{{"a":{"9" * 5000}}}'},
            ArtifactCorruptError,
            "no JSON object of texts",
        ),
        ({"vocabulary_added_tokens": "["}, ArtifactCorruptError, "no JSON object of texts to ids"),
        ({"vocabulary_added_tokens": "[" * 50000}, ArtifactCorruptError, "no JSON object of texts to ids"),
        ({"vocabulary_added_tokens": '{"": 3}'}, ArtifactCorruptError, "no JSON object of texts to ids"),
        (
            {"vocabulary_added_tokens": '{"a": 3, "a": 4}'},
            ArtifactCorruptError,
            "no JSON object of texts to ids",
        ),
        (
            {"vocabulary_added_tokens": '{"a": true}'},
            ArtifactCorruptError,
            "no JSON object of texts to ids",
        ),
        (
            {"vocabulary_added_tokens": '{"\\ud800": 3}'},
            ArtifactCorruptError,
            "no JSON object of texts to ids",
        ),
        (
            {"vocabulary_added_tokens": "\ud800"},
            ArtifactCorruptError,
            "vocabulary_added_tokens has a lone surrogate",
        ),
    ],
)
def test_rules_that_are_broken_under_a_right_digest(
    change: dict[str, object],
    error: type[ArtifactError],
    message: str,
    vocabulary: Vocabulary,
    tmp_path: Path,
) -> None:
    _, path = saved(PATTERNS[0], vocabulary, tmp_path)
    altered(path, change)
    with pytest.raises(error, match=message):
        CanonicalAutomaton.load(path, vocabulary)


@pytest.mark.parametrize("pattern", ["(", "a*", "(?=a)b", "(" * 5000, "a{1,9999}", "", r"\p{Nonsense}"])
def test_patterns_that_split_nothing_under_a_right_digest(pattern: str, tmp_path: Path) -> None:
    vocabulary = Vocabulary(TOKENS, END, split_pattern=pattern)
    _, path = saved(PATTERNS[0], Vocabulary(TOKENS, END, split_pattern=SPLIT), tmp_path)
    altered(path, {"split_pattern": pattern})
    with pytest.raises(ArtifactCorruptError, match="canonical sequences cannot be computed"):
        CanonicalAutomaton.load(path, vocabulary)


def test_added_tokens_that_the_vocabulary_does_not_have(tmp_path: Path) -> None:
    _, path = saved(PATTERNS[0], Vocabulary(TOKENS, END, split_pattern=SPLIT), tmp_path)
    altered(path, {"vocabulary_added_tokens": '{"abc":9999}'})
    assert slow.read(path.read_bytes()).metadata["vocabulary_added_tokens"]
    same = BytePairEncoding(SPLIT, added=(("abc", 9999),))
    with pytest.raises(ArtifactCorruptError, match="has no token 9999"):
        CanonicalAutomaton.load(path, Vocabulary(TOKENS, END, split_pattern=same))


@pytest.mark.parametrize("key", ["vocabulary_added_tokens", "normal_form"])
def test_changes_of_texts_need_a_split_pattern(key: str, tmp_path: Path) -> None:
    path = tmp_path / "all.safetensors"
    compile(regex("ab"), Vocabulary(TOKENS, END)).save(path)
    altered(path, {key: "NFC"})
    with pytest.raises(ArtifactCorruptError, match=key):
        TokenAutomaton.load(path, Vocabulary(TOKENS, END))


def test_tensors_that_canonical_sequences_do_not_have(vocabulary: Vocabulary, tmp_path: Path) -> None:
    path = tmp_path / "tokens.safetensors"
    language = regex("a(?P<TEXT_TOKEN>)")
    compile(language, vocabulary).save(path)
    header, content = take_apart(path.read_bytes())
    header["__metadata__"] |= {"version": "3", "split_pattern": SPLIT}
    path.write_bytes(put_together(header, content))
    with pytest.raises(ArtifactCorruptError, match="token_columns"):
        CanonicalAutomaton.load(path, vocabulary)


def test_indices_that_lead_nowhere(vocabulary: Vocabulary, tmp_path: Path) -> None:
    _, path = saved(PATTERNS[4], vocabulary, tmp_path)
    whole, rng = path.read_bytes(), random.Random(9)
    base = 8 + int.from_bytes(whole[:8], "little")
    for _ in range(60):
        data = bytearray(whole)
        data[rng.randrange(base, len(data))] = rng.randrange(256)
        path.write_bytes(seal(bytes(data)))
        try:
            matcher = CanonicalAutomaton.load(path, vocabulary).matcher()
            for _ in range(4):
                ids = np.flatnonzero(np.unpackbits(mask(matcher).view(np.uint8), bitorder="little"))
                if matcher.is_terminated() or not len(ids):
                    break
                matcher.accept_token(int(rng.choice(ids)))
                matcher.forced_bytes()
        except TokenfstError:
            continue


def test_loading_and_walking_needs_no_openfst(vocabulary: Vocabulary, tmp_path: Path) -> None:
    _, path = saved(PATTERNS[0], vocabulary, tmp_path)
    vocabulary.to_json(tmp_path / "vocabulary.json")
    program = (
        "import sys, tokenfst\n"
        "vocabulary = tokenfst.load_vocabulary('tokens:' + sys.argv[1])\n"
        "matcher = tokenfst.CanonicalAutomaton.load(sys.argv[2], vocabulary).matcher()\n"
        "assert matcher.accept_tokens([256, 100])\n"
        "assert not {'pynini', 'pywrapfst', 'torch'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program, tmp_path / "vocabulary.json", path], check=True)


# --- what has no alternative ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", PATTERNS)
def test_forced_bytes_are_what_all_texts_share(pattern: str, vocabulary: Vocabulary) -> None:
    """Against the texts of up to nine letters that a canonical sequence leads to from each place."""
    automaton = compile(regex(pattern), vocabulary, tokenization="canonical")
    matcher, rng = automaton.matcher(), random.Random(6)
    tokenizer = automaton.tokenizer
    language: Language = regex(pattern)
    texts = sorted({language.sample(rng, 12) for _ in range(400)})
    sequences = [tuple(tokenizer.encode(text)) for text in texts if text] + [()] * (b"" in texts)
    for sequence in sequences:
        for end in range(len(sequence) + 1):
            prefix = sequence[:end]
            matcher.reset()
            assert matcher.accept_tokens(prefix)
            forced = matcher.forced_bytes()
            base = b"".join(TOKENS[token] for token in prefix)
            going_on = [each for each in sequences if each[:end] == prefix]
            for each in going_on:
                assert b"".join(TOKENS[token] for token in each).startswith(base + forced), (prefix, forced)
            if pattern == PATTERNS[0]:  # all its texts are among the samples
                shared = [b"".join(TOKENS[token] for token in each)[len(base) :] for each in going_on]
                low, high = min(shared), max(shared)
                assert forced == low[: next((k for k in range(len(low)) if low[k] != high[k]), len(low))]


def test_find_jump_forward_string_and_states(vocabulary: Vocabulary) -> None:
    matcher = compile(regex("é(?:à|é)"), vocabulary, tokenization="canonical").matcher()
    assert matcher.forced_bytes() == "é".encode() + b"\xc3" and matcher.find_jump_forward_string() == "é"
    fork = matcher.fork()
    assert fork.state == matcher.state
    assert fork.accept_token("é".encode()[0]) and fork.state != matcher.state and fork.memory > 0
    assert matcher.accept_token("é".encode()[0]) and fork.state == matcher.state


# --- the command line -----------------------------------------------------------------------------------------------


@pytest.fixture
def spec(vocabulary: Vocabulary, tmp_path: Path) -> str:
    vocabulary.to_json(tmp_path / "vocabulary.json")
    return f"tokens:{tmp_path / 'vocabulary.json'}"


def test_compile_check_sample_inspect(spec: str, vocabulary: Vocabulary, tmp_path: Path) -> None:
    target = str(tmp_path / "out.safetensors")
    words = ["(?:abd|abcabc x)", "-v", spec, "--tokenization", "canonical"]
    done = tokenfst("compile", *words, "-o", target, "--json")
    assert done.code == 0 and done.json["distance"] == 2
    saved_by_python = tmp_path / "python.safetensors"
    compile(regex(words[0]), vocabulary, tokenization="canonical").save(saved_by_python)
    assert saved_by_python.read_bytes() == Path(target).read_bytes()
    for given in (words, [target, "-v", spec]):
        assert tokenfst("check", *given, "-t", "256,100").code == 0
        assert tokenfst("check", *given, "-t", "97,98,100").code == 1
        drawn = tokenfst("sample", *given, "--seed", "2", "-n", "6", "--json").json["samples"]
        assert {tuple(each["tokens"]) for each in drawn} == {(256, 100), (257, 257, 32, 120)}
    assert tokenfst("check", target, "abd").code == 0
    found = tokenfst("inspect", target, "--json").json
    assert (found["format_version"], found["tokenization"]) == (3, "canonical")
    assert "canonical sequences alone" in tokenfst("inspect", target).out


def test_draw(spec: str, tmp_path: Path) -> None:
    words = ["draw", "(?:abd|abcabc x)", "-v", spec, "--tokenization", "canonical"]
    dot = tokenfst(*words).out
    assert all(f'label="\\"{token}\\""' in dot for token in ["abc", "ab", "d", "x"])
    assert dot.count("->") == 1 + 6
    assert dot.count("doublecircle") == 2
    done = tokenfst("draw", "[a-z]*", "-v", spec, "--tokenization", "canonical", "--max-states", "9")
    assert done.code == 2 and "at least 10 states" in done.err and "--max-states" in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["compile", "-g", "json", "-o", "OUT"], "needs a stack"),
        (["compile", "a(?P<TEXT_TOKEN>)", "-o", "OUT"], "constrains tokens"),
    ],
)
def test_what_is_refused(words: list[str], message: str, spec: str, tmp_path: Path) -> None:
    out = str(tmp_path / "out.safetensors")
    given = [out if word == "OUT" else word for word in words]
    done = tokenfst(*given, "-v", spec, "--tokenization", "canonical")
    assert done.code == 2 and message in done.err.replace("\n", " ")


def test_a_tokenizer_that_is_not_known(tmp_path: Path) -> None:
    Vocabulary(TOKENS, END).to_json(tmp_path / "plain.json")
    words = ["compile", "ab", "-v", f"tokens:{tmp_path / 'plain.json'}", "--tokenization", "canonical"]
    done = tokenfst(*words, "-o", str(tmp_path / "out.safetensors"))
    assert done.code == 2 and "split_pattern" in done.err


def test_json_of_the_header_is_as_it_is_documented(vocabulary: Vocabulary, tmp_path: Path) -> None:
    _, path = saved(PATTERNS[0], vocabulary, tmp_path)
    header, _ = take_apart(path.read_bytes())
    assert list(header["__metadata__"]) == sorted(header["__metadata__"])
    assert json.dumps(header["__metadata__"]["split_pattern"]) == json.dumps(SPLIT)
