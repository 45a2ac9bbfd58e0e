"""The small language model of the demo, the docs and the experiments: `model, tokenizer, vocabulary = load()`.

A Llama of 2.36 million parameters that was trained on three kinds of text. small_model/README.md describes them, the
training and the prompts. The folder ``examples/small_model`` has the layout that transformers writes, so other tools
open it by its path; nothing is downloaded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from tokenfst import Vocabulary

FOLDER = Path(__file__).parent / "small_model"
END = "<|end|>"
SPLIT = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""GPT-2's way to cut texts into words, but digits one by one."""


class SmallModel(NamedTuple):
    """A causal model in float32 on the CPU; its tokenizer, which puts the end token before each text; and the
    vocabulary of tokenfst for it.
    """

    model: Any
    tokenizer: Any
    vocabulary: Vocabulary


def load(folder: Path = FOLDER) -> SmallModel:
    """The model, ready for ``generate``. The weights are float16 in the file; widening them to float32 is exact."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
    spelled = Vocabulary.from_huggingface(tokenizer)
    vocabulary = Vocabulary(
        spelled.tokens,
        spelled.eos_token_ids,
        spelled.special_tokens,
        split_pattern=SPLIT,  # ids are in the order of ranks, so canonical tokenizations are known too
        name="small model",
    )
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True)
    return SmallModel(model.eval(), tokenizer, vocabulary)
