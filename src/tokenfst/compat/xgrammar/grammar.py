"""xgrammar's ``Grammar`` and the calls that make one.

A grammar remembers the call that made it: the name of the call and its arguments. ``serialize_json`` writes these,
and ``deserialize_json`` makes the same call again. So the text is small, contains no code, and keeps its meaning as
long as the library reads the arguments as before. Arguments that are not JSON (a Python type, a constraint of
tokenfst) are refused.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tokenfst.automata.expressions.expression import concat, union
from tokenfst.automata.grammars.assembly import Assembly
from tokenfst.automata.json_schema.json_schema import json_schema, json_value
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.notations.ebnf import ebnf
from tokenfst.automata.notations.lark_syntax import lark_grammar
from tokenfst.automata.regex.translate import regex
from tokenfst.automata.structural_tags.structural_tag import structural_tag
from tokenfst.common.plurals import counted
from tokenfst.compat.xgrammar.exception import (
    DeserializeFormatError,
    GrammarError,
    InvalidStructuralTagError,
    Unsupported,
    raising,
)
from tokenfst.compat.xgrammar.structural_tag import StructuralTag
from tokenfst.compat.xgrammar.tokenizer_info import VERSION, TokenizerInfo, written
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


class Made(NamedTuple):
    """The call that made a grammar: its name, and its arguments by name."""

    by: str
    arguments: Mapping[str, Any]

    def written(self) -> dict[str, Any]:
        """The call as JSON values, including grammars among its arguments."""
        return {"made_by": self.by, "arguments": {name: _said(each) for name, each in self.arguments.items()}}


def _said(argument: Any) -> Any:
    if isinstance(argument, Grammar):
        return argument._written()  # a class of this file
    if isinstance(argument, list):
        return [_said(each) for each in argument]
    if isinstance(argument, Mapping) and any(isinstance(each, Grammar) for each in argument.values()):
        return {name: _said(each) for name, each in argument.items()}
    return argument


class Grammar:
    """A constraint: a language or grammar of tokenfst."""

    def __init__(
        self,
        constraint: Constraint,
        over: Callable[[Vocabulary], Constraint] | None = None,
        made: Made | None = None,
    ) -> None:
        """``over``: a function from a vocabulary to the constraint, if the constraint depends on the vocabulary.
        ``made``: the call that made the grammar, if it can be written as JSON.
        """
        self.constraint, self._over, self._made = constraint, over, made

    def over(self, vocabulary: Vocabulary) -> Constraint:
        """The constraint for a vocabulary's tokens."""
        return self.constraint if self._over is None else self._over(vocabulary)

    def __str__(self) -> str:
        return self.constraint.source

    @staticmethod
    @raising
    def from_ebnf(ebnf_string: str, *, root_rule_name: str = "root") -> Grammar:
        """Make a grammar from a text in xgrammar's notation."""
        said = Made("ebnf", {"ebnf_string": ebnf_string, "root_rule_name": root_rule_name})
        return Grammar(ebnf(ebnf_string, root_rule_name), made=said)

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
        """Make a grammar from a JSON Schema: a dict, JSON text or a Python type.

        ``strict_mode``: only members that the schema names are allowed. ``any_order`` requires all required members
        and never repeats one; xgrammar checks neither.
        """
        layout: dict[str, Any]
        if any_whitespace:
            most = "" if max_whitespace_cnt is None else max_whitespace_cnt
            layout = {"whitespace": rf"[ \n\t\r]{{0,{most}}}"}
        else:
            layout = {"separators": separators or ((", " if indent is None else ","), ": "), "indent": indent}
        made = json_schema(
            schema,
            **layout,
            additional_properties="forbid" if strict_mode else "schema",
            property_order="any" if any_order else "schema",
        )
        said = {
            "schema": schema,
            "any_whitespace": any_whitespace,
            "indent": indent,
            "separators": separators and list(separators),
            "strict_mode": strict_mode,
            "max_whitespace_cnt": max_whitespace_cnt,
            "any_order": any_order,
        }
        is_document = isinstance(schema, (str, bool, Mapping))
        return Grammar(made, made=Made("json_schema", said) if is_document else None)

    @staticmethod
    @raising
    def from_regex(regex_string: str, *, print_converted_ebnf: bool = False) -> Grammar:
        """Make a grammar from a regular expression of Python's ``re``, matched in full."""
        return Grammar(regex(regex_string), made=Made("regex", {"regex_string": regex_string}))

    @staticmethod
    @raising
    def from_lark(
        lark_string: str,
        *,
        tokenizer_info: TokenizerInfo | None = None,
        named_grammars: Mapping[str, Grammar | str] | None = None,
    ) -> Grammar:
        """Make a grammar from a text in Lark's notation.

        As in xgrammar, a text cannot begin with what ``%ignore`` names. Special tokens are looked up during
        compilation, so ``tokenizer_info`` is not needed. ``named_grammars``: the grammars that ``@name`` refers to.
        """
        given = {
            name: each.constraint
            if isinstance(each, Grammar)
            else lark_grammar(each, allow_initial_skip=False)
            for name, each in (named_grammars or {}).items()
        }
        said = Made("lark", {"lark_string": lark_string, "named_grammars": dict(named_grammars or {})})
        return Grammar(lark_grammar(lark_string, grammars=given, allow_initial_skip=False), made=said)

    @staticmethod
    def from_structural_tag(tag: Any, triggers: Sequence[str] | None = None) -> Grammar:
        """Make a grammar from a structural tag: a ``StructuralTag``, a dict, JSON text or an object with
        ``model_dump_json``.

        With ``triggers``, from a list of ``StructuralTagItem``, the deprecated form.
        """
        if triggers is not None:
            tag = StructuralTag.from_legacy_structural_tag(tag, list(triggers))
        document = tag if isinstance(tag, (str, dict)) else json.loads(tag.model_dump_json())
        said = Made("structural_tag", {"tag": document})
        return Grammar(_tagged(document, None), functools.partial(_tagged, document), said)

    @staticmethod
    def deserialize_json(json_string: str) -> Grammar:
        """Read the text of ``serialize_json``."""
        return _read(written(json_string, "made_by", "arguments"))

    def serialize_json(self) -> str:
        """The call that made the grammar, as JSON.

        Raises Unsupported if the grammar was made from a Python type or a constraint of tokenfst. Pickle such a
        grammar.
        """
        return json.dumps({"__VERSION__": VERSION, **self._written()}, ensure_ascii=False)

    def _written(self) -> dict[str, Any]:
        if self._made is None:
            raise Unsupported(
                "Grammar.serialize_json: the grammar was made from a Python type or a constraint, which JSON cannot "
                "express: make it from the JSON Schema, or pickle the Grammar"
            )
        return self._made.written()

    @staticmethod
    def builtin_json_grammar() -> Grammar:
        """The grammar of any JSON value."""
        return Grammar(json_value(whitespace=r"[ \n\t\r]*"), made=Made("builtin_json_grammar", {}))

    @staticmethod
    def concat(*grammars: Grammar) -> Grammar:
        """The concatenation of grammars."""
        return _assembled(grammars, concat, "concat")

    @staticmethod
    def union(*grammars: Grammar) -> Grammar:
        """The union of grammars."""
        return _assembled(grammars, union, "union")


