"""English inflections by lemminflect (extra ``concepts``), imported on first use."""

from __future__ import annotations

from tokenfst.errors import MissingDependencyError


def english_inflections(word: str) -> list[str]:
    """The inflected forms of a word as noun, verb, adjective or adverb, sorted; none for a phrase.

    Raises ``MissingDependencyError`` without lemminflect, which takes seconds to load.
    """
    try:
        from lemminflect import getAllInflections
    except ImportError as error:
        raise MissingDependencyError(
            "inflections=True needs lemminflect: install tokenfst[concepts], or pass a function that gives "
            "the forms of a word"
        ) from error
    return sorted({form for forms in getAllInflections(word).values() for form in forms})
