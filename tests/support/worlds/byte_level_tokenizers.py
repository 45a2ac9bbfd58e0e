"""Hugging Face tokenizers of byte-level BPE that are trained here, and texts for them."""

from __future__ import annotations

import json
import random
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from tokenfst import Vocabulary
from tokenfst.tokenizers.adapters.huggingface import from_huggingface
from tokenfst.tokenizers.vocabulary.encoding import byte_level_alphabet

LLAMA = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
SAMPLE = (
    "the cat's mat  the  hat\n\n the END\tof   it 1234 56 /a/b \n  中文中 ABc I'VE 中B é e\u0301 --- \n/ "
    "don't\u00a0x "
)
LETTERS = "abce 'ts\n\t1/中é日\u0301\u00a0🙂A\x01"
CHARACTERS = {byte: character for character, byte in byte_level_alphabet().items()}
END = "<|end|>"


def spelled(data: bytes) -> str:
    return "".join(CHARACTERS[byte] for byte in data)


def split(pattern: str | None) -> Any:
    """A pre-tokenizer by a pattern; GPT-2's without one."""
    if pattern is None:
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def trained(pattern: str | None, text: str, size: int) -> Tokenizer:
    """A tokenizer of the library's own trainer, with its special token first."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = split(pattern), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([text], trainer)
    return tokenizer


def listing(tokens: list[bytes], merges: list[tuple[bytes, bytes]], ignore_merges: bool) -> Tokenizer:
    """A tokenizer of one piece for a text, with these tokens and merges."""
    ids = {spelled(data): token for token, data in enumerate(tokens)}
    pairs = [(spelled(first), spelled(second)) for first, second in merges]
    tokenizer = Tokenizer(models.BPE(ids, pairs, ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer, tokenizer.decoder = split(r"[\s\S]+"), decoders.ByteLevel()
    tokenizer.add_special_tokens([END])
    return tokenizer


def vocabulary_of(tokenizer: Tokenizer) -> Vocabulary:
    end = tokenizer.token_to_id(END)
    assert end is not None
    return from_huggingface(tokenizer, eos_token_id=end)


def texts(seed: int, count: int, sample: str = SAMPLE) -> list[str]:
    rng = random.Random(seed)
    found = [
        sample[(at := rng.randrange(len(sample))) : at + rng.randrange(1, 40)] for _ in range(count // 2)
    ]
    return found + ["".join(rng.choices(LETTERS, k=rng.randrange(1, 12))) for _ in range(count - len(found))]


ADDED = {"special": False, "normalized": False, "single_word": False, "lstrip": False, "rstrip": False}


def specification() -> dict[str, Any]:
    """The tokenizer.json of a tokenizer that splits at white space."""
    document: dict[str, Any] = json.loads(trained(r"\s+|\S+", SAMPLE * 3, 280).to_str())
    return document


def damaged(kind: str) -> dict[str, Any]:
    """A tokenizer.json whose merges are not those by the tokens' ids."""
    document = specification()
    model = document["model"]
    merges: list[Any] = model["merges"]
    if kind == "order":
        merges[0], merges[-1] = merges[-1], merges[0]
    elif kind == "missing":
        del merges[-1]
    elif kind == "twice":
        merges.append(merges[0])
    elif kind == "unknown":
        merges.append(["\u0100", "zz"])
    return document
