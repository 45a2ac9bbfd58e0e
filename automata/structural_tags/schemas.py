"""The contents of ``json_schema``: JSON texts, or parameters in the style of a model (``xml_styles``).

Errors of a schema keep their class; their JSON pointers are those of the whole document. ``excludes`` is an
intersection with a language, which does not remember names: those that the schema does not list may come twice there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tokenfst.automata.grammars.assembly import Constraint
from tokenfst.automata.json_schema.door import json_schema
from tokenfst.automata.languages.language import Language
from tokenfst.automata.regex.translate import regex
from tokenfst.automata.structural_tags.formats import JsonSchema
from tokenfst.automata.structural_tags.xml_styles import STYLES
from tokenfst.automata.structural_tags.xml_writing import parameters
from tokenfst.budget import Budget
from tokenfst.errors import EmptyLanguageError, SchemaError, StructuralTagError

_SPACE = r"[ \t\n\r]"


@dataclass(frozen=True, slots=True)
class Schemas:
    """How schemas are written, as far as the document does not say."""

    whitespace: str = "flexible"
    additional_properties: Literal["schema", "forbid"] = "forbid"
    budget: Budget | None = None

    def constraint(self, format: JsonSchema) -> Constraint:
        """The texts of one schema."""
        whitespace = self.whitespace
        if format.max_whitespace is not None:
            whitespace = f"{_SPACE}{{0,{format.max_whitespace}}}"
        try:
            if format.style != "json":
                if format.excludes:
                    raise StructuralTagError(
                        f"{format.pointer}/excludes",
                        f"is for the style 'json', and this one is {format.style!r}",
                    )
                return parameters(
                    format.json_schema,
                    STYLES[format.style],
                    whitespace=whitespace,
                    any_order=format.any_order,
                    additional_properties=self.additional_properties,
                    budget=self.budget,
                )
            made: Constraint = json_schema(
                format.json_schema,
                whitespace=whitespace,
                property_order="any" if format.any_order else "schema",
                additional_properties=self.additional_properties,
                repeated_names="allow" if format.excludes else "forbid",
                budget=self.budget,
            )
        except SchemaError as error:
            raise type(error)(_below(format.place, error.pointer), error.reason) from None
        except EmptyLanguageError as error:
            pointers = tuple(_below(format.place, each) for each in error.pointers)
            raise EmptyLanguageError(f"{format.place}: {error}", pointers) from None
        if format.excludes:
            made = made & _strings_without(format.excludes)
            if made.is_empty():
                raise EmptyLanguageError(
                    f"{format.place}: every value holds a string that 'excludes' forbids"
                )
        return made


def _strings_without(excluded: tuple[str, ...]) -> Language:
    """The JSON texts in whose strings, as they are written between quotation marks, none of these stands."""
    held = Language.any_bytes() + Language.union_of(map(Language.literal, excluded)) + Language.any_bytes()
    inside = regex(r'(?s:[^"\\]|\\.)*') - held
    quote = Language.literal('"')
    return (regex('[^"]') | (quote + inside + quote)).star()


def _below(place: str, pointer: str) -> str:
    """A pointer in a schema as one in the document."""
    return place + pointer[1:] if pointer.startswith("#") else pointer
