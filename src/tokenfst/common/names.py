"""The message for a name that ``tokenfst`` does not have.

The message says what another library's name is called here, or suggests similar names. This module is imported only
when a name was not found.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

ELSEWHERE = {
    # outlines
    "from_transformers": "Generator(model, tokenizer) takes them as they are",
    "from_llamacpp": "Generator(Llama(...)) takes it as it is",
    "from_mlxlm": "Generator(*mlx_lm.load(...)) takes them as they are",
    "Transformers": "Generator(model, tokenizer) takes them as they are",
    "Regex": "regex",
    "CFG": "lark_grammar",
    "JsonSchema": "json_schema",
    "Choice": "choices",
    "choice": "choices",
    "cfg": "lark_grammar, gbnf, ebnf",
    "json": "json_schema",
    "JSON": "json_schema",
    # xgrammar
    "GrammarCompiler": "compile(constraint, vocabulary); tokenfst.compat.xgrammar has this class",
    "CompiledGrammar": "TokenAutomaton; tokenfst.compat.xgrammar has this class",
    "GrammarMatcher": "compile(constraint, vocabulary).matcher(); tokenfst.compat.xgrammar has this class",
    "TokenizerInfo": "Vocabulary; tokenfst.compat.xgrammar has this class",
    "StructuralTag": "structural_tag",
    # llguidance, guidance
    "LLMatcher": "compile(constraint, vocabulary).matcher(); tokenfst.compat.llguidance has this class",
    "LLTokenizer": "Vocabulary; tokenfst.compat.llguidance has this class",
    "LLInterpreter": "Matcher; tokenfst.compat.llguidance has this class",
    "grammar_from": "regex, json_schema, lark_grammar; tokenfst.compat.llguidance has this function",
    "gen": "Generator",
    "select": "choices",
    # what one tries
    "Regexp": "regex",
    "pattern": "regex",
    "schema": "json_schema",
    "pydantic": "json_schema",
    "from_pydantic": "json_schema",
    "grammar": "lark_grammar, gbnf, ebnf",
    "lark": "lark_grammar",
    "bnf": "ebnf, gbnf",
    "Tokenizer": "Vocabulary, load_vocabulary",
    "tokenizer": "load_vocabulary",
    "vocabulary": "load_vocabulary",
    "Automaton": "TokenAutomaton",
    "LogitsProcessor": "ConstraintLogitsProcessor",
    "logits_processor": "ConstraintLogitsProcessor",
    "save": "automaton.save(path)",
}
"""Names from other libraries and likely guesses, each with its counterpart here."""


_ALIKE = 0.75
"""The least similarity of two names, from 0 to 1, at which one is suggested for the other (``difflib``'s cutoff)."""


def unknown(module: str, name: str, known: Iterable[str]) -> str:
    """The message for a name that a module does not have."""
    said = f"module {module!r} has no attribute {name!r}"
    if name in ELSEWHERE:
        return f"{said}; here: {ELSEWHERE[name]}"
    plain: dict[str, list[str]] = {}
    for each in known:
        plain.setdefault(_plain(each), []).append(each)
    near = difflib.get_close_matches(_plain(name), plain, 3, _ALIKE)
    return (
        f"{said}; did you mean {' or '.join(each for key in near for each in plain[key])}?" if near else said
    )


def _plain(name: str) -> str:
    return name.lower().replace("_", "")
