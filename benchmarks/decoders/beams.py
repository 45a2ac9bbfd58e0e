"""Automata-guided beam search beside transformers' own beam search: the time of a step, with 4 to 128 beams.

The model is small and has random weights, so most of the time is that of the search. Its vocabulary is the first 8,192
tokens of Tekken. No search may end before 24 steps. The runs of the searches take turns. A figure is the processor time
of a whole search, the prompt included, divided by the number of calls of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import process_time
from typing import Any

import tokenfst
from benchmarks.measuring.libraries import World, version
from benchmarks.measuring.measure import OURS, Figure, figure, quiet
from tokenfst import Vocabulary

BEAMS = (4, 8, 16, 32, 64, 128)
STEPS, RUNS = 24, 5
WIDTH, END = 8_192, 2
PATTERN = ".*cat.*dog.*run.*"
OVERHEAD = 1.15
"""The target for the time of a step, as a multiple of transformers' time."""


def beams(world: World) -> Iterator[Figure]:
    """The search with its bonus for tokens towards acceptance, the search without it, and transformers' unconstrained
    search.
    """
    if version("torch") is None or version("transformers") is None:
        return
    import torch

    torch.set_num_threads(1)
    vocabulary = Vocabulary(list(world.vocabulary.tokens[:WIDTH]), eos_token_id=END)
    automaton = tokenfst.compile(tokenfst.regex(PATTERN), vocabulary)
    model, calls = _model(torch), [0]
    model.register_forward_pre_hook(lambda *_: calls.__setitem__(0, calls[0] + 1))
    for k in BEAMS:
        searches = _searches(torch, model, automaton, k)
        seconds: dict[str, list[float]] = {name: [] for name in searches}
        with quiet():
            for run in range(-1, RUNS):
                for name, search in searches.items():
                    calls[0], begin = 0, process_time()
                    search()
                    each = (process_time() - begin) / calls[0]
                    assert calls[0] == STEPS, f"{name} stopped after {calls[0]} steps"
                    if run >= 0:
                        seconds[name].append(each)
        for name, sample in seconds.items():
            more = {"at_least": 1 / OVERHEAD} if name == "transformers" else {}
            yield figure(f"{k} beams", name, sample, **more)


def _searches(torch: Any, model: Any, automaton: Any, k: int) -> dict[str, Callable[[], object]]:
    prompt = [5, 6, 7, 8]
    options = {"num_beams": k, "max_new_tokens": STEPS, "length_penalty": 9.0}
    return {
        OURS: lambda: tokenfst.automata_beam_search(model, [prompt], automaton, **options),
        f"{OURS}, nothing pushed": lambda: tokenfst.automata_beam_search(
            model, [prompt], automaton, alpha_min=0.0, gamma=float("inf"), **options
        ),
        "transformers": lambda: model.generate(
            torch.tensor([prompt]),
            num_beams=k,
            max_new_tokens=STEPS,
            do_sample=False,
            early_stopping="never",
            suppress_tokens=[END],
        ),
    }


def _model(torch: Any) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=WIDTH,
        hidden_size=192,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=6,
        max_position_embeddings=128,
        eos_token_id=END,
        pad_token_id=0,
        bos_token_id=1,
    )
    return LlamaForCausalLM(config).eval()
