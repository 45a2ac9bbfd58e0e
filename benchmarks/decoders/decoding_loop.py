"""Whole decodings by the small model of examples/: the cost of a constraint for each token, and what jump-forward and
speculation save.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, Literal

import tokenfst
from benchmarks.measuring.libraries import World
from benchmarks.measuring.measure import Figure, figure, quiet
from tokenfst.tokenizers.segmentation.tokenizer import byte_pair_tokenizer

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Z][a-z]{2,11}( [a-z]{3,12})?$"},
        "kind": {"enum": ["fruit", "vegetable", "grain"]},
        "origin": {"enum": ["Italy", "France", "Spain", "Portugal"]},
        "ripe": {"type": "boolean"},
        "season": {"enum": ["spring", "summer", "autumn", "winter"]},
    },
    "required": ["name", "kind", "origin", "ripe", "season"],
    "additionalProperties": False,
}
PROMPT = "A plum as JSON: "
RUNS = 15
MOST = 96
DRAWN = 40
WORDS = 1500
WAYS: tuple[Literal["canonical"] | bool, ...] = (False, True, "canonical")
"""Values of ``jump_forward``."""


def decoding(world: World) -> Iterator[Figure]:
    """The loop with a constraint and without one, then jump-forward, speculation and the probabilities of labels."""
    import torch

    torch.set_num_threads(1)
    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    from small_model import load

    loaded = load()
    prompt = list(loaded.tokenizer(PROMPT).input_ids)
    object_of_five = tokenfst.json_schema(SCHEMA, whitespace="compact") & tokenfst.regex(r"[^\\]*")
    for what, constraint in (
        ("an object of 5 properties", object_of_five),
        ("a string of any characters", tokenfst.regex(r'"[^"\\]{60,400}"')),
    ):
        automaton = tokenfst.compile(constraint, loaded.vocabulary)
        for rows in (1, 8):
            yield from per_token(loaded.model, [prompt] * rows, automaton, what)
    automaton = tokenfst.compile(object_of_five, loaded.vocabulary)
    yield from jumps(loaded.model, prompt, automaton)
    yield from drawn(loaded.model, prompt, automaton)
    three = tokenfst.json_schema(
        {"type": "array", "items": SCHEMA, "minItems": 3, "maxItems": 3}, whitespace="compact"
    ) & tokenfst.regex(r"[^\\]*")
    yield from speculation(loaded.model, prompt, tokenfst.compile(three, loaded.vocabulary))
    yield from labels(loaded.model, prompt, loaded.vocabulary)


def per_token(
    model: Any, prompts: list[list[int]], automaton: tokenfst.TokenAutomaton, what: str
) -> Iterator[Figure]:
    """The time for a token with and without the constraint. The two loops take turns, so that other work on the
    computer affects both alike.
    """
    found = tokenfst.generate(model, prompts, automaton, max_new_tokens=MOST, jump_forward=False)
    constrained = partial(
        tokenfst.generate, model, prompts, automaton, max_new_tokens=MOST, jump_forward=False
    )
    free_of_it = partial(unconstrained, model, prompts, found.calls)
    ours, free = take_turns(constrained, free_of_it)
    name = f"{what}, rows: {len(prompts)}"
    note = f"{found.calls} calls of the model, the prompt's included; the first run of each is left out"
    yield figure(name, "constrained", [each / found.calls for each in ours], note=note)
    yield figure(
        name, "the same loop, no constraint", [each / found.calls for each in free], at_least=1 / 1.1
    )


def jumps(model: Any, prompt: list[int], automaton: tokenfst.TokenAutomaton) -> Iterator[Figure]:
    """One text for each value of ``jump_forward``: its time, its calls of the model, and its tokens."""
    calls = [
        partial(tokenfst.generate, model, [prompt], automaton, max_new_tokens=MOST, jump_forward=how)
        for how in WAYS
    ]
    for how, run, seconds in zip(WAYS, calls, take_turns(*calls), strict=True):
        found = run()
        name = f"one object, jump_forward={how!r}"
        yield figure(name, "time", seconds, note=f"{found.replaced} cut anew: {found.texts[0]!r}")
        yield Figure(name, "calls of the model", found.calls, unit="count")
        yield Figure(name, "tokens", len(found.tokens[0]), unit="count")


def drawn(model: Any, prompt: list[int], automaton: tokenfst.TokenAutomaton) -> Iterator[Figure]:
    """Many texts drawn in one batch, for each value of ``jump_forward``; counts those whose tokens are the
    tokenizer's.
    """
    import torch

    encode = byte_pair_tokenizer(automaton.vocabulary).encode
    ends = automaton.vocabulary.eos_token_ids
    for how in WAYS:
        found = tokenfst.generate(
            model,
            [prompt] * DRAWN,
            automaton,
            max_new_tokens=MOST,
            do_sample=True,
            jump_forward=how,
            generator=torch.Generator().manual_seed(0),
        )
        own = sum(
            [token for token in tokens if token not in ends] == encode(text)
            for tokens, text in zip(found.tokens, found.texts, strict=True)
        )
        name = f"{DRAWN} drawn in a batch, jump_forward={how!r}"
        yield Figure(name, "calls of the model", found.calls, unit="count")
        yield Figure(name, "tokens", sum(map(len, found.tokens)), unit="count")
        yield Figure(name, "texts cut as the tokenizer does", own, unit="count")


def speculation(model: Any, prompt: list[int], automaton: tokenfst.TokenAutomaton) -> Iterator[Figure]:
    """Speculation with drafts copied from the prompt and the text so far, beside the plain loop."""
    most = 3 * MOST
    draft = tokenfst.PromptLookup(ngram=2, length=8)
    ours = partial(tokenfst.speculative_generate, model, draft, prompt, automaton, max_new_tokens=most)
    plain = partial(tokenfst.generate, model, [prompt], automaton, max_new_tokens=most)
    fast, slow = take_turns(ours, plain, runs=min(RUNS, 5))
    found, same = ours(), plain()
    what = "an array of 3 such objects, whole text"
    assert same[0].tokens == found.tokens, "speculation wrote another text"
    for name, seconds, calls in (
        ("`speculative_generate`, `PromptLookup(ngram=2, length=8)`", fast, found.target_calls),
        ("`generate`, forced tokens appended", slow, same.calls),
    ):
        yield figure(f"{what}: {name}", "time", seconds)
        yield Figure(f"{what}: {name}", "calls of the model", calls, unit="count")
        yield Figure(f"{what}: {name}", "tokens", len(found.tokens), unit="count")


def labels(model: Any, prompt: list[int], vocabulary: tokenfst.Vocabulary) -> Iterator[Figure]:
    """The probabilities of a set of labels: by their trie in one pass, or with a row for each label."""
    import torch

    rng = random.Random(0)
    syllables = ["ka", "lo", "mi", "ner", "tas", "po", "ri", "ven"]
    words = ["".join(rng.choices(syllables, k=rng.randint(2, 3))) for _ in range(WORDS)]
    names = sorted({" ".join(words[place : place + 1 + place // 3 % 3]) for place in range(0, WORDS, 3)})
    encode = byte_pair_tokenizer(vocabulary).encode
    sequences = [encode(name.encode()) for name in names]

    def row_each() -> object:
        rows = [prompt + sequence for sequence in sequences]
        longest = max(map(len, rows))
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
        with torch.no_grad():
            return model(ids).logits.log_softmax(-1)

    trie, rows = take_turns(
        partial(
            tokenfst.label_probabilities, model, [prompt], names, vocabulary, encode=dict_of(names, sequences)
        ),
        row_each,
        runs=min(RUNS, 5),
    )
    what = f"{len(names)} labels of {sum(map(len, sequences)):,} tokens"
    yield figure(what, "label_probabilities", trie)
    yield figure(what, "a row each, scores only", rows, at_least=1)


def dict_of(names: list[str], sequences: list[list[int]]) -> Callable[[bytes], list[int]]:
    """A function that looks tokens up, in place of the tokenizer, so that the tokenizer's time is not measured."""
    return dict(zip([name.encode() for name in names], sequences, strict=True)).__getitem__


def take_turns(*functions: Callable[[], object], runs: int = RUNS) -> list[list[float]]:
    """The seconds of processor time of each function, one list for each. In every round the functions run one after the
    other; the first round is not timed. Processor time is right here, because the functions never wait, and other work
    on the computer changes the clock more than a constraint does.
    """
    seconds: list[list[float]] = [[] for _ in functions]
    with quiet():
        for run in range(-1, runs):
            for function, times in zip(functions, seconds, strict=True):
                begin = process_time()
                function()
                if run >= 0:
                    times.append(process_time() - begin)
    return seconds


def unconstrained(model: Any, prompts: list[list[int]], calls: int) -> list[list[int]]:
    """The loop of ``generate`` without a constraint; each step takes the token with the largest logit."""
    import torch

    from tokenfst.decoding.models.language_model import as_language_model

    session = as_language_model(model).start(prompts)
    rows = torch.arange(len(prompts))
    chosen = []
    for _ in range(calls - 1):
        tokens = session.logits.argmax(dim=-1)
        chosen.append(tokens.tolist())
        session.extend(rows, tokens)
    return chosen
