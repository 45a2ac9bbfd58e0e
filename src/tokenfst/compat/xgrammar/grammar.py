"""What xgrammar makes grammars of."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tokenfst.automata.expressions.expression import concat, union
from tokenfst.automata.grammars.assembly import Assembly
from tokenfst.automata.json_schema.door import json_schema, json_value
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.notations.ebnf import ebnf
from tokenfst.automata.notations.lark_syntax import lark_grammar
from tokenfst.automata.regex.translate import regex
from tokenfst.automata.structural_tags.door import structural_tag
from tokenfst.compat.xgrammar.exception import (
    GrammarError,
    InvalidStructuralTagError,
    Unsupported,
    raising,
)
from tokenfst.compat.xgrammar.structural_tag import StructuralTag
from tokenfst.compat.xgrammar.tokenizer_info import TokenizerInfo
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


class Grammar:
    """A constraint: a language or grammar of tokenfst."""

    def __init__(
        self, constraint: Constraint, over: Callable[[Vocabulary], Constraint] | None = None
    ) -> None:
        """``over``: the constraint over a vocabulary, where it is another one for each."""
        self.constraint, self._over = constraint, over

    def over(self, vocabulary: Vocabulary) -> Constraint:
        """The constraint over a vocabulary's tokens."""
        return self.constraint if self._over is None else self._over(vocabulary)

    def __str__(self) -> str:
        return self.constraint.source

    @staticmethod
    @raising
    def from_ebnf(ebnf_string: str, *, root_rule_name: str = "root") -> Grammar:
        """Of a grammar in xgrammar's notation."""
        return Grammar(ebnf(ebnf_string, root_rule_name))

    @staticmethod
    @raising
    def from_json_schema(
        schema: Any,
        *,
        any_whitespace: bool = True,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        strict_mode: bool = True,
        max_whitespace_cnt: int | None = None,
        print_converted_ebnf: bool = False,
        any_order: bool = False,
    ) -> Grammar:
        """Of a JSON Schema: a dict, JSON text or a Python type. ``strict_mode``: no members and items that the schema
        does not name. ``any_order`` keeps required members and never repeats one, which xgrammar does not check."""
        layout: dict[str, Any]
        if any_whitespace:
            most = "" if max_whitespace_cnt is None else max_whitespace_cnt
            layout = {"whitespace": rf"[ \n\t\r]{{0,{most}}}"}
        else:
            layout = {"separators": separators or ((", " if indent is None else ","), ": "), "indent": indent}
        return Grammar(
            json_schema(
                schema,
                **layout,
                additional_properties="forbid" if strict_mode else "schema",
                property_order="any" if any_order else "schema",
            )
        )

    @staticmethod
    @raising
    def from_regex(regex_string: str, *, print_converted_ebnf: bool = False) -> Grammar:
        """Of a regular expression of Python's ``re``, matched in full."""
        return Grammar(regex(regex_string))

    @staticmethod
    @raising
    def from_lark(
        lark_string: str,
        *,
        tokenizer_info: TokenizerInfo | None = None,
        named_grammars: Mapping[str, Grammar | str] | None = None,
    ) -> Grammar:
        """Of a grammar in Lark's notation. What it ignores does not stand at the beginning, as there. Special tokens
        are looked up when it is compiled, so ``tokenizer_info`` is not needed. ``named_grammars``: what ``@name``
        stands for."""
        given = {
            name: each.constraint
            if isinstance(each, Grammar)
            else lark_grammar(each, allow_initial_skip=False)
            for name, each in (named_grammars or {}).items()
        }
        return Grammar(lark_grammar(lark_string, grammars=given, allow_initial_skip=False))

    @staticmethod
    def from_structural_tag(tag: Any, triggers: Sequence[str] | None = None) -> Grammar:
        """Of a structural tag: a ``StructuralTag``, a dict, JSON text or an object with ``model_dump_json``. With
        ``triggers``: of a list of ``StructuralTagItem``, the deprecated form."""
        if triggers is not None:
            tag = StructuralTag.from_legacy_structural_tag(tag, list(triggers))
        document = tag if isinstance(tag, (str, dict)) else json.loads(tag.model_dump_json())
        make = raising(structural_tag, InvalidStructuralTagError)
        return Grammar(make(document), functools.partial(_tag_over, document))

    @staticmethod
    def deserialize_json(json_string: str) -> Grammar:
        """Not written: pickle the grammar."""
        raise Unsupported("Grammar.deserialize_json: pickle the Grammar, or serialize what is compiled")

    def serialize_json(self) -> str:
        """Not written: pickle the grammar."""
        raise Unsupported("Grammar.serialize_json: pickle the Grammar, or serialize what is compiled")

    @staticmethod
    def builtin_json_grammar() -> Grammar:
        """Any JSON value."""
        return Grammar(json_value(whitespace=r"[ \n\t\r]*"))

    @staticmethod
    def concat(*grammars: Grammar) -> Grammar:
        """A text of each, one after another."""
        return _assembled(grammars, concat, "concat")

    @staticmethod
    def union(*grammars: Grammar) -> Grammar:
        """A text of any of them."""
        return _assembled(grammars, union, "union")


@raising
def _assembled(grammars: Sequence[Grammar], operation: Any, name: str) -> Grammar:
    if not grammars:
        raise GrammarError(f"Grammar.{name} needs at least one grammar")
    parts = Assembly()
    made = operation(*(parts.expr(each.constraint) for each in grammars))
    return Grammar(parts.finish(made, f"{name} of {len(grammars)} grammars"))


def _tag_over(document: Any, vocabulary: Vocabulary) -> Constraint:
    return structural_tag(document, vocabulary=vocabulary)
