"""The demo that ``make demo`` runs: a regex is compiled for a real vocabulary, saved, loaded, and used in decoding.

The artifact is for a real vocabulary of 131,072 tokens. Then the small language model in small_model/ generates
texts. It has a vocabulary of its own, for which the same constraint is compiled again. Nothing is downloaded. The
exit status is 1 if any text is not in the language.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from small_model import load

import tokenfst

PATTERN = (
    r'\{"city": "(Zürich|東京|São Paulo|Montréal)", '
    r'"date": "20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])", '
    r'"temperature": -?[0-9]{1,2}\.[0-9], "note": "([^"\\\x00-\x1f]|\\["\\/nrt]){0,40}"\}'
)
ARTIFACT = Path(__file__).parent.parent / "demo-output" / "weather.safetensors"
MAX_NEW_TOKENS = 56
PROMPTS = (
    "record: city, date, temperature, note\njson:",
    "request: How will the weather in Zürich be in the next 3 days?\ncall:",
    "The weather",
)


def main() -> int:
    vocabulary = timed("1. Load the vocabulary", lambda: tokenfst.load_vocabulary("mistral:tekken_240911"))
    print(
        f"   Tekken: {len(vocabulary):,} tokens, of which {len(vocabulary.special_token_ids):,} are special"
    )
    compile_ahead_of_time(vocabulary)
    automaton = timed("4. Load it in a decoder", lambda: tokenfst.load(ARTIFACT, vocabulary))
    walk_by_hand(automaton)
    return generate()


def compile_ahead_of_time(vocabulary: tokenfst.Vocabulary) -> None:
    """Compile the regex into an artifact, as ``tokenfst compile`` does."""
    language = timed("2. Regex to language", lambda: tokenfst.regex(PATTERN))
    size = language.size()
    shortest = language.witness() or b""
    print(f"   {PATTERN}\n   {size.states:,} byte states; a shortest text: {shortest.decode()}")
    automaton = timed("3. Compose, all masks", lambda: tokenfst.compile(language, vocabulary).expand())
    stats = automaton.stats()
    ARTIFACT.parent.mkdir(exist_ok=True)
    automaton.save(ARTIFACT)
    print(f"   {stats.states:,} states share {stats.distinct_masks} different masks")
    print(f"   any text needs at least {automaton.distance()} tokens")
    print(f"   saved as {ARTIFACT.parent.name}/{ARTIFACT.name}: {ARTIFACT.stat().st_size / 1e3:,.0f} kB")


def walk_by_hand(automaton: tokenfst.TokenAutomaton) -> None:
    """Walk the automaton as every decoding loop does: mask, choose, advance."""
    vocabulary, matcher = automaton.vocabulary, automaton.matcher()
    bitmask = tokenfst.allocate_token_bitmask(1, len(vocabulary))
    print("5. Walk it: what may come next")
    for text in ('{"city": "', "東", '京", "date": "2026-11-', '21", "temperature": 3.5, "note": "', "fog"):
        matcher.accept_tokens(vocabulary.encode_greedy(text.encode()))
        matcher.fill_next_token_bitmask(bitmask)
        allowed = sum(word.bit_count() for word in bitmask.view("uint32")[0].tolist())
        forced = (
            f", and then certainly {matcher.find_jump_forward_string()}" if matcher.forced_bytes() else ""
        )
        print(f"   after {text!r:38} {allowed:>7,} tokens{forced}")


def generate() -> int:
    """Call ``model.generate`` with and without the constraint. Returns 1 if a text does not match, else 0."""
    torch.set_num_threads(1)  # a model this small gains nothing from a second one
    model, tokenizer, vocabulary = timed("6. Load the small model", load)
    print(f"   {model.num_parameters():,} parameters, {len(vocabulary):,} tokens")
    # A prompt ends before a space, so each text begins with one, as in the texts that the model was trained on.
    language = tokenfst.regex(" " + PATTERN)
    automaton = timed("7. Compile for its tokens", lambda: tokenfst.compile(language, vocabulary))
    torch.manual_seed(0)
    batch = tokenizer(list(PROMPTS), padding=True, return_tensors="pt")
    constraint = tokenfst.ConstraintLogitsProcessor(automaton, max_new_tokens=MAX_NEW_TOKENS)
    print(f"8. Generate at most {MAX_NEW_TOKENS} tokens for a batch of {len(PROMPTS)} prompts")

    def texts(processors: list[Any], **options: Any) -> list[bytes]:
        rows = model.generate(**batch, logits_processor=processors, max_new_tokens=MAX_NEW_TOKENS, **options)
        return [vocabulary.decode(row) for row in rows[:, batch.input_ids.shape[1] :].tolist()]

    sample = {"do_sample": True, "top_k": 0}
    free = timed("   without a constraint", lambda: texts([], **sample))
    for data in free:
        print(f"      {data.decode(errors='replace')[:100]!r}")
    wrong = 0
    for mode, options in {"greedy": {}, "sampling": sample, "beam search": {"num_beams": 3}}.items():
        for data in timed(f"   {mode}", partial(texts, [constraint], **options)):
            text = data.decode().removeprefix(" ")
            matches = re.fullmatch(PATTERN, text) is not None
            wrong += not matches
            print(f"      {'matches' if matches else 'DOES NOT MATCH'}: {text}")
    print(
        f"{wrong} texts do not match"
        if wrong
        else "All texts match the regex (checked by Python's re.fullmatch)."
    )
    return 1 if wrong else 0


def timed(what: str, function: Callable[[], Any]) -> Any:
    """Call the function, print how long it took, and return its result."""
    begin = perf_counter()
    result = function()
    print(f"{what:26} {(perf_counter() - begin) * 1e3:8.1f} ms")
    return result


if __name__ == "__main__":
    sys.exit(main())
