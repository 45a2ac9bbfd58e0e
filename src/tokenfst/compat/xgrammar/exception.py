"""Errors under xgrammar's names. They are RuntimeErrors and have tokenfst's messages."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tokenfst.errors import ConstraintError, MissingDependencyError, TokenfstError

_P = ParamSpec("_P")
_T = TypeVar("_T")


class GrammarError(ConstraintError, RuntimeError):
    """A grammar cannot be made or compiled. The message is tokenfst's."""


class Unsupported(GrammarError):
    """A feature of xgrammar that tokenfst does not have."""


class InvalidJSONError(GrammarError):
    """A text is not JSON."""


class InvalidStructuralTagError(GrammarError):
    """A document is not a structural tag."""


class DeserializeFormatError(GrammarError):
    """A text was not written by ``serialize_json``."""


class DeserializeVersionError(GrammarError):
    """A text was written by another version of ``serialize_json``."""


def raising(function: Callable[_P, _T], error: type[GrammarError] = GrammarError) -> Callable[_P, _T]:
    """Wrap a function so that errors of tokenfst become RuntimeErrors, as xgrammar raises them."""

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return function(*args, **kwargs)
        except (GrammarError, MissingDependencyError):
            raise
        except TokenfstError as caught:
            raise error(str(caught)) from caught

    return call
