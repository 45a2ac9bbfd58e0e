"""What tests of serving engines share: a tiny model that they can load, and a server that is started and stopped."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
_JSON = '{"name": "Ada", "age": 36, "active": true, "tags": ["red", "green", 1, 2.5, null, false]}\n'


def tiny_byte_pairs() -> Any:
    """A byte-level BPE of 600 tokens, a ``tokenizers.Tokenizer``. Its text is one that does not change: with other
    tokens a model writes other texts, and what fits into a number of tokens is another question.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = (
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoders.ByteLevel(),
    )
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    made.train_from_iterator([(ROOT / "LICENSE").read_text(), 20 * _JSON], trainer)
    return made


def tiny_tokenizer(special: Sequence[str] = ()) -> Any:
    """The same as a fast tokenizer of transformers, with a chat template; ``special``: tokens more."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tiny_byte_pairs(), bos_token="<s>", eos_token="</s>")
    tokenizer.add_tokens([*special], special_tokens=True)
    tokenizer.chat_template = "{% for m in messages %}{{m['role']}}: {{m['content']}}\n{% endfor %}assistant:"
    return tokenizer


def tiny_model(folder: Path, special: Sequence[str] = (), *, width: int = 64, layers: int = 2) -> Path:
    """A random Llama and its tokenizer. Head sizes are what CPU engines want; ``width`` is a multiple of 64."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = tiny_tokenizer(special)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=512,
        bos_token_id=0,
        eos_token_id=1,
        tie_word_embeddings=False,
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@contextlib.contextmanager
def server(command: list[str], log: Path, seconds: float = 900, **environment: str) -> Iterator[str]:
    """The address of a server that answers ``/health``; ``{port}`` in the command is its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with log.open("w") as out:
        process = subprocess.Popen(
            [each.replace("{port}", str(port)) for each in command],
            stdout=out,
            stderr=subprocess.STDOUT,
            env=os.environ | environment,
        )
        try:
            url, end = f"http://127.0.0.1:{port}", time.monotonic() + seconds
            while not _answers(f"{url}/health"):
                assert process.poll() is None and time.monotonic() < end, log.read_text()[-4000:]
                time.sleep(1)
            yield url
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def script(name: str) -> str:
    """A command of the environment that runs the tests."""
    return str(Path(sys.executable).parent / name)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
