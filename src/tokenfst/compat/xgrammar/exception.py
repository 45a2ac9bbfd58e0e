"""What goes wrong, as xgrammar names it: RuntimeErrors, with the library's messages."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tokenfst.errors import ConstraintError, MissingDependencyError, TokenfstError

_P = ParamSpec("_P")
_T = TypeVar("_T")


class GrammarError(ConstraintError, RuntimeError):
    """A grammar cannot be made or compiled; the message is the library's."""


class Unsupported(GrammarError):
    """xgrammar has this, and tokenfst has not."""


class InvalidJSONError(GrammarError):
    """A text is not JSON."""


class InvalidStructuralTagError(GrammarError):
    """A structural tag is not one."""


class DeserializeFormatError(GrammarError):
    """A text is not what ``serialize_json`` wrote."""


class DeserializeVersionError(GrammarError):
    """A text was written by ``serialize_json`` of another version."""


def raising(function: Callable[_P, _T], error: type[GrammarError] = GrammarError) -> Callable[_P, _T]:
    """Errors of tokenfst as RuntimeErrors, which xgrammar raises."""

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return function(*args, **kwargs)
        except (GrammarError, MissingDependencyError):
            raise
        except TokenfstError as caught:
            raise error(str(caught)) from caught

    return call
