"""Artifacts against docs/serving/format.md: the writer does what the page says, the reader gives what was written."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

from reference.tokens import artifact as slow
from reference.tokens.small_automata import small_automaton
from tokenfst import _native
from tokenfst.automata.expressions import expression as ex
from tokenfst.automata.languages.language import Language
from tokenfst.automata.regex.translate import regex
from tokenfst.decoding.artifacts import artifact
from tokenfst.decoding.artifacts.tensors import EVERY_TENSOR, LEARNED_TENSORS, PROGRAM_TENSORS, TENSORS
from tokenfst.decoding.compiling.compile import compile
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import ArtifactError, ArtifactVocabularyError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

pytestmark = pytest.mark.filterwarnings("ignore::tokenfst.errors.UnspellableWarning")


def to_bytes(automaton: TokenAutomaton) -> bytes:
    vocabulary = automaton.vocabulary
    return artifact.serialize(automaton.arrays(), vocabulary.fingerprint, len(vocabulary), automaton.source)


def allowed(matcher: _native.Matcher, size: int) -> list[int]:
    mask = np.full((1, (size + 31) // 32), -1, np.int32)
    matcher.fill_next_token_bitmask(mask)
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little", count=size)).tolist()


@pytest.mark.parametrize("seed", range(150))
def test_slow_reader_agrees(seed: int, tmp_path: Path) -> None:
    automaton = small_automaton(random.Random(seed))
    path = tmp_path / "it.safetensors"
    automaton.save(path)
    fast = artifact.read(path)
    found = slow.read(path.read_bytes(), len(automaton.vocabulary))
    for name, *_ in TENSORS:
        assert fast.arrays[name].ravel().tolist() == found.tensors[name], name
        assert list(fast.arrays[name].shape) == found.shapes[name], name
    assert (fast.arrays["start"], fast.arrays["inner_start"]) == (found.start, found.inner_start)
    assert fast.source == found.metadata["source"] == automaton.source
    assert (
        fast.vocabulary_fingerprint
        == found.metadata["vocabulary_fingerprint"]
        == automaton.vocabulary.fingerprint
    )
    assert fast.vocabulary_size == found.vocabulary_size == len(automaton.vocabulary)
    assert (fast.version, fast.digest, fast.size) == (1, found.metadata["digest"], path.stat().st_size)
    slow.meaning(found, automaton.vocabulary)
    slow.canonical(found)


def test_large_masks_are_rows_and_differences() -> None:
    # 3,000 words; states that allow nearly all of them, in different ways.
    rng = random.Random(5)
    words = sorted({bytes(rng.choices(b"cdefghij", k=4)) for _ in range(3000)})
    vocabulary = Vocabulary([*words, *(bytes([byte]) for byte in range(256)), b""], len(words) + 256)
    automaton = compile(regex(r"[c-j]*a(?:(?!cdef|ddd)[d-j].*|[c-g]+)b[c-i]{0,9}"), vocabulary)
    found = slow.read(to_bytes(automaton))
    slow.canonical(found)
    rows = [row for row in found.tensors["mask_row"] if row]
    assert found.shapes["rows"][0] > 1 and len(rows) > len(set(rows)) and len(found.tensors["flips"]) > 100
    for number, state in enumerate(found.tensors["accepting"]):
        assert (vocabulary.eos_token_ids[0] in found.mask(found.tensors["mask"][number])) == bool(state)


def make(seed: int) -> TokenAutomaton:
    """The same automaton each time, with nothing made in it yet."""
    return small_automaton(random.Random(seed))


@pytest.mark.parametrize("seed", range(1000, 1080))
def test_lazy_expanded_and_loaded_walk_alike(seed: int, tmp_path: Path) -> None:
    rng, path = random.Random(seed), tmp_path / "it.safetensors"
    lazy, expanded = make(seed), make(seed).expand()
    expanded.save(path)
    kinds = [lazy, expanded, TokenAutomaton.load(path, lazy.vocabulary)]
    shortest = lazy.distance()
    assert [kind.distance() for kind in kinds] == [shortest] * 3
    for turn in range(6 if shortest != slow.UNREACHABLE else 0):
        limit = None if turn % 2 else shortest + rng.randint(0, 4)
        walkers = [kind.matcher(limit) for kind in kinds]
        for _ in range(10):
            masks = [allowed(walker, len(lazy.vocabulary)) for walker in walkers]
            assert masks[0] == masks[1] == masks[2]
            views = [
                (w.distance(), w.is_accepting(), w.is_terminated(), w.forced_tokens(), w.forced_bytes())
                for w in walkers
            ]
            assert views[0] == views[1] == views[2]
            if not masks[0] or walkers[0].is_terminated():
                break
            token = rng.choice(masks[0])
            assert [walker.accept_token(token) for walker in walkers] == [True] * 3


def wander(automaton: TokenAutomaton, rng: random.Random) -> None:
    """Make some states and masks, in a random order."""
    for turn in range(3 if automaton.distance() != slow.UNREACHABLE else 0):
        matcher = automaton.matcher(None if turn else automaton.distance() + 2)
        for _ in range(rng.randrange(12)):
            tokens = allowed(matcher, len(automaton.vocabulary))
            if not tokens or matcher.is_terminated():
                break
            matcher.accept_token(rng.choice(tokens))


@pytest.mark.parametrize("seed", range(2000, 2060))
def test_bytes_do_not_depend_on_what_happened_before(seed: int) -> None:
    wanted, rng = to_bytes(make(seed)), random.Random(seed)
    again = make(seed)
    for other in range(2):
        wander(small_automaton(random.Random(seed + other), again.vocabulary), rng)
    wander(again, rng)
    assert to_bytes(again) == wanted


@pytest.mark.soak
@pytest.mark.parametrize("first", range(3000, 20_000, 500))
def test_bytes_do_not_depend_on_what_happened_before_in_many_cases(first: int) -> None:
    for seed in range(first, first + 500):
        test_bytes_do_not_depend_on_what_happened_before(seed)


def test_bytes_do_not_depend_on_known_fragments(tekken: Vocabulary) -> None:
    text = r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])*"'
    language = regex(rf"(?:yes|no|[a-zA-Z ]{{5,30}})(?:, {text}){{1,2}}")
    fresh = Vocabulary(tekken.tokens, tekken.eos_token_ids, tekken.special_tokens)
    first = to_bytes(compile(language, fresh))
    compile(regex(rf"\[{text}(?:, {text}){{0,3}}\]"), tekken).expand()
    again = compile(language, tekken)
    wander(again, random.Random(7))
    assert artifact.serialize(again.arrays(), fresh.fingerprint, len(fresh), again.source) == first


def test_bytes_do_not_depend_on_the_process(tmp_path: Path) -> None:
    program = (
        "import sys, random; sys.path.insert(0, sys.argv[1])\n"
        "from reference.tokens.small_automata import small_automaton\n"
        "for seed in range(12):\n"
        "    small_automaton(random.Random(seed)).save(f'{sys.argv[2]}/{seed}.safetensors')\n"
    )
    folders = []
    for hash_seed in ("0", "1", "4321"):
        folder = tmp_path / hash_seed
        folder.mkdir()
        environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONWARNINGS": "ignore"}
        command = [sys.executable, "-c", program, str(Path(__file__).parents[2]), str(folder)]
        subprocess.run(command, env=environment, check=True)
        folders.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert len(folders[0]) == 12
    assert (
        folders[0] == folders[1] == folders[2] == {f"{n}.safetensors": to_bytes(make(n)) for n in range(12)}
    )


def test_saving_what_was_loaded_gives_the_same_bytes(tmp_path: Path) -> None:
    automaton = make(3)
    automaton.save(tmp_path / "a")
    TokenAutomaton.load(tmp_path / "a", automaton.vocabulary).save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_safetensors_library_reads_it(tmp_path: Path) -> None:
    automaton = make(4)
    automaton.save(tmp_path / "it.safetensors")
    found = artifact.read(tmp_path / "it.safetensors")
    with safe_open(tmp_path / "it.safetensors", "numpy") as file:
        assert set(file.keys()) == {tensor.name for tensor in TENSORS}
        for tensor in TENSORS:
            assert np.array_equal(file.get_tensor(tensor.name), found.arrays[tensor.name])
        assert file.metadata()["source"] == automaton.source
        assert file.metadata()["digest"] == found.digest


def test_sources_of_any_characters() -> None:
    automaton = make(5)
    for source in ("", '"digest":"' + "0" * 64, "\x00\x7f\u2028é日😀", "a" * 100_000):
        data = artifact.serialize(automaton.arrays(), "0" * 64, len(automaton.vocabulary), source)
        assert slow.read(data).metadata["source"] == source
    lone = artifact.serialize(automaton.arrays(), "0" * 64, len(automaton.vocabulary), "[\ud800-x]")
    assert slow.read(lone).metadata["source"] == "[\\ud800-x]"
    with pytest.raises(ArtifactError, match=r"source of 20,000,000 characters.*shorter source"):
        artifact.serialize(automaton.arrays(), "0" * 64, len(automaton.vocabulary), "a" * 20_000_000)


def test_another_vocabulary_is_refused(tmp_path: Path) -> None:
    automaton = make(6)
    automaton.save(tmp_path / "it")
    other = Vocabulary([*automaton.vocabulary.tokens, b"more"], automaton.vocabulary.eos_token_ids)
    with pytest.raises(ArtifactVocabularyError, match=other.fingerprint[:12]):
        TokenAutomaton.load(tmp_path / "it", other)


def test_arrays_that_do_not_fit_are_not_written() -> None:
    automaton = make(7)
    size, arrays = len(automaton.vocabulary), automaton.arrays()
    with pytest.raises(ArtifactError, match="'table' of type int64"):
        artifact.serialize(arrays | {"table": arrays["table"].astype(np.int64)}, "0" * 64, size, "")
    with pytest.raises(ArtifactError, match="'mask' has the shape"):
        artifact.serialize(arrays | {"mask": arrays["mask"][1:]}, "0" * 64, size, "")
    with pytest.raises(ArtifactError, match="fingerprint"):
        artifact.serialize(arrays, "none", size, "")


def test_a_language_of_everything_and_of_one_word(tmp_path: Path) -> None:
    vocabulary = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], 256)
    for expr in (ex.UNIVERSE, ex.EPSILON, ex.literal(b"word")):
        automaton = compile(Language(expr, "it"), vocabulary)
        automaton.save(tmp_path / "it")
        found = slow.read((tmp_path / "it").read_bytes(), 257)
        slow.meaning(found, vocabulary)
        slow.canonical(found)
        assert TokenAutomaton.load(tmp_path / "it", vocabulary).distance() == automaton.distance()


def test_the_page_has_the_tensors_of_the_table() -> None:
    page = (Path(__file__).parents[3] / "docs" / "serving" / "format.md").read_text()
    section = page.partition("### Tensors")[2].partition("## Meaning")[0]
    rows = {}
    for line in section.splitlines():
        if line.startswith("| `"):
            name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
            rows[name.strip("`")] = cells[-3:]
    expected = {}
    for tensor in (*EVERY_TENSOR, *PROGRAM_TENSORS, *LEARNED_TENSORS):
        shape = f"[{', '.join(map(str, tensor.shape))}]"
        typed = tensor in (*TENSORS, *PROGRAM_TENSORS, *LEARNED_TENSORS) or tensor.name == "token_columns"
        expected[tensor.name] = [*([tensor.dtype] if typed else []), shape, tensor.meaning]
    assert rows == expected
    assert {tensor.dtype for tensor in EVERY_TENSOR if tensor not in TENSORS} == {"U32"}  # as the page says


def test_the_core_reads_checks_and_writes_the_tensors_of_the_table() -> None:
    native = Path(__file__).parents[3] / "native"
    checks = (native / "artifact" / "view.cpp").read_text()
    body = checks.partition("void check_stacks")[2]
    found = set(re.findall(r'"([^"\n]+)"\);', body))
    rules = [rule for tensor in (*EVERY_TENSOR, *LEARNED_TENSORS) for rule in tensor.rules]
    assert found == set(rules)
    assert len(set(rules)) == len(rules)
    face = (native / "bindings" / "token_automata" / "artifact.hpp").read_text()
    read = set(re.findall(r'(?:words|borrow<\w+>)\((?:arrays, )?"(\w+)"\)', face))
    written = set(re.findall(r'(?:result\[|add\()"(\w+)"', face)) - {"start", "inner_start"}
    assert read == written == {tensor.name for tensor in (*EVERY_TENSOR, *LEARNED_TENSORS)}
