"""n-gram models beside the definition of back-off; ARPA files that are at fault."""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path
from typing import Literal

import pytest

import tokenfst.fst as fst
from reference.transducers.random_arpa import arpa
from reference.transducers.weighted import ngram_weight, texts
from tokenfst import Budget, NGramModel, Vocabulary, WeightedLanguage, compile
from tokenfst.automata.weights.arpa import read_arpa
from tokenfst.errors import ArpaError, BudgetExceeded


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("order", [1, 2, 3])
def test_sequences_of_symbols(seed: int, order: int) -> None:
    text = arpa(["x", "y"], order, seed)
    model = NGramModel.from_arpa(text, unit="word")
    parsed = read_arpa(text)
    for data in texts(b"xyz", 4):
        symbols = tuple(data.decode())
        due = ngram_weight(order, parsed.log_probs, parsed.backoffs, symbols)
        assert model.log_weight(symbols) == pytest.approx(due)


@pytest.mark.parametrize("seed", range(6))
def test_characters_as_bytes(seed: int) -> None:
    # Characters that begin with the same byte: whether one is listed shows at its last.
    symbols = ["a", "é", "è", "<space>", "0xff"]
    spelled = {"a": b"a", "é": "é".encode(), "è": "è".encode(), "<space>": b" ", "0xff": b"\xff"}
    model = NGramModel.from_arpa(arpa(symbols, 3, seed), unit="character")
    language = model.to_weighted()
    assert language.is_deterministic
    draw = random.Random(seed)
    for _ in range(150):
        chosen = draw.choices(symbols, k=draw.randrange(5))
        data = b"".join(spelled[each] for each in chosen)
        assert language.log_weight(data) == pytest.approx(model.log_weight(chosen))
    for data in (b"b", b"\xc3", b"a\xc3", "ë".encode()):
        assert language.log_weight(data) == -math.inf


@pytest.mark.parametrize("seed", range(6))
def test_words_with_spaces_between_them(seed: int) -> None:
    symbols = ["a", "ab", "b", "abc"]
    model = NGramModel.from_arpa(arpa(symbols, 3, seed), unit="word")
    language = model.to_weighted()
    draw = random.Random(seed)
    for _ in range(150):
        chosen = draw.choices(symbols, k=draw.randrange(5))
        assert language.log_weight(" ".join(chosen)) == pytest.approx(model.log_weight(chosen))
    for text in (" ", "a ", " a", "a  b", "ac", "c"):
        assert language.log_weight(text) == -math.inf


def test_symbols_that_are_spaces_or_line_separators_beyond_ascii() -> None:
    """As character models of Chinese texts have them: U+3000 stood for nothing, and the lines were refused."""
    symbols = ["\u3000", "\xa0", "\u2028", "\x85", "\x1c", "a"]
    text = arpa(symbols, 2, 1)
    model = NGramModel.from_arpa(text.replace("\n", "\r\n").replace("\t", " \t "), unit="character")
    assert model.symbols == tuple(symbols)
    language = model.to_weighted()
    for chosen in itertools.product(symbols, repeat=2):
        assert language.log_weight("".join(chosen)) == pytest.approx(model.log_weight(chosen))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("unit", ["character", "word"])
def test_a_listed_probability_of_zero_is_not_backed_off(
    seed: int, unit: Literal["character", "word"]
) -> None:
    """Nor is one of a symbol after which no text can end."""
    symbols, between = (["é", "è", "a"], "") if unit == "character" else (["ab", "ac", "a"], " ")
    model = NGramModel.from_arpa(arpa(symbols, 3, seed, zeros=0.3), unit=unit)
    language = model.to_weighted()
    for length in range(5):
        for chosen in itertools.product(symbols, repeat=length):
            assert language.log_weight(between.join(chosen)) == pytest.approx(model.log_weight(chosen))


def proper() -> str:
    """A bigram model whose probabilities add up to one in each context."""
    return (
        "\\data\\\nngram 1=4\nngram 2=3\n\\1-grams:\n"
        f"-99 <s> {math.log10(0.4 / 0.5):.12f}\n{math.log10(0.5):.12f} a {math.log10(0.4 / 0.7):.12f}\n"
        f"{math.log10(0.3):.12f} b\n{math.log10(0.2):.12f} </s>\n\\2-grams:\n"
        f"{math.log10(0.6):.12f} <s> a\n{math.log10(0.6):.12f} a b\n"
        f"{math.log10(0.0 + 1e-12):.12f} b </s>\n\\end\\\n"
    )


