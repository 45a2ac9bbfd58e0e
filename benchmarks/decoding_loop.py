"""Whole decodings by the small model of examples/: what a constraint costs a token, and what jump-forward saves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from libraries import World
from measure import Figure, figure, quiet

import tokenfst

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 3, "maxLength": 20},
        "kind": {"enum": ["fruit", "vegetable", "grain"]},
        "origin": {"enum": ["Italy", "France", "Spain", "Portugal"]},
        "ripe": {"type": "boolean"},
        "rating": {"enum": [1, 2, 3, 4, 5]},
    },
    "required": ["name", "kind", "origin", "ripe", "rating"],
    "additionalProperties": False,
}
PROMPT = "A plum as JSON: "
RUNS = 15
MOST = 96


def decoding(world: World) -> Iterator[Figure]:
    """Constrained against the same loop without a constraint, then with jump-forward."""
    import torch

    torch.set_num_threads(1)
    sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
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


def per_token(
    model: Any, prompts: list[list[int]], automaton: tokenfst.TokenAutomaton, what: str
) -> Iterator[Figure]:
    """The two loops take turns, so that both see the same neighbours on the machine."""
    found = tokenfst.generate(model, prompts, automaton, max_new_tokens=MOST, jump_forward=False)
    constrained = partial(
        tokenfst.generate, model, prompts, automaton, max_new_tokens=MOST, jump_forward=False
    )
    ours, free = take_turns(constrained, partial(unconstrained, model, prompts, found.calls))
    name = f"greedy decoding of {what}, {len(prompts)} in a batch, per token"
    note = f"{found.calls} calls of the model, the prompt's included; the first run of each is left out"
    yield figure(name, "constrained", [each / found.calls for each in ours], note=note)
    yield figure(
        name, "the same loop, no constraint", [each / found.calls for each in free], at_least=1 / 1.1
    )


def jumps(model: Any, prompt: list[int], automaton: tokenfst.TokenAutomaton) -> Iterator[Figure]:
    """A text by each way to treat what has no alternative."""
    ways: tuple[tuple[str, Literal["canonical"] | bool], ...] = (
        ("certain bytes appended, cut as the tokenizer does", "canonical"),
        ("tokens without an alternative appended", True),
        ("every token by the model", False),
    )
    calls = [
        partial(tokenfst.generate, model, [prompt], automaton, max_new_tokens=MOST, jump_forward=how)
        for _, how in ways
    ]
    for (name, _), run, seconds in zip(ways, calls, take_turns(*calls), strict=True):
        found = run()
        note = f"{found.calls} calls, {len(found.tokens[0])} tokens, {found.replaced} cut anew: {found.texts[0]!r}"
        yield figure("an object of 5 properties, whole text", name, seconds, note=note)


def take_turns(*functions: Callable[[], object]) -> list[list[float]]:
    """Seconds of each function, the functions one after the other in every round; one round first that is not timed."""
    seconds: list[list[float]] = [[] for _ in functions]
    with quiet():
        for run in range(-1, RUNS):
            for function, times in zip(functions, seconds, strict=True):
                begin = perf_counter()
                function()
                if run >= 0:
                    times.append(perf_counter() - begin)
    return seconds


def unconstrained(model: Any, prompts: list[list[int]], calls: int) -> list[list[int]]:
    """``generate`` without all that the constraint needs: the best token each time."""
    import torch

    from tokenfst.decoding.language_model import as_language_model

    session = as_language_model(model).start(prompts)
    rows = torch.arange(len(prompts))
    chosen = []
    for _ in range(calls - 1):
        tokens = session.logits.argmax(dim=-1)
        chosen.append(tokens.tolist())
        session.extend(rows, tokens)
    return chosen
