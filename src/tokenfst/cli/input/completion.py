"""Shell completion after ``--grammar`` and ``--vocabulary``: known names, and files."""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path

_KINDS = ("mistral:", "hf:", "tiktoken:", "spm:", "tokens:", "symbols:", "pack:")


def grammars(incomplete: str) -> list[str]:
    """Grammars that come with tokenfst, and files."""
    from tokenfst.automata.notations.bundled import bundled_grammars

    return [name for name in bundled_grammars() if name.startswith(incomplete)] + _files(incomplete)


def vocabularies(incomplete: str) -> list[str]:
    """Kinds of vocabularies; after a kind and its colon, names of tokenizers in mistral-common, and files."""
    kind, colon, rest = incomplete.partition(":")
    if not colon:
        return [each for each in _KINDS if each.startswith(incomplete)]
    if f"{kind}:" not in _KINDS or kind == "symbols":
        return []
    names = _carried(rest) if kind == "mistral" else []
    return [f"{kind}:{name}" for name in [*names, *_files(rest)]]


def join_divided_words(environment: MutableMapping[str, str]) -> str:
    """Join the words in ``environment`` that bash divided at a colon. Return the prefix to remove from the answers.

    For ``mistral:tek`` bash passes the words ``mistral``, ``:`` and ``tek``, and puts the answer after the colon. So
    the answer must not repeat ``mistral:``.
    """
    kind = ""
    words, joined = environment.get("COMP_WORDS", "").split("\n"), list[str]()
    place = at = int(environment.get("COMP_CWORD", "0"))
    number = 0
    while number < len(words):
        parts = words[number : number + 3] if words[number + 1 : number + 2] == [":"] else []
        if parts and f"{parts[0]}:" in _KINDS:
            if number < place < number + len(parts):
                at, kind = len(joined), f"{parts[0]}:"
            elif place >= number + len(parts):
                at -= len(parts) - 1
        else:
            parts = words[number : number + 1]
        joined.append("".join(parts))
        number += len(parts)
    environment["COMP_WORDS"], environment["COMP_CWORD"] = "\n".join(joined), str(at)
    return kind


def _carried(incomplete: str) -> list[str]:
    from tokenfst.tokenizers.adapters.mistral import carried

    names = sorted({file.name.removesuffix(".json") for file in carried()})
    return [name for name in names if name.startswith(incomplete)]


def _files(incomplete: str) -> list[str]:
    """Paths that begin like this, hidden ones left out; folders end in a slash."""
    head, slash, tail = incomplete.rpartition("/")
    folder = Path(head + slash if slash else ".")
    try:
        found = sorted(folder.iterdir())
    except OSError:
        return []
    shown = [each for each in found if each.name.startswith(tail) and not each.name.startswith(".")]
    return [f"{head}{slash}{each.name}{'/' if each.is_dir() else ''}" for each in shown]
