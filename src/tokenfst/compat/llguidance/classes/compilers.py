"""The compilers that llguidance calls deprecated. They check a grammar when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenfst.compat.llguidance.classes.grammars import json_schema_grammar, regex_grammar
from tokenfst.compat.llguidance.classes.matcher import LLMatcher


def _checked(grammar: str, check: bool) -> str:
    if check and (error := LLMatcher.validate_grammar(grammar)):
        raise ValueError(error)
    return grammar


class JsonCompiler:
    """Grammars of JSON Schemas, without white space unless ``whitespace_flexible`` is set."""

    def __init__(
        self,
        separators: tuple[str, str] | None = None,
        whitespace_flexible: bool = False,
        coerce_one_of: bool = False,
        whitespace_pattern: str | None = None,
        json_allowed_escapes: str | None = None,
        json_allow_general_unicode_escapes: bool = False,
    ) -> None:
        item, key = separators or ((",", ":") if whitespace_flexible else (", ", ": "))
        self._options: Mapping[str, Any] = {
            "item_separator": item,
            "key_separator": key,
            "whitespace_flexible": whitespace_flexible,
            "whitespace_pattern": whitespace_pattern,
            "coerce_one_of": coerce_one_of,
            "json_allowed_escapes": json_allowed_escapes,
            "json_allow_general_unicode_escapes": json_allow_general_unicode_escapes,
        }

    def compile(self, schema: str, check: bool = True) -> str:
        """The grammar of a schema. Raises ValueError if the schema is invalid."""
        return _checked(json_schema_grammar(schema, {}, self._options), check)


class LarkCompiler:
    """Grammars in Lark's notation."""

    def compile(self, lark: str, check: bool = True) -> str:
        """The grammar itself, after a check. Raises ValueError if it is invalid."""
        return _checked(lark, check)


class RegexCompiler:
    """Grammars of patterns."""

    def compile(self, regex: str, check: bool = True) -> str:
        """The grammar of a pattern. Raises ValueError if the pattern is invalid."""
        return _checked(regex_grammar(regex), check)
