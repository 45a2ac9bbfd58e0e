"""Vocabularies, and what is meant by their tokens, as groups of options."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated

import typer

from tokenfst.cli.input import completion
from tokenfst.cli.output.terminal import UsageError
from tokenfst.tokenizers.adapters.sources import load_vocabulary
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


class Tokenization(enum.StrEnum):
    """Which token sequences stand for a text."""

    ALL = "all"
    CANONICAL = "canonical"


@dataclass(frozen=True)
class WidthOptions:
    """How wide a model's logits are, where that is not the number of tokens."""

    vocab_size: Annotated[
        int | None,
        typer.Option(
            "--vocab-size",
            metavar="N",
            min=1,
            help="Width of the model's logits, if it is larger than the tokenizer's vocabulary.",
        ),
    ] = None
    eos_token_id: Annotated[
        list[int] | None,
        typer.Option(
            "--eos-token-id",
            metavar="ID",
            min=0,
            help="End token, instead of the tokenizer's own; may be repeated.",
        ),
    ] = None

    def load(self, spec: str) -> Vocabulary:
        """The vocabulary that ``spec`` names."""
        return load_vocabulary(spec, self.vocab_size, eos_token_id=self.eos_token_id or None)


@dataclass(frozen=True)
class _Spec:
    vocabulary: Annotated[
        str | None,
        typer.Option(
            "--vocabulary",
            "-v",
            metavar="SPEC",
            autocompletion=completion.vocabularies,
            help="The vocabulary: mistral:NAME, hf:PATH_OR_NAME, tiktoken:NAME_OR_FILE, spm:FILE, tokens:FILE.json, "
            "symbols:A,B,C, symbols:@FILE or pack:FILE.",
        ),
    ] = None


@dataclass(frozen=True)
class _Tokens:
    token_class: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=ID,ID",
            help="The token ids of a token class that the constraint names, such as IMAGE in (?P<IMAGE>); may be "
            "repeated.",
        ),
    ] = None
    tokenization: Annotated[
        Tokenization,
        typer.Option(
            help="Which token sequences stand for a text: all that spell it, or only the one that the tokenizer "
            "produces (canonical)."
        ),
    ] = Tokenization.ALL


@dataclass(frozen=True)
class VocabularyOptions(_Tokens, WidthOptions, _Spec):
    """A vocabulary that a command may do without, and what is meant by its tokens."""

    def need(self, why: str) -> Vocabulary:
        """The vocabulary; ``why`` says what it is needed for."""
        if self.vocabulary is None:
            raise UsageError(f"{why} needs --vocabulary SPEC, such as mistral:tekken_240911")
        return self.load(self.vocabulary)

    def classes(self) -> dict[str, list[int]]:
        """The classes of tokens by name. UsageError for other forms than NAME=ID,ID and for a name given twice."""
        found: dict[str, list[int]] = {}
        for given in self.token_class or ():
            name, sign, ids = given.partition("=")
            try:
                members = [int(each) for each in ids.split(",")]
            except ValueError:
                sign = ""
            if not (name and sign) or name in found:
                raise UsageError(f"--token-class takes NAME=ID,ID, each name once, not {given!r}")
            found[name] = members
        return found
