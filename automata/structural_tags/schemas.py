"""The contents of ``json_schema``: JSON texts, or parameters in the style of a model (``xml_writing``).

Errors of a schema keep their class; their JSON pointers are those of the whole document.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.structural_tags.documents.formats import JsonSchema
from tokenfst.automata.structural_tags.documents.xml_styles import STYLES
from tokenfst.automata.structural_tags.sentinels import Sentinels
from tokenfst.automata.structural_tags.xml_writing import styled
from tokenfst.budget import Budget
from tokenfst.errors import EmptyLanguageError, SchemaError

_SPACE = r"[ \t\n\r]"


@dataclass(frozen=True, slots=True)
class Schemas:
    """How schemas are written, as far as the document does not say it. ``sentinels``: those for a parser, if any."""

    whitespace: str = "flexible"
    additional_properties: Literal["schema", "forbid"] = "forbid"
    budget: Budget | None = None
    sentinels: Sentinels | None = None

    def constraint(self, format: JsonSchema) -> Constraint:
        """The constraint of the texts of one ``json_schema`` format."""
        whitespace = self.whitespace
        if format.max_whitespace is not None:
            whitespace = f"{_SPACE}{{0,{format.max_whitespace}}}"
        try:
            if format.style != "json" or format.excludes:
                return styled(
                    format.json_schema,
                    STYLES.get(format.style),
                    whitespace=whitespace,
                    any_order=format.any_order,
                    additional_properties=self.additional_properties,
                    excludes=tuple(each.encode() for each in format.excludes),
                    budget=self.budget,
                    sentinels=None if self.sentinels is None else self.sentinels.within(format.json_schema),
                )
            return json_schema(
                format.json_schema,
                whitespace=whitespace,
                property_order="any" if format.any_order else "schema",
                additional_properties=self.additional_properties,
                budget=self.budget,
            )
        except SchemaError as error:
            raise type(error)(_below(format.place, error.pointer), error.reason) from None
        except EmptyLanguageError as error:
            pointers = tuple(_below(format.place, each) for each in error.pointers)
            raise EmptyLanguageError(f"{format.place}: {error}", pointers) from None


def _below(place: str, pointer: str) -> str:
    """A pointer in a schema as a pointer in the document."""
    return place + pointer[1:] if pointer.startswith("#") else pointer