def test_the_mass_of_a_model_that_is_a_distribution_is_one() -> None:
    text = proper().replace(f"{math.log10(1e-12):.12f} b </s>\n", "").replace("ngram 2=3", "ngram 2=2")
    language = NGramModel.from_arpa(text, unit="character").to_weighted()
    assert language.mass() == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("\\data\\", ""), "no .data. line"),
        (("\\end\\", ""), "before .end."),
        (("ngram 2=3", "ngram 2=4"), "promises 4 2-grams, and there are 3"),
        (("ngram 2=3", "ngram 3=3"), "has no count"),
        (("</s>\n\\2", "</q>\n\\2"), "no unigram </s>"),
        (("<s> a\n", "<s> a extra more\n"), "line 10: .* is no 2-gram"),
        (("<s> a\n", "q a\n"), "the context 'q'"),
        (("-99 <s>", "nan <s>"), "no logarithm"),
        (("-99 <s>", "0.5 <s>"), "no logarithm"),
        ((" a b\n", " <s> a\n"), "occurs twice"),
        ((" a b\n", " a z\n"), "the n-gram 'a z' predicts 'z', which is no unigram"),
        (
            ("ngram 2=3", "ngram 2=-3"),
            "line 3: 'ngram 2=-3' is no count of n-grams, which is written ngram 2=1000",
        ),
    ],
)
def test_files_that_are_at_fault(change: tuple[str, str], message: str) -> None:
    with pytest.raises(ArpaError, match=message):
        NGramModel.from_arpa(proper().replace(*change), unit="character")


def test_symbols_that_do_not_fit() -> None:
    text = proper()
    with pytest.raises(ValueError, match="unit"):
        NGramModel.from_arpa(text, unit="byte")  # type: ignore[arg-type]
    with pytest.raises(ArpaError, match="over token ids"):
        NGramModel.from_arpa(text, unit="token").to_weighted()
    with pytest.raises(ArpaError, match="'ab' is no character"):
        NGramModel.from_arpa(text.replace(" b", " ab"), unit="character").to_weighted()
    with pytest.raises(ArpaError, match="begins with the bytes"):
        swapped = text.replace(" a ", " 0xc3 ").replace(" a\n", " 0xc3\n").replace(" b", " é")
        NGramModel.from_arpa(swapped, unit="character").to_weighted()
    with pytest.raises(BudgetExceeded, match="n-gram model"):
        NGramModel.from_arpa(text, unit="character").to_weighted(Budget(states=2))


@pytest.mark.parametrize(
    "symbol", ["0x+a", "0x a", "0x0_", "0xag", "0x٠١", "0X0a", "0x0", "0x00a", "\ud800", ""]
)
def test_symbols_that_are_no_bytes(symbol: str) -> None:
    from tokenfst.automata.openfst.labels import symbol_bytes

    assert symbol_bytes(symbol) is None
    text = arpa(["a"], 1, 0)
    model = NGramModel.from_arpa(text, unit="character")
    with pytest.raises(ArpaError, match="no character"):
        model.spelling(symbol)
    assert (symbol_bytes("0x0A"), symbol_bytes("0xfF"), symbol_bytes("é")) == (b"\n", b"\xff", "é".encode())


def test_a_model_given_as_an_fst(tmp_path: Path) -> None:
    """Written to OpenFst's file, read back and fused: the same scores as those of the ARPA model."""
    model = NGramModel.from_arpa(arpa(["a", "b", "c"], 3, 4), unit="character").to_weighted()
    model.to_fst().write(str(tmp_path / "model.fst"))
    found = WeightedLanguage.from_fst(fst.read(str(tmp_path / "model.fst")))
    vocabulary = Vocabulary([b"a", b"b", b"ab", b"c", b""], 4)
    one, other = compile(model, vocabulary).matcher(), compile(found, vocabulary).matcher()
    for token in (0, 2, 3, 1, 1, 4):
        assert one.scores() == pytest.approx(other.scores(), abs=1e-5)
        assert one.accept_token(token)
        assert other.accept_token(token)
    assert one.log_weight == pytest.approx(other.log_weight)
