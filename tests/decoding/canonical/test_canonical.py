"""Canonical tokenizations against tiktoken and mistral-common themselves, and against encoding by the rule."""

from __future__ import annotations

import pickle
import random
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import tokenfst
from reference.tokens.byte_pairs import encode, train
from tokenfst import Budget, Vocabulary, allocate_token_bitmask, regex
from tokenfst.decoding.canonical.automaton import CanonicalAutomaton
from tokenfst.decoding.canonical.matcher import CanonicalMatcher
from tokenfst.errors import (
    BudgetExceeded,
    ConstraintError,
    EmptyLanguageError,
    MaskBufferError,
    RollbackError,
    TerminatedError,
    TokenIdError,
    TokenizationError,
    TokenLimitError,
    VocabularyError,
)
from tokenfst.tokenizers.adapters.token_file import read_token_file, write_token_file
from tokenfst.tokenizers.segmentation.byte_pairs import BytePairs
from tokenfst.tokenizers.segmentation.split_pattern import split_pattern

SINGLE = [bytes([byte]) for byte in range(256)]
WHOLE = r"[\s\S]+"
GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
CL100K = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|"""
    r"""\s*[\r\n]|\s+(?!\S)|\s"""
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_WORDS = rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_CLITICS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = "|".join([*(part + _CLITICS for part in _WORDS.split("|")), r"\p{N}{1,3}", _REST])
TEKKEN = "|".join([_WORDS, r"\p{N}", _REST])

SAMPLE = "the cat's mat  the  hat\n\n the END\tof   it 1234 56 /a/b \n  中文中 ABc aBC 'll can't I'VE 中B 中Bc --- \n/ "


def vocabulary_of(tokens: list[bytes], pattern: str | None) -> Vocabulary:
    return Vocabulary([*tokens, b""], len(tokens), split_pattern=pattern)


def tokens_of(bits: np.ndarray, size: int) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little", count=size)).tolist())


def allowed(matcher: CanonicalMatcher) -> set[int]:
    size = len(matcher.automaton.vocabulary)
    mask = allocate_token_bitmask(1, size)
    matcher.fill_next_token_bitmask(mask, 0)
    return tokens_of(mask[0], size)


def check_masks(automaton: CanonicalAutomaton, sequences: Iterable[tuple[int, ...]]) -> int:
    """After each prefix of the sequences, exactly what goes on to one of them is allowed."""
    following: dict[tuple[int, ...], set[int]] = {(): set()}
    (end,) = automaton.vocabulary.eos_token_ids
    for sequence in sequences:
        ended = (*sequence, end)
        for place in range(len(ended)):
            following.setdefault(ended[:place], set()).add(ended[place])
    matcher = automaton.matcher()
    for prefix, wanted in following.items():
        matcher.reset()
        assert matcher.accept_tokens(prefix), prefix
        assert allowed(matcher) == wanted, (prefix, automaton.vocabulary.decode(prefix))
        assert matcher.is_accepting() == (end in wanted)
    return len(following)


# --- neighbours -----------------------------------------------------------------------------------------------------


def random_encodings(count: int) -> Iterator[list[bytes]]:
    rng = random.Random(7)
    for _ in range(count):
        letters = b"abc"[: rng.choice([1, 2, 2, 3])]
        yield train(bytes(rng.choice(letters) for _ in range(rng.randint(4, 60))), rng.randint(1, 16))


def test_neighbours_are_those_that_encoding_leaves_alone() -> None:
    apart = 0
    for tokens in random_encodings(60):
        ranks = {data: rank for rank, data in enumerate(tokens)}
        pairs = BytePairs(vocabulary_of(tokens, None))
        of_interest = [*b"abc", *range(256, len(tokens))]
        for first in of_interest:
            after = tokens_of(pairs.followers(first), len(tokens))
            before = pairs.predecessors(first)
            for second in of_interest:
                assert (second in after) == (encode(tokens[first] + tokens[second], ranks) == [first, second])
                assert before[second] == (encode(tokens[second] + tokens[first], ranks) == [second, first])
                apart += second not in after
    assert apart > 1000


def test_all_short_sequences_of_small_encodings() -> None:
    for tokens in list(random_encodings(12))[2:]:
        vocabulary = vocabulary_of(tokens, WHOLE)
        ranks = {data: rank for rank, data in enumerate(tokens)}
        matcher = tokenfst.compile(regex("(?s:.*)"), vocabulary, tokenization="canonical").matcher()
        of_interest = [*b"ab", *range(256, min(len(tokens), 260))]
        for length in range(5):
            for sequence in product(of_interest, repeat=length):
                matcher.reset()
                taken = matcher.accept_tokens(sequence) and matcher.is_accepting()
                text = vocabulary.decode(sequence)
                assert taken == (not text or encode(text, ranks) == list(sequence))


def test_neighbours_of_tekken(tekken: Vocabulary) -> None:
    rng = random.Random(3)
    ranks = {data: rank for rank, data in enumerate(tekken.tokens) if data}
    pairs = BytePairs(tekken)
    for _ in range(60):
        first = rng.randrange(1000, len(tekken))
        after, before = tokens_of(pairs.followers(first), len(tekken)), pairs.predecessors(first)
        for _ in range(40):
            second = 1000 + int(rng.random() ** 3 * 130_000)
            text = tekken.tokens[first] + tekken.tokens[second]
            if text not in ranks:
                assert (second in after) == (encode(text, ranks) == [first, second])
            text = tekken.tokens[second] + tekken.tokens[first]
            if text not in ranks:
                assert before[second] == (encode(text, ranks) == [second, first])


# --- pieces ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern", [WHOLE, GPT2, CL100K, O200K, TEKKEN], ids=["whole", "gpt2", "cl100k", "o200k", "tekken"]
)
@pytest.mark.parametrize(
    "alphabet",
    [" \n1a", "aB'l", "中bB ", " \n/-", "'sS\u017f ", "1 23", "é\u0301 Aǅ", "\U0001f600\U0001f601 a"],
)
def test_masks_are_what_tiktoken_emits(pattern: str, alphabet: str) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    tokens = train((SAMPLE + alphabet * 3 + "😀😁😀 ééé").encode() * 2, 90)
    ranks = {data: rank for rank, data in enumerate(tokens)}
    tokenizer = tiktoken.Encoding("test", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    vocabulary = Vocabulary.from_tiktoken(tokenizer, size=len(tokens) + 1, eos_token_id=len(tokens))
    length = 5
    automaton = tokenfst.compile(
        regex(f"[{alphabet}]{{0,{length}}}".replace("-", "\\-")), vocabulary, tokenization="canonical"
    )
    texts = ("".join(parts) for n in range(length + 1) for parts in product(alphabet, repeat=n))
    sequences = {tuple(tokenizer.encode_ordinary(text)) for text in texts}
    assert check_masks(automaton, sequences) > 100


def test_blocked_ways_are_seen_before_they_are_taken() -> None:
    # "ab" is one token: after a, b never follows, though the language and the tokenizer both go on.
    tokens = [bytes([byte]) for byte in range(256)] + [b"ab", b"abc"]
    vocabulary = vocabulary_of(tokens, WHOLE)
    automaton = tokenfst.compile(regex("abd|a|abc(abc)*x"), vocabulary, tokenization="canonical")
    matcher = automaton.matcher()
    assert allowed(matcher) == {256, 257, ord("a")}
    assert matcher.accept_token(ord("a"))
    assert allowed(matcher) == {len(tokens)}
    assert not matcher.accept_token(ord("b"))


# --- Tekken ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def encode_tekken() -> Callable[[str], list[int]]:
    tekkenizer = pytest.importorskip("mistral_common.tokens.tokenizers.tekken")
    from importlib.resources import files

    path = files("mistral_common") / "data" / "tekken_240911.json"
    tokenizer = tekkenizer.Tekkenizer.from_file(str(path))
    return lambda text: list(tokenizer.encode(text, bos=False, eos=False))


TEXTS = (
    "Hello, world! It's 12:30.\n\n  Indented   text\twith tabs \r\n",
    "    \n   x\n\n\n  1   -",
    "中文ABCdef日本語テキスト Привет мир مرحبا",
    "don't WON'T I'll O'Neill camelCaseAndHTMLParser x1y2z3",
    "😀😃👨‍👩‍👧‍👦🇩🇪 é e\u0301 ﷺ 𝒳𝓎 \U00010400\U00010428",
    '{"a": [1, 2.50, -3e10, null], "b": "\\u00e9\\n"}//-->\n/* /// */',
    "a" * 300 + " " * 200 + "\n" * 50 + "=" * 100,
    "\u00a0\u2003 \u3000x\x0b\x0c\x85\x1c\x00\x7f",
)


def test_what_tekken_emits_is_accepted(tekken: Vocabulary, encode_tekken: Callable[[str], list[int]]) -> None:
    automaton = tokenfst.compile(regex("(?s:.*)"), tekken, tokenization="canonical")
    rng = random.Random(5)
    letters = "aZ中é1 \n\t'/-.😀ａǅʰ\u0301\r\u2028"
    texts = [*TEXTS, *("".join(rng.choices(letters, k=rng.randint(1, 12))) for _ in range(150))]
    matcher = automaton.matcher()
    for text in texts:
        matcher.reset()
        ids = encode_tekken(text)
        assert matcher.accept_tokens(ids), text
        assert matcher.is_accepting(), text


@pytest.mark.parametrize(
    "pattern",
    [
        r'"[^"\\]*"',
        r"[ \n]{0,8}[a-zA-Z0-9中文 ]{0,6}",
        r"(hello|help|helmet|held)( world| wide)*!?",
        r"[中A-Zb ']{0,9}",
        r'\{"name": "[a-z ]*", "age": [0-9]{1,3}, "tags": \[("[a-z]+"(, "[a-z]+")*)?\]\}',
    ],
)
def test_walks_are_what_tekken_emits(
    tekken: Vocabulary, encode_tekken: Callable[[str], list[int]], pattern: str
) -> None:
    walks(tekken, encode_tekken, pattern, steps=150)


@pytest.mark.soak
@pytest.mark.parametrize(
    "pattern", [r"(?s:.{0,12})", r"[ \n]{0,8}[a-zA-Z0-9中文 ]{0,6}", r'"[^"\\]*"', "[😀-😈é ]{0,6}"]
)
def test_many_walks_are_what_tekken_emits(
    tekken: Vocabulary, encode_tekken: Callable[[str], list[int]], pattern: str
) -> None:
    walks(tekken, encode_tekken, pattern, steps=20_000)


def walks(tekken: Vocabulary, encode_tekken: Callable[[str], list[int]], pattern: str, steps: int) -> None:
    """Random walks under the masks, none of which is ever refused or stuck."""
    rng = random.Random(11)
    (end,) = tekken.eos_token_ids
    matcher = tokenfst.compile(regex(pattern), tekken, tokenization="canonical").matcher()
    mask = allocate_token_bitmask(1, len(tekken))
    ended = 0
    for _ in range(steps):
        matcher.fill_next_token_bitmask(mask)
        choices = np.flatnonzero(np.unpackbits(mask.view(np.uint8).ravel(), bitorder="little"))
        assert len(choices), "a dead end"
        stop = end in choices and rng.random() < 0.3
        token = end if stop else int(choices[rng.randrange(len(choices))])
        assert matcher.accept_token(token)
        if not matcher.is_terminated() and matcher.num_tokens < 40:
            continue
        if matcher.is_terminated():
            ids = matcher.tokens[:-1]
            assert encode_tekken(tekken.decode(ids).decode()) == ids
            ended += 1
        matcher.reset()
    assert ended > steps // 100 or '"' in pattern


def test_python_and_tiktoken_agree_on_assigned_characters() -> None:
    tiktoken = pytest.importorskip("tiktoken")
    singles = {bytes([byte]): byte for byte in range(256)}
    everything = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    assigned = "".join(c for c in everything if unicodedata.category(c) != "Cn")
    for atom in (
        "\\p{Lu}",
        "\\p{Ll}",
        "\\p{Lt}",
        "\\p{Lm}",
        "\\p{Lo}",
        "\\p{M}",
        "\\p{N}",
        "\\s",
        "(?i:s)",
        "(?i:K)",
    ):
        tokenizer = tiktoken.Encoding("test", pat_str=atom, mergeable_ranks=singles, special_tokens={})
        # What the pattern does not match, tiktoken leaves out.
        found = bytes(tokenizer.encode_ordinary(assigned)).decode()
        kinds = split_pattern(atom).kind
        ours = int(kinds[ord(found[0])])
        assert found == "".join(c for c in assigned if kinds[ord(c)] == ours), atom


# --- refusals -------------------------------------------------------------------------------------------------------


def test_tekken_says_how_it_splits(tekken: Vocabulary, tmp_path: Path) -> None:
    assert tekken.split_pattern == TEKKEN
    assert pickle.loads(pickle.dumps(tekken)).split_pattern == TEKKEN
    small = Vocabulary([*SINGLE, b""], 256, split_pattern=WHOLE)
    write_token_file(small, tmp_path / "small.json")
    assert read_token_file(tmp_path / "small.json").split_pattern == WHOLE
    (tmp_path / "wrong.json").write_text('{"tokens": ["a", ""], "eos_token_id": 1, "split_pattern": 5}')
    with pytest.raises(VocabularyError, match="split_pattern must be a string"):
        read_token_file(tmp_path / "wrong.json")
    assert Vocabulary([*SINGLE, b""], 256, split_pattern="a") == Vocabulary([*SINGLE, b""], 256)


def test_rows_of_both_kinds_of_matchers(tekken: Vocabulary) -> None:
    language = regex("hello world")
    canonical = tokenfst.compile(language, tekken, tokenization="canonical").matcher()
    every = tokenfst.compile(language, tekken).matcher()
    rows = allocate_token_bitmask(2, len(tekken))
    tokenfst.fill_bitmasks([canonical, every], rows)
    hello = tekken.ids(b"hello")[0]
    assert tokens_of(rows[0], len(tekken)) == {hello} < tokens_of(rows[1], len(tekken))
    for wrong in (rows[:, :-1], rows.astype(np.int64), rows[:0]):
        with pytest.raises(MaskBufferError):
            canonical.fill_next_token_bitmask(wrong)


def test_the_logits_processor_takes_canonical_automata(tekken: Vocabulary) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    automaton = tokenfst.compile(regex("hello world"), tekken, tokenization="canonical")
    processor = tokenfst.ConstraintLogitsProcessor(automaton)
    ids = torch.tensor([[1, 5]])
    hello, world = tekken.ids(b"hello")[0], tekken.ids(b" world")[0]
    for token in (hello, world, *tekken.eos_token_ids):
        scores = processor(ids, torch.zeros(1, len(tekken)))
        assert torch.isfinite(scores).nonzero().tolist() == [[0, token]]
        ids = torch.cat([ids, torch.tensor([[token]])], dim=1)
    short = tokenfst.compile(regex("hello( world)*"), tekken, tokenization="canonical")
    processor = tokenfst.ConstraintLogitsProcessor(short, max_new_tokens=2)
    ids = torch.tensor([[1, 5]])
    for token in ([hello], [world, *tekken.eos_token_ids]):
        scores = processor(ids, torch.zeros(1, len(tekken)))
        assert sorted(torch.isfinite(scores).nonzero()[:, 1].tolist()) == sorted(token)
        ids = torch.cat([ids, torch.tensor([token[:1]])], dim=1)
    with pytest.raises(TokenLimitError, match="the least number from here is 1"):
        tokenfst.ConstraintLogitsProcessor(short, max_new_tokens=0)


def test_matcher_goes_back_and_forks(tekken: Vocabulary) -> None:
    automaton = tokenfst.compile(regex("hello world|hello there"), tekken, tokenization="canonical")
    matcher = automaton.matcher()
    hello = tekken.ids(b"hello")[0]
    assert matcher.forced_tokens() == [hello]
    assert matcher.accept_token(hello)
    assert allowed(matcher) == {tekken.ids(b" world")[0], tekken.ids(b" there")[0]}
    other = matcher.fork()
    assert other.accept_token(tekken.ids(b" world")[0])
    assert matcher.num_tokens == 1 and other.tokens == [hello, tekken.ids(b" world")[0]]
    assert other.is_accepting() and other.accept_token(tekken.eos_token_ids[0]) and other.is_terminated()
    with pytest.raises(TerminatedError):
        other.accept_token(hello)
    other.rollback(2)
    assert allowed(other) == allowed(matcher)
    assert matcher.validate_tokens([tekken.ids(b" w")[0]]) == 0
    assert not matcher.accept_tokens([tekken.ids(b" there")[0], hello]) and matcher.num_tokens == 1
    with pytest.raises(RollbackError):
        matcher.rollback(2)
    with pytest.raises(TokenIdError):
        matcher.accept_token(len(tekken))


@pytest.mark.parametrize(
    ("tokens", "pattern", "message"),
    [
        (SINGLE, None, "is not known"),
        (SINGLE[:-1], WHOLE, "single byte 0xff"),
        ([*SINGLE, b"a"], WHOLE, "several tokens of the same bytes"),
        ([*SINGLE, b"abc"], WHOLE, "made by no merges"),
        ([*SINGLE, b"bc", b"ab", b"cd", b"abcd"], WHOLE, "made by no merges"),
        (SINGLE, "a*", "matches the empty text"),
        (SINGLE, "(?=a)b", "a group of an unknown kind"),
        (SINGLE, "(?<=a)b", "a group of an unknown kind"),
        (SINGLE, r"\w+", "the escape"),
        (SINGLE, r"\p{Greek}+", "the property Greek"),
        (SINGLE, r"(ab)++", "possessive repetition"),
        (SINGLE, r"(?:|a)+(?:a|ab|b)", "a repetition of what may be empty"),
        (SINGLE, r"(?i:\p{Lu})", "a property where case is ignored"),
        (SINGLE, "a{\u0662}", "'{'"),
        (SINGLE, r"a(?!bc)", "a look-ahead for more than"),
        (SINGLE, r".+", "'.'"),
        (SINGLE, r"[a-z&&b]+", "an operation on classes"),
        (SINGLE, r"(a", r"no \)"),
        (SINGLE, r"a)", r"a \) too many"),
        (SINGLE, r"[a", "an end too early"),
        (SINGLE, r"a{3,2}", "such a count"),
        (SINGLE, r"(?i:é)", "case ignored beyond ASCII"),
    ],
)
def test_unknown_tokenizers_are_refused(tokens: list[bytes], pattern: str | None, message: str) -> None:
    with pytest.raises(TokenizationError, match=message):
        tokenfst.compile(regex("a"), vocabulary_of(tokens, pattern), tokenization="canonical")


def test_what_has_no_canonical_tokens_is_refused(tekken: Vocabulary) -> None:
    for language in (regex(rb"\xff"), regex("\u0378"), regex(rb"[\x80-\xbf]+")):
        with pytest.raises(EmptyLanguageError, match="canonical"):
            tokenfst.compile(language, tekken, tokenization="canonical")
    with pytest.raises(ConstraintError, match="needs a stack"):
        tokenfst.compile(tokenfst.gbnf('root ::= "a" root "b" | "c"'), tekken, tokenization="canonical")
    with pytest.raises(ValueError, match="tokenization"):
        tokenfst.compile(regex("a"), tekken, tokenization="greedy")  # type: ignore[call-overload]


def test_searches_have_a_budget(tekken: Vocabulary) -> None:
    with pytest.raises(BudgetExceeded):
        tokenfst.compile(
            regex("(abc){500}"), tekken, Budget(seconds=1e-9, states=100_000), tokenization="canonical"
        )
