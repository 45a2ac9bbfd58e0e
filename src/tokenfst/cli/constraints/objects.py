"""Constraints of Python classes and of templates: ``--python MODULE:NAME``, ``--template TEXT --hole NAME=PATTERN``."""

from __future__ import annotations

import enum
import importlib
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.grammars.templates import template
from tokenfst.automata.languages.language import Language
from tokenfst.automata.python_text.objects import Arguments, Defaults, python_calls, python_object
from tokenfst.automata.regex.translate import regex
from tokenfst.budget import Budget
from tokenfst.cli.output.terminal import UsageError
from tokenfst.errors import BudgetExceeded, ConstraintError

_PANEL = "Python and templates"


class ArgumentStyle(enum.StrEnum):
    """How arguments of calls are written."""

    KEYWORD = "keyword"
    POSITIONAL = "positional"
    ANY = "any"


class DefaultStyle(enum.StrEnum):
    """Whether arguments that have a default are written."""

    ANY = "any"
    WRITE = "write"
    OMIT = "omit"


_ARGUMENTS: dict[ArgumentStyle, Arguments] = {
    ArgumentStyle.KEYWORD: "keyword",
    ArgumentStyle.POSITIONAL: "positional",
    ArgumentStyle.ANY: "any",
}
_DEFAULTS: dict[DefaultStyle, Defaults] = {
    DefaultStyle.ANY: "any",
    DefaultStyle.WRITE: "write",
    DefaultStyle.OMIT: "omit",
}


@dataclass(frozen=True)
class ObjectOptions:
    """A Python class or function, or a template."""

    python: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME",
            help="A Python type, for the source text of its values (of a dataclass, constructor calls), or a function, "
            "for its calls. The module is executed.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    arguments: Annotated[
        ArgumentStyle | None,
        typer.Option(
            help="How calls of --python are written: with names (if not given), by position, or either.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    defaults: Annotated[
        DefaultStyle | None,
        typer.Option(
            help="Arguments that have a default: optional (any, if not given), always written (write) or never (omit).",
            rich_help_panel=_PANEL,
        ),
    ] = None
    template: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Fixed text with holes: {name}; {{ and }} are braces.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    hole: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PATTERN",
            help="What fills a hole of the template; may be repeated.",
            rich_help_panel=_PANEL,
        ),
    ] = None

    def read_object(self, budget: Budget) -> Language | Grammar | None:
        """The constraint of the options; None if none is given."""
        if self.hole and self.template is None:
            raise UsageError("--hole goes with --template")
        if self.python is None and (self.arguments is not None or self.defaults is not None):
            raise UsageError("--arguments and --defaults go with --python")
        if self.python is not None:
            arguments = _ARGUMENTS[self.arguments or ArgumentStyle.KEYWORD]
            return _python(self.python, arguments, _DEFAULTS[self.defaults or DefaultStyle.ANY], budget)
        if self.template is not None:
            holes = dict(_hole(each, budget) for each in self.hole or [])
            if len(holes) < len(self.hole or []):
                raise UsageError("a hole is given twice by --hole")
            return template(self.template, **holes).with_budget(budget)
        return None


def _hole(given: str, budget: Budget) -> tuple[str, Language]:
    name, sign, pattern = given.partition("=")
    if not sign:
        raise UsageError(f"--hole takes NAME=PATTERN, not {given!r}")
    return name, regex(pattern, budget=budget)


def _python(spec: str, arguments: Arguments, defaults: Defaults, budget: Budget) -> Language | Grammar:
    module_name, sign, name = spec.partition(":")
    if not (sign and module_name and name) or module_name.startswith("."):
        raise UsageError(f"--python takes MODULE:NAME, such as shapes:Point, not {spec!r}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    found: Any = _module(module_name)
    try:
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        raise UsageError(f"the module {module_name} has no {name!r}") from error
    if callable(found) and not isinstance(found, type):
        return python_calls([found], arguments=arguments, defaults=defaults, budget=budget)
    return python_object(found, arguments=arguments, defaults=defaults, budget=budget)


def _module(name: str) -> ModuleType:
    """A module of the user's. Raises ConstraintError with the place in it if it fails, or ends the program."""
    try:
        return importlib.import_module(name)
    except (BudgetExceeded, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name in (name, name.split(".")[0]):
            raise UsageError(f"there is no module {name!r} here or on Python's path") from error
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = "" if isinstance(error, SyntaxError) else f" ({last.filename}, line {last.lineno})"
        raise ConstraintError(
            f"the module {name} cannot be imported: {type(error).__name__}: {error}{place}"
        ) from error
