"""JSON calls: a tool call for a request in English, drawn by particles within a limit of tokens.

The prompts (`request: Buy 3 of the lamp.` and `call:`) ask the small model for a call of one of sixteen tools, each
with a schema of its arguments. Sequential Monte Carlo draws k particles for each request. Three proposals are
compared:

- local masks (LCD), which do not know how many tokens are left;
- masks of what can still be completed within the tokens left (GCD);
- the look-ahead of a hidden Markov model, which is distilled from the model and multiplied with the automaton
  (P-GCD).

In the end one particle is drawn by weight. A fourth decoder is the model without a constraint. There are two kinds of
requests: those whose call fits into the limit of tokens, and requests as they come, about half of whose calls do not
fit. A text is *satisfied* if Python's ``json`` reads it and it has the arguments of its tool; it is *right* if it
equals the call from which the request was made. Writes docs/experiments/json-calls.md and .png.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from typing import Any

import torch
from compared import timed
from corpus import TOOLS, commongen, tool_call
from experiments import Experiment, table
from small_model import SmallModel, load

from tokenfst import Language, TokenAutomaton, compile, json_schema, regex
from tokenfst.decoding.particles.hmm import Hmm
from tokenfst.decoding.particles.hmm_product import HmmProduct
from tokenfst.decoding.particles.hmm_training import distil_hmm, draw_samples
from tokenfst.decoding.particles.smc import Particles, smc

TOKENS = 28
PARTICLES = (4, 16)
INTEGERS = frozenset({"days", "minutes", "amount", "count", "percent", "degrees"})
ARGUMENTS = {
    name: [tuple(re.findall(r"{(\w+)}", request)) for request in requests] for name, requests in TOOLS.items()
}


def main() -> None:
    run = Experiment.start("json-calls", __doc__ or "")
    loaded = load()
    automaton = compile(constraint(), loaded.vocabulary).expand()
    run.note(f"{automaton.stats().states} states")
    products, learned = {}, []
    for size in run.pick((4,), (64,), (64, 256, 1024)):
        hmm, seconds = timed(lambda: distilled(loaded, size, run.pick(1, 4, 16)))  # noqa: B023  # called at once
        products[size], building = timed(lambda: HmmProduct(hmm, automaton, TOKENS))  # noqa: B023  # called at once
        learned.append(f"H={size}: {seconds:.0f} s and {building:.1f} s")
        run.note(learned[-1])

    results = {}
    for kind, fitting in (("calls that fit", True), ("calls of any length", False)):
        requests = asked(loaded, run.pick(3, 80, 200), 1, fitting)
        results[kind] = compared(run, loaded, automaton, products, requests)
    settings = (
        f"{len(requests)} requests, at most {TOKENS} tokens, all requests in one batch. *Particles*: those that "
        "satisfy the constraint; *satisfied*, *tool*, *right*: of the ones drawn in the end; *ms*: processor time "
        "for a token of a particle; *slowdown*: against sampling as many texts without a constraint. For P-GCD the "
        f"hidden Markov model was distilled, and its product made, before ({'; '.join(learned)})."
    )
    heading = ("proposal", "k", "particles %", "satisfied %", "tool %", "right %", "ms", "slowdown")
    run.write(
        settings,
        [
            "Requests whose call fits into the tokens:",
            table(heading, results["calls that fit"]),
            "Requests as they come; about half of the calls need more tokens, and cannot be right:",
            table(heading, results["calls of any length"]),
        ],
        lambda axes: plot(axes, results),
    )


def compared(
    run: Experiment,
    loaded: SmallModel,
    automaton: TokenAutomaton,
    products: dict[int, HmmProduct],
    requests: Sequence[tuple[str, str]],
) -> list[tuple[Any, ...]]:
    """A row of the table for each proposal and number of particles."""
    prompts = [loaded.tokenizer(prompt).input_ids for prompt, _ in requests]
    calls = [json.loads(call) for _, call in requests]
    rows: list[tuple[Any, ...]] = []
    for count in PARTICLES:
        free, seconds = timed(lambda: unconstrained(loaded, prompts, count))  # noqa: B023  # called at once
        base = 1e3 * seconds / sum(len(tokens) for group in free for tokens in group)
        every = whole(loaded, [tokens for group in free for tokens in group])
        rows.append(
            ("no constraint", count, every, *judged(loaded, [group[0] for group in free], calls), base, 1.0)
        )
        run.note(str(rows[-1]))
        for name, product in {
            "LCD": None,
            "GCD": None,
            **{f"P-GCD, H={h}": p for h, p in products.items()},
        }.items():
            found, seconds = timed(lambda: particles(loaded, prompts, automaton, name, product, count))  # noqa: B023  # called at once
            each = 1e3 * seconds / sum(len(tokens) for one in found for tokens in one.tokens)
            chosen = [drawn(one, index) for index, one in enumerate(found)]
            every = whole(loaded, [tokens for one in found for tokens in one.tokens])
            rows.append((name, count, every, *judged(loaded, chosen, calls), each, each / base))
            run.note(str(rows[-1]))
    return rows


def asked(loaded: SmallModel, count: int, seed: int, fitting: bool = True) -> list[tuple[str, str]]:
    """Requests with held-out sentences, each with its call; ``fitting``: only those whose call, with the space before
    it, fits into ``TOKENS`` tokens.
    """
    draw, found = random.Random(seed), []
    sentences = [text for item in commongen("held out") for text in item.sentences if len(text) < 60]
    while len(found) < count:
        prompt, call = tool_call(draw, sentences)
        if not fitting or len(loaded.tokenizer(" " + call).input_ids) < TOKENS:
            found.append((prompt, call))
    return found


def constraint() -> Language:
    """All calls of all tools, after the space that follows the prompt."""
    options = [
        {
            "type": "object",
            "properties": {
                "name": {"const": name},
                "arguments": {
                    "type": "object",
                    "properties": {key: {"type": "integer" if key in INTEGERS else "string"} for key in keys},
                    "required": list(keys),
                    "additionalProperties": False,
                },
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for name, each in ARGUMENTS.items()
        for keys in each
    ]
    return regex(" ") + json_schema({"anyOf": options}, whitespace=" ?").to_language()


def distilled(loaded: SmallModel, size: int, count: int) -> Hmm:
    """A hidden Markov model that is distilled from what the model writes for other requests."""
    torch.manual_seed(0)
    prompts = [loaded.tokenizer(prompt).input_ids for prompt, _ in asked(loaded, 96, seed=2)]
    return distil_hmm(
        loaded.model,
        prompts,
        vocabulary=loaded.vocabulary,
        hidden_size=size,
        count=count,
        max_new_tokens=TOKENS,
        generator=torch.Generator().manual_seed(0),
    ).hmm


def unconstrained(loaded: SmallModel, prompts: Sequence[Sequence[int]], count: int) -> list[list[list[int]]]:
    """``count`` samples for each prompt, as token ids."""
    tokens, lengths = draw_samples(
        loaded.model,
        prompts,
        count=count,
        max_new_tokens=TOKENS,
        vocabulary=loaded.vocabulary,
        generator=torch.Generator().manual_seed(0),
    )
    rows = [row[:length] for row, length in zip(tokens.tolist(), lengths.tolist(), strict=True)]
    return [rows[index : index + count] for index in range(0, len(rows), count)]


def particles(
    loaded: SmallModel,
    prompts: Sequence[Sequence[int]],
    automaton: TokenAutomaton,
    name: str,
    product: HmmProduct | None,
    count: int,
) -> list[Particles]:
    """``count`` particles for each prompt."""
    return smc(
        loaded.model,
        prompts,
        automaton,
        particles=count,
        max_new_tokens=TOKENS,
        proposal="p-gcd" if product else "lcd" if name == "LCD" else "gcd",
        hmm=[product] * len(prompts) if product else None,
        generator=torch.Generator().manual_seed(0),
    )


def drawn(found: Particles, seed: int) -> list[int]:
    """The tokens of one particle, drawn by weight; of the first particle if all weights are zero."""
    if not found.weights.any():
        return found.tokens[0]
    return found.draw(1, torch.Generator().manual_seed(seed))[0]


def judged(
    loaded: SmallModel, chosen: Sequence[Sequence[int]], calls: Sequence[Any]
) -> tuple[float, float, float]:
    """The percentages of texts that are satisfied, that call the right tool, and that are right."""
    values = [parsed(loaded.vocabulary.decode(list(tokens))) for tokens in chosen]
    pairs = list(zip(values, calls, strict=True))
    tool = sum(satisfied(value) and value["name"] == call["name"] for value, call in pairs)
    right = sum(value == call for value, call in pairs)
    return (
        100 * sum(map(satisfied, values)) / len(values),
        100 * tool / len(values),
        100 * right / len(values),
    )


def whole(loaded: SmallModel, rows: Sequence[Sequence[int]]) -> float:
    """The percentage of texts that are satisfied."""
    return 100 * sum(satisfied(parsed(loaded.vocabulary.decode(list(row)))) for row in rows) / len(rows)


def parsed(text: bytes) -> Any:
    """The value of a JSON text; None for other texts."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def satisfied(value: Any) -> bool:
    """Whether a value is a call of a tool with its arguments, checked without the constraint."""
    if not isinstance(value, dict) or set(value) != {"name", "arguments"} or value["name"] not in ARGUMENTS:
        return False
    given = value["arguments"]
    return any(tuple(given) == keys for keys in ARGUMENTS[value["name"]]) and all(
        is_integer(item) if key in INTEGERS else isinstance(item, str) for key, item in given.items()
    )


def is_integer(item: Any) -> bool:
    """Whether a value is an integer in the sense of JSON Schema: 2.0 is one."""
    return type(item) is int or (type(item) is float and item.is_integer())


def plot(axes: Any, results: dict[str, Sequence[Any]]) -> None:
    """Draw the percentage of particles that satisfy the constraint, one picture for each kind of requests."""
    names = list(dict.fromkeys(row[0] for row in results["calls that fit"]))
    for axis, (kind, rows) in zip(axes, results.items(), strict=True):
        for index, count in enumerate(PARTICLES):
            mine = [row for row in rows if row[1] == count]
            places = [place + (index - 0.5) * 0.36 for place in range(len(names))]
            axis.bar(places, [row[2] for row in mine], 0.34, label=f"k={count}", color=f"C{index}")
        axis.set_xticks(range(len(names)), names, fontsize=8)
        axis.set(title=f"{kind}: particles satisfied, %", ylim=(0, 125))
        axis.legend(fontsize=8, loc="upper center", ncols=2)


if __name__ == "__main__":
    main()