@raising
def _assembled(grammars: Sequence[Grammar], operation: Any, name: str) -> Grammar:
    if not grammars:
        raise GrammarError(f"Grammar.{name} needs at least one grammar")
    parts = Assembly()
    made = operation(*(parts.expr(each.constraint) for each in grammars))
    said = Made(name, {"grammars": list(grammars)})
    return Grammar(parts.finish(made, f"{name} of {counted(len(grammars), 'grammar')}"), made=said)


_MAKERS: dict[str, Callable[..., Grammar]] = {
    "ebnf": Grammar.from_ebnf,
    "json_schema": Grammar.from_json_schema,
    "regex": Grammar.from_regex,
    "lark": Grammar.from_lark,
    "structural_tag": Grammar.from_structural_tag,
    "builtin_json_grammar": Grammar.builtin_json_grammar,
    "concat": lambda grammars: Grammar.concat(*grammars),
    "union": lambda grammars: Grammar.union(*grammars),
}


def _read(said: Any) -> Grammar:
    """Make the grammar again with the same call."""
    try:
        make, arguments = _MAKERS[said["made_by"]], dict(said["arguments"])
        if "grammars" in arguments:
            arguments["grammars"] = [_read(each) for each in arguments["grammars"]]
        if named := arguments.get("named_grammars"):
            arguments["named_grammars"] = {
                name: each if isinstance(each, str) else _read(each) for name, each in named.items()
            }
        if arguments.get("separators"):
            arguments["separators"] = tuple(arguments["separators"])
        return make(**arguments)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, GrammarError):
            raise
        raise DeserializeFormatError(f"this is not what serialize_json writes: {error!r}") from None


def _tagged(document: Any, vocabulary: Vocabulary | None) -> Constraint:
    """The constraint of a document, for a vocabulary's tokens if one is given."""
    free = False
    if isinstance(document, str) and '"control_tokens"' in document:
        document = StructuralTag.from_json(document).model_dump()
    if isinstance(document, Mapping) and "control_tokens" in document:
        document = dict(document)
        free = document.pop("control_tokens") is True
    make = raising(structural_tag, InvalidStructuralTagError)
    return make(document, vocabulary=vocabulary, control_tokens=free and vocabulary is not None)
