"""Train the small model of the demo, the docs and the experiments: `python examples/train_small_model.py`.

Trains a byte-level byte-pair encoding of 3,071 tokens and an end token, and a Llama of 2.36 million parameters, on
the texts of corpus.py, on one CPU core. Writes into ``examples/small_model``: the tokenizer, the weights (rounded to
float16, as safetensors), the course of the losses, and the versions of the libraries. Takes half an hour.

Documents are joined by end tokens and cut into rows of 256 tokens; ``SHARES`` says how the sources are mixed. The
learning rate rises and falls linearly. Every 200 steps the losses on texts outside of the training data are measured;
the weights with the least sum of these losses are kept. The held-out half of CommonGen takes no part in this choice.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import safetensors
import tokenizers
import torch
import transformers
from corpus import PACKAGES, commongen, documentation, json_document, sentence_documents
from safetensors.torch import load_file, save_file
from small_model import END, FOLDER, SPLIT
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SEED = 2026
TOKENS = 3072
SHARES = {"documentation": 0.4, "json": 0.25, "commongen": 0.35}
REWORDED = 0.6
ROW, ROWS = 256, 16
PEAK, WARM_UP, DECAY, DROPOUT = 3e-3, 100, 0.1, 0.1
SHAPE = {
    "hidden_size": 192,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "max_position_embeddings": 2048,
}


@dataclass
class Texts:
    """Texts for training, and texts on which checkpoints are compared."""

    documentation: list[str]
    choose: dict[str, list[str]]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--steps", type=int, default=1450, help="batches of 4,096 tokens")
    arguments.add_argument(
        "--resume", type=int, default=0, metavar="STEP", help="continue from the weights of this step"
    )
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--folder", type=Path, default=FOLDER)
    options = arguments.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(SEED)
    options.folder.mkdir(exist_ok=True)
    begin = perf_counter()

    texts = gather(random.Random(SEED))
    tokenizer = train_tokenizer(texts, random.Random(SEED))
    end = tokenizer.token_to_id(END)
    save_tokenizer(tokenizer, options.folder)
    choose = {name: rows_of(stream(tokenizer, end, documents)) for name, documents in texts.choose.items()}
    model = LlamaForCausalLM(
        LlamaConfig(
            **SHAPE,
            vocab_size=TOKENS,
            bos_token_id=end,
            eos_token_id=end,
            pad_token_id=end,
            tie_word_embeddings=True,
        )
    )
    for layer in model.model.layers:
        for part in (layer.self_attn.o_proj, layer.mlp.down_proj):
            part.register_forward_hook(lambda part, _, out: torch.dropout(out, DROPOUT, part.training))
    print(f"{sum(weight.numel() for weight in model.parameters()):,} parameters", flush=True)
    earlier = (
        earlier_run(model, options.folder)
        if options.resume
        else {"commands": [], "history": [], "seconds": 0}
    )
    record: dict[str, Any] = {
        "commands": [
            *earlier["commands"],
            f"python examples/{Path(sys.argv[0]).name} {' '.join(sys.argv[1:])}".strip(),
        ],
        "steps": options.steps,
        "tokens a step": ROW * ROWS,
        "seed": SEED,
        "shares": SHARES,
        "python": platform.python_version(),
        "versions": {
            item.__name__: item.__version__ for item in (torch, transformers, tokenizers, safetensors)
        },
        "packages read": packages_read(),
    }
    history = [entry for entry in earlier["history"] if entry["step"] <= options.resume]
    for entry in train(model, batches(tokenizer, end, texts, options.resume), choose, options):
        if all(total(entry) <= total(old) for old in history):
            save(model, options.folder)
        history.append(entry)
        print(json.dumps(entry), f"{perf_counter() - begin:.0f} s", flush=True)
        record |= {"seconds": round(earlier["seconds"] + perf_counter() - begin), "history": history}
        (options.folder / "training.json").write_text(json.dumps(record, indent=1) + "\n")
    draw_losses(history, options.folder / "loss.png")


def total(entry: dict[str, float]) -> float:
    """The sum of the losses on each source's texts outside of training; the checkpoint with the least sum is kept."""
    return sum(entry[kind] for kind in SHARES)


def earlier_run(model: Any, folder: Path) -> Any:
    """Put the weights of an earlier run into the model, and return the record of that run."""
    model.load_state_dict(load_file(folder / "model.safetensors"), strict=False)
    model.tie_weights()
    return json.loads((folder / "training.json").read_text())


def gather(draw: random.Random) -> Texts:
    """All texts; every fiftieth text of the documentation is kept for the choice between checkpoints."""
    texts = documentation()
    draw.shuffle(texts)
    sentences = short_sentences("choose")
    choose = {
        "documentation": texts[::50],
        "json": [json_document(draw, sentences) for _ in range(300)],
        "commongen": sentence_documents(commongen("choose"), draw),
    }
    return Texts([text for index, text in enumerate(texts) if index % 50], choose)


def short_sentences(part: Any) -> list[str]:
    """Sentences for messages and notes in JSON."""
    return [text for item in commongen(part) for text in item.sentences if len(text) < 60]


