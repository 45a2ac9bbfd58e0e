"""``tokenfst vocab``: the content of a vocabulary, and whether texts survive encoding and decoding."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tokenfst.automata.languages.display.drawing import bytes_label
from tokenfst.cli.constraints import options
from tokenfst.cli.input import completion, groups
from tokenfst.cli.input.tokens import WidthOptions
from tokenfst.cli.output.terminal import (
    Exit,
    UsageError,
    counted,
    json_bytes,
    quoted,
    say,
    say_json,
    say_pairs,
)
from tokenfst.errors import VocabularyError
from tokenfst.tokenizers.adapters.pack import is_pack
from tokenfst.tokenizers.vocabulary.census import Census, census
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_TEXTS = (
    "Hello, world!",
    "  two spaces,\ttabs\tand\r\nline breaks\n",
    '{"key": [1, -2.5e10, null, "\\u00e9"]}',
    "naïve café, Straße, Ελληνικά, русский, עברית, العربية",
    "漢字かな交じり文、한국어",
    "emoji 🙂 👩‍👩‍👧 and 𝔘𝔫𝔦𝔠𝔬𝔡𝔢",
)
_LENGTH = 12
"""Tokens in one random text."""


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    groups.register(app, "vocab", vocab_command)


def vocab_command(
    *,
    spec: Annotated[
        str,
        typer.Argument(
            metavar="SPEC",
            show_default=False,
            autocompletion=completion.vocabularies,
            help="The vocabulary: mistral:NAME, hf:PATH_OR_NAME, tiktoken:NAME_OR_FILE, spm:FILE, tokens:FILE.json, "
            "symbols:A,B,C, symbols:@FILE or pack:FILE.",
        ),
    ],
    samples: Annotated[
        int, typer.Option(metavar="N", min=0, help="Number of random texts for the round trip.")
    ] = 200,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the random texts.")] = 0,
    pack: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Also write the vocabulary as a pack, a file that pack:FILE loads quickly.",
        ),
    ] = None,
    width: WidthOptions,
    json: options.Json = False,
) -> int:
    """Show what a vocabulary contains, and check that texts survive tokenization unchanged.

    Exit code 1: a text was changed.
    """
    vocabulary = width.load(spec)
    if pack is not None:
        if pack.is_file() and pack.stat().st_size and not is_pack(pack):
            raise UsageError(
                f"{pack} exists and is not a pack, so --pack does not replace it: give another name"
            )
        vocabulary.to_pack(pack)
    figures = census(vocabulary)
    trip = round_trip(vocabulary, samples, seed)
    if json:
        say_json(
            {
                "command": "vocab",
                "name": vocabulary.name,
                "fingerprint": vocabulary.fingerprint,
                "eos_token_ids": list(vocabulary.eos_token_ids),
                "census": asdict(figures),
                "round_trip": trip.as_json(),
            }
        )
    else:
        _show(vocabulary, figures, trip)
    return Exit.NO if trip.changed else Exit.YES


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """The result of the check. ``texts``: how many were tried. ``changed``: those that decoded to other texts.
    ``unspelled``: those without a token sequence.
    """

    texts: int
    changed: tuple[bytes, ...]
    unspelled: tuple[bytes, ...]

    def as_json(self) -> dict[str, Any]:
        """The value in JSON, with at most ten examples of each kind."""
        return {
            "texts": self.texts,
            "changed": len(self.changed),
            "unspelled": len(self.unspelled),
            "changed_examples": [json_bytes(text) for text in self.changed[:10]],
            "unspelled_examples": [json_bytes(text) for text in self.unspelled[:10]],
        }


def round_trip(vocabulary: Vocabulary, samples: int, seed: int) -> RoundTrip:
    """Spell texts by the longest tokens that fit and decode them: some in many scripts, and the texts of
    random tokens.
    """
    rng = random.Random(seed)
    ordinary = [each for each in range(len(vocabulary)) if each not in vocabulary.special_token_ids]
    texts = [text.encode() for text in _TEXTS]
    if ordinary:
        texts += [vocabulary.decode(rng.choices(ordinary, k=_LENGTH)) for _ in range(samples)]
    changed, unspelled = [], []
    for text in texts:
        try:
            ids = vocabulary.encode_greedy(text)
        except VocabularyError:
            unspelled.append(text)
            continue
        if vocabulary.decode(ids) != text:
            changed.append(text)
    return RoundTrip(len(texts), tuple(changed), tuple(unspelled))


def _show(vocabulary: Vocabulary, figures: Census, trip: RoundTrip) -> None:
    names = {token: name for name, token in vocabulary.special_tokens.items()}
    ends = ", ".join(
        f"{token} {names[token]}" if token in names else str(token) for token in vocabulary.eos_token_ids
    )
    missing = (
        bytes_label(sum(1 << byte for byte in figures.missing_bytes)) if figures.missing_bytes else "none"
    )
    say(vocabulary.name or "vocabulary")
    say_pairs(
        [
            ("fingerprint", vocabulary.fingerprint),
            ("tokens", f"{figures.tokens:,}"),
            ("text", f"{figures.text:,}, of which {figures.whitespace:,} white space"),
            ("partial UTF-8", f"{figures.partial_utf8:,}"),
            ("special", f"{figures.special:,}"),
            ("end", ends),
            ("single bytes", f"{figures.single_byte:,}"),
            ("duplicates", f"{figures.duplicate:,}"),
            ("contextual", f"{figures.contextual:,} (another form at the start of a text)"),
            ("longest", counted(figures.longest, "byte")),
            (
                "missing bytes",
                missing if not figures.missing_bytes else f"{len(figures.missing_bytes)}: {missing}",
            ),
            ("round trip", _round_trip_line(trip)),
        ],
        "  ",
    )
    for text in trip.changed[:3]:
        say(f"    changed: {quoted(text, 60)}", "red")
    for text in trip.unspelled[:3]:
        say(f"    not spelled: {quoted(text, 60)}")


def _round_trip_line(trip: RoundTrip) -> str:
    same = trip.texts - len(trip.changed) - len(trip.unspelled)
    line = f"{same:,} of {counted(trip.texts, 'text')} came back unchanged"
    if trip.changed:
        line += f", {len(trip.changed):,} changed"
    if trip.unspelled:
        line += f", {len(trip.unspelled):,} cannot be spelled by the longest tokens that fit"
    return line
