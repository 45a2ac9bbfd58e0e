"""Options in groups: options that several commands share are defined once, as a dataclass.

If the type of a command's parameter is a dataclass, it stands for one option for each field; the field's annotation and
default are the option's. ``register`` passes the flat list of options to Typer, and passes the groups to the command.
Typer itself has no groups.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand

from tokenfst.cli.output.examples import epilog
from tokenfst.cli.output.exits import UsageError


class _Once(TyperCommand):
    """A command that accepts each option once, except for those that may be repeated. Otherwise the first of two values
    would be ignored silently.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given: list[Any]
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        met: set[str] = set()
        for option in given:
            if option.param_type_name != "option" or option.multiple or getattr(option, "is_flag", False):
                continue
            if option.name in met:
                raise UsageError(f"{max(option.opts, key=len)} is given twice: give it once")
            met.add(option.name)
        return super().parse_args(ctx, args)


def register(app: typer.Typer, name: str, command: Callable[..., int], within: str = "") -> None:
    """Add a command to the program. Its docstring becomes its help page, one line for each paragraph.

    ``within``: the command that it is a subcommand of.
    """
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    page = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    app.command(name, help=page, epilog=epilog(f"{within} {name}".strip()), cls=_Once)(flat(command))


def flat(command: Callable[..., int]) -> Callable[..., int]:
    """``command`` with the options of its groups in place of the groups."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        if not is_dataclass(kind):
            parameters.append(parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = kind
        of_fields = get_type_hints(kind, include_extras=True)
        parameters += (
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=of_fields[field.name],
            )
            for field in fields(kind)
        )

    def run(**given: Any) -> int:
        for group, kind in groups.items():
            given[group] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        return command(**given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