def train_tokenizer(texts: Texts, draw: random.Random) -> Tokenizer:
    """A byte-level byte-pair encoding whose ids are in the order of their ranks; the end token comes last."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    sentences = short_sentences("train")
    told = [text for _ in range(4) for text in sentence_documents(commongen("train"), draw)]
    made = [json_document(draw, sentences) for _ in range(4000)]
    trainer = trainers.BpeTrainer(
        vocab_size=TOKENS - 1,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[],
        show_progress=False,
    )
    tokenizer.train_from_iterator([*texts.documentation[::4], *told, *made], trainer)
    tokenizer.add_special_tokens([END])
    if tokenizer.get_vocab_size() != TOKENS:
        raise SystemExit(f"{tokenizer.get_vocab_size()} tokens, not {TOKENS}")
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Write the tokenizer as transformers reads it. It puts the end token before each text, as in training."""
    saved = Tokenizer.from_str(tokenizer.to_str())
    saved.post_processor = processors.TemplateProcessing(
        single=f"{END} $0", special_tokens=[(END, saved.token_to_id(END))]
    )
    names = {"bos_token": END, "eos_token": END, "pad_token": END}
    PreTrainedTokenizerFast(
        tokenizer_object=saved, padding_side="left", model_max_length=2048, **names
    ).save_pretrained(folder)


def stream(tokenizer: Tokenizer, end: int, documents: list[str]) -> list[int]:
    """An end token before each document, and one after the last."""
    encoded = tokenizer.encode_batch_fast(documents, add_special_tokens=False)
    return [token for item in encoded for token in (end, *item.ids)] + [end]


def rows_of(tokens: list[int]) -> torch.Tensor:
    """Rows of ``ROW + 1`` tokens, so that each predicts ``ROW``; a last row that is not full is left out."""
    count = (len(tokens) - 1) // ROW
    return torch.tensor(np.array([tokens[index * ROW : (index + 1) * ROW + 1] for index in range(count)]))


def batches(tokenizer: Tokenizer, end: int, texts: Texts, first: int) -> Iterator[torch.Tensor]:
    """Endless batches of shape ``(ROWS, ROW + 1)``, whose rows come from the sources by ``SHARES``. ``first``, the
    number of steps before, changes the random choices.
    """
    draw = random.Random(SEED + 1 + first)
    train, sentences = commongen("train"), short_sentences("train")

    def told(kind: str) -> list[str]:
        if kind == "json":
            return [json_document(draw, sentences) for _ in range(1000)]
        documents = (
            sentence_documents(train, draw, REWORDED) if kind == "commongen" else [*texts.documentation]
        )
        draw.shuffle(documents)
        return documents

    def rows(kind: str) -> Iterator[torch.Tensor]:
        while True:
            found = rows_of(stream(tokenizer, end, told(kind)))
            yield from found[torch.tensor(draw.sample(range(len(found)), len(found)))]

    sources = {kind: rows(kind) for kind in SHARES}
    owed = dict.fromkeys(SHARES, 0.0)
    while True:
        batch = []
        while len(batch) < ROWS:
            owed = {kind: owed[kind] + share for kind, share in SHARES.items()}
            kind = max(owed, key=lambda kind: owed[kind])
            owed[kind] -= 1
            batch.append(next(sources[kind]))
        yield torch.stack(batch)


def train(
    model: Any, source: Iterator[torch.Tensor], choose: dict[str, torch.Tensor], options: Any
) -> Iterator[dict[str, float]]:
    """Train by Adam with decoupled weight decay. Yields the losses after every 200 steps, and after the last."""
    matrices = [weight for weight in model.parameters() if weight.ndim > 1]
    vectors = [weight for weight in model.parameters() if weight.ndim == 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}],
        lr=PEAK,
        betas=(0.9, 0.95),
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda done: min((done + 1) / WARM_UP, 1 - (options.resume + done) / (options.steps + 1)),
    )
    losses: list[float] = []
    for step in range(options.resume + 1, options.steps + 1):
        losses.append(batch_loss(model.train(), next(source), backward=True))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 20 == 0:
            print(f"{step:5} {np.mean(losses[-20:]):.3f}", flush=True)
        if step % 200 == 0 or step == options.steps:
            entry = {"step": step, "train": round(float(np.mean(losses)), 4)}
            yield entry | {name: round(mean_loss(model.eval(), rows), 4) for name, rows in choose.items()}
            losses.clear()


def batch_loss(model: Any, rows: torch.Tensor, *, backward: bool = False) -> float:
    """Mean loss of the next token in nats."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(input_ids=rows[:, :-1], use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), rows[:, 1:].flatten())
    if backward:
        loss.backward()
    return float(loss.detach())


@torch.no_grad()
def mean_loss(model: Any, rows: torch.Tensor) -> float:
    return float(np.mean([batch_loss(model, row[None]) for row in rows]))


def save(model: Any, folder: Path) -> None:
    """Write the weights as float16 (the head is the embedding, so it is written once), and the configuration."""
    weights = {
        name: weight.detach().to(torch.float16).contiguous()
        for name, weight in model.state_dict().items()
        if name != "lm_head.weight"
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    model.config.save_pretrained(folder)


def packages_read() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in PACKAGES}


def draw_losses(history: list[dict[str, float]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name in history[0]:
        if name != "step":
            steps, losses = [entry["step"] for entry in history], [entry[name] for entry in history]
            label = "learned from (mean of 200 steps)" if name == "train" else f"{name}, not learned from"
            axes.plot(steps, losses, marker=".", linestyle="--" if name == "train" else "-", label=label)
    axes.set(xlabel=f"steps of {ROW * ROWS:,} tokens", ylabel="loss (nats a token)", ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
