"""Token ids, alone or in sequences, as arguments of calls that run for every token.

Such calls do not go through ``arguments.checked``, which takes a microsecond. Here a plain ``int`` costs one comparison
of types; all else goes through ``arguments``. Also here: the check that a model scores every token of a vocabulary.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from tokenfst.common.arguments import refuse, whole
from tokenfst.common.plurals import counted
from tokenfst.errors import TokenIdError, VocabularyMismatchError, VocabularyWarning

_ROUNDED = 1024
"""The number of scores without a token that causes no warning."""


def token_id(call: str, name: str, value: object, size: int) -> int:
    """``value`` as a token id below ``size``. Raises ``TokenIdError`` outside of that range."""
    token = _number(call, name, value)
    if not 0 <= token < size:
        raise outside(token, size)
    return token


def outside(token: int, size: int) -> TokenIdError:
    """The error for a token id that is not one of a vocabulary of ``size`` tokens."""
    return TokenIdError(
        f"token id {token} lies outside the vocabulary of {counted(size, 'token')}, which have the ids 0 to "
        f"{size - 1:,}"
    )


def check_width(
    width: int,
    size: int,
    model: str = "the model",
    vocabulary: str = "the vocabulary",
    remedy: str = "use the vocabulary of the model's own tokenizer",
) -> None:
    """Raise ``VocabularyMismatchError`` if ``width``, a model's number of scores, is less than ``size``, a vocabulary's
    number of tokens.

    ``model``, ``vocabulary``, ``remedy``: words of the message.
    """
    if width < size:
        raise VocabularyMismatchError(
            f"{model} scores {counted(width, 'token')}, and {vocabulary} has {size:,}: {remedy}"
        )


def warn_of_width(width: int, size: int) -> None:
    """Warn if a model scores many more than the ``size`` tokens of a vocabulary. Models round their widths up a little;
    beyond that, the vocabulary is probably another model's.
    """
    if width - size > max(_ROUNDED, size // 8):
        warnings.warn(
            f"the model scores {counted(width, 'token')}, and the constraint's vocabulary has {size:,}: the vocabulary "
            "is probably another model's, in which ids stand for other texts; if it is the model's own, give its width "
            "to load_vocabulary(..., size=...)",
            VocabularyWarning,
            stacklevel=2,
        )


def whole_list(call: str, name: str, value: object) -> list[int]:
    """A sequence of integers, or an array or tensor of one dimension, as a list."""
    given: Any = value
    counted_and_indexed = hasattr(given, "__len__") and hasattr(given, "__getitem__")
    if not counted_and_indexed or isinstance(given, str | bytes | bytearray | memoryview | Mapping | type):
        refuse(call, name, given, "a sequence of integers")
    if hasattr(given, "shape"):
        numbers = str(given.dtype).removeprefix("torch.").startswith(("int", "uint"))
        if len(given.shape) != 1 or not numbers:
            refuse(call, name, given, "a sequence of integers")
        given = given.tolist()
    return [_number(call, f"{name}[{place}]", each) for place, each in enumerate(given)]


def _number(call: str, name: str, value: object) -> int:
    if type(value) is int and -(1 << 63) <= value < 1 << 63:
        return value
    return whole(call, name, value)
