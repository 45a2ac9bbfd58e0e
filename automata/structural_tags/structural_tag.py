"""The public function of structural tags: from a document to a language, or to a grammar if a part needs a stack."""

from __future__ import annotations

from typing import Any, Literal

from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.languages.language import Language
from tokenfst.automata.structural_tags.building import Builder
from tokenfst.automata.structural_tags.documents.reading import read_document
from tokenfst.automata.structural_tags.schemas import Schemas
from tokenfst.automata.structural_tags.special_tokens import Delimiters, Reading, TokenTable
from tokenfst.automata.structural_tags.token_text import TokenText
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.errors import ConstraintError

__all__ = ["structural_tag"]


@checked
def structural_tag(
    spec: Any,
    *,
    vocabulary: TokenTable | None = None,
    special_tokens: Literal["token", "text", "both"] = "token",
    control_tokens: bool = False,
    whitespace: str = "flexible",
    additional_properties: Literal["schema", "forbid"] = "forbid",
    source: str = "",
    budget: Budget | None = None,
) -> Language | Grammar:
    """The texts of a structural tag, as xgrammar, vLLM and SGLang define them: free text with tagged parts.

    ``spec``: a dict, JSON text, or an object with ``model_dump`` such as ``xgrammar.StructuralTag``; the legacy form
    with ``structures`` is also accepted. A ``grammar`` in it may be any constraint instead of a text. ``vocabulary``:
    defines the special tokens that the strings of the tag name, and the ids of tokens; without a vocabulary, strings
    are text, and token formats name special tokens. ``special_tokens``: how a special token's name in a string is
    matched: as the ``"token"``, as the ``"text"`` that spells it in other tokens, or as ``"both"``. With ``"token"``,
    free text does not contain the spelling of delimiters either. ``control_tokens``: whether unbounded free text may
    contain special tokens that none of its delimiters and excluded strings names; ``any_tokens`` and ``exclude_token``
    may always match such tokens. ``whitespace`` and ``additional_properties`` are those of ``json_schema``; the
    document's ``max_whitespace_cnt`` takes precedence. ``source``: the constraint's name in messages. ``budget``: the
    bounds of the construction.

    Returns a Language if all parts are languages, else a Grammar. Raises StructuralTagError with the JSON pointer of a
    field that is missing, unknown or of the wrong type, of a trigger that can never fire and of a tag that no trigger
    reaches; SchemaError, UnsupportedSchemaError and EmptyLanguageError for the schemas in the document; BudgetExceeded.
    """
    if special_tokens not in ("token", "text", "both"):
        raise ConstraintError(f"special_tokens must be 'token', 'text' or 'both', not {special_tokens!r}")
    reading: Reading = special_tokens
    format = read_document(spec)
    delimiters = Delimiters(vocabulary, reading)
    schemas = Schemas(whitespace, additional_properties, budget)
    builder = Builder(delimiters, schemas, TokenText(delimiters, control_tokens=control_tokens), budget)
    return builder.finish(builder.build(format), source or "structural_tag(...)")
