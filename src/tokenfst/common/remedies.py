"""How to make the value that a public call wants from the value that it got: the end of an error message.

One table, ``ROWS``, serves all calls. A row says what is wanted (in the words of the message), what was given, and the
remedy. Remedies use the names of ``import tokenfst``; a test calls them. ``remedy`` looks a value up, and
``arguments.refuse`` adds the remedy to its messages. Classes of other libraries are recognized by their module, so
nothing is imported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One remedy and the errors that it is for. ``wanted``: a pattern for the description of what is wanted. ``given``:
    a test of the given value. ``name``: a pattern for the name of the argument.
    """

    wanted: str
    given: Callable[[Any], bool]
    remedy: str
    name: str = ""


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_bytes(value: Any) -> bool:
    return isinstance(value, bytes | bytearray | memoryview)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_type(value: Any) -> bool:
    """A class, or a type such as ``list[int]``."""
    return isinstance(value, type) or type(value).__module__ in ("typing", "types")


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple | set | frozenset)


def _is_path(value: Any) -> bool:
    return isinstance(value, os.PathLike)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_whole_thing(value: Any) -> bool:
    """One text, function, class or definition, and not several."""
    return _is_text(value) or _is_mapping(value) or callable(value)


def _of(*modules: str, named: str = "") -> Callable[[Any], bool]:
    """A test whether the value's class, or a base of it, is from one of the modules or a module inside them, and has
    ``named`` in its name.
    """

    def test(value: Any) -> bool:
        return any(
            (each.__module__ in modules or each.__module__.startswith(tuple(f"{name}." for name in modules)))
            and named in each.__name__
            for each in type(value).__mro__
        )

    return test


_CONSTRAINT, _AUTOMATON = r"\ban? (Constraint|Language|Grammar)\b", r"\ba TokenAutomaton\b"
_BYTES, _TEXT, _IDS = r"^bytes\b|\bor bytes$", r"\btexts?\b", r"\bintegers?\b"
_ID_NAMES = r"^(token_id|token_ids|ids|tokens|input_ids|draft)\b"
_PROMPT = "^a text, or a list of messages"
_is_tokenizer = _of("transformers", "tokenizers")

ROWS = (
    Row(
        _CONSTRAINT,
        lambda value: _is_text(value) or _is_bytes(value),
        "tokenfst.regex(...) makes a constraint from a pattern, tokenfst.Language.literal(...) from one text, "
        "tokenfst.json_schema(...) from a JSON Schema, tokenfst.lark_grammar(...) from a grammar",
    ),
    Row(
        r"\ban Expr\b",
        _of("tokenfst.automata.languages", named="Language"),
        "language.expr is the expression of a language",
    ),
    Row(
        r"\ban Expr\b",
        lambda value: _is_text(value) or _is_bytes(value),
        "tokenfst.expressions.literal(...) makes one from bytes, tokenfst.expressions.call(...) from a rule's name",
    ),
    Row(_CONSTRAINT, _is_mapping, "tokenfst.json_schema(...) makes a constraint from a JSON Schema"),
    Row(_CONSTRAINT, _is_type, "tokenfst.json_schema(...) makes a constraint from a Python type"),
    Row(_CONSTRAINT, _is_list, "tokenfst.choices(...) makes a constraint from a list of texts"),
    Row(
        r"\ba ComparedSchema\b",
        lambda value: _is_mapping(value) or _is_text(value) or _is_type(value),
        "tokenfst.json_schema(...) makes one from a JSON Schema, its text or a Python type",
    ),
    Row(_CONSTRAINT, _of("re"), "tokenfst.regex(pattern.pattern) makes a constraint from a compiled pattern"),
    Row(r"^a pattern$", _of("re"), "pattern.pattern and pattern.flags are what regex(...) takes"),
    Row(r"^a pattern$", _is_mapping, "tokenfst.json_schema(...) reads a JSON Schema"),
    Row(r"^a pattern$", _is_type, "tokenfst.json_schema(...) reads a Python type"),
    Row(r"^a pattern$", _is_list, "tokenfst.choices(...) makes a constraint from a list of texts"),
    Row(
        _CONSTRAINT,
        _of("tokenfst.automata.transducers", "pynini", "_pynini", "pywrapfst", "_pywrapfst", named="Fst"),
        "tokenfst.Language.from_fst(...) makes a constraint from an acceptor over bytes",
    ),
    Row(
        r"\ba Vocabulary\b",
        lambda value: _is_text(value) or _is_path(value),
        'tokenfst.load_vocabulary(...) reads one by the kind and the name or file of its tokenizer, such as "hf:gpt2", '
        '"hf:tokenizer.json", "tiktoken:o200k_base" or "mistral:tekken_240911"',
    ),
    Row(
        r"\ba Vocabulary\b",
        _is_tokenizer,
        "tokenfst.Vocabulary.from_huggingface(...) makes one from a tokenizer",
    ),
    Row(
        r"\ba Vocabulary\b",
        _of("tiktoken"),
        "tokenfst.Vocabulary.from_tiktoken(...) makes one from an encoding",
    ),
    Row(
        r"\ba Vocabulary\b",
        _of("sentencepiece"),
        "tokenfst.Vocabulary.from_sentencepiece(...) makes one from a processor",
    ),
    Row(
        r"\ba Vocabulary\b",
        _of("mistral_common"),
        "tokenfst.Vocabulary.from_mistral(...) makes one from a tokenizer",
    ),
    Row(
        r"\ba Vocabulary\b",
        lambda value: _is_list(value) or _is_mapping(value),
        "tokenfst.Vocabulary(tokens, eos_token_id=...) makes one from the bytes of its tokens, in the order of ids",
    ),
    Row(
        _AUTOMATON,
        _of("tokenfst.automata.languages", "tokenfst.automata.grammars"),
        "tokenfst.compile(constraint, vocabulary) makes one from a constraint",
    ),
    Row(
        _AUTOMATON,
        _of("tokenfst._native", named="Matcher"),
        "give the automaton that the matcher was made of",
    ),
    Row(
        _AUTOMATON,
        lambda value: _is_text(value) or _is_path(value),
        "tokenfst.load(path, vocabulary) reads one from a file, and tokenfst.compile(tokenfst.regex(...), vocabulary) "
        "makes one from a pattern",
    ),
    Row(
        _AUTOMATON,
        lambda value: _is_mapping(value) or _is_type(value),
        "tokenfst.compile(tokenfst.json_schema(...), vocabulary) makes one from a schema or a Python type",
    ),
    Row(
        _IDS,
        lambda value: _is_text(value) or _is_tokenizer(value),
        "tokenizer(text).input_ids are the token ids of a text; Generator(model, tokenizer) takes texts",
        r"^prompts?\b",
    ),
    Row(
        "^text$",
        _is_tokenizer,
        "tokenfst.Vocabulary.from_huggingface(...) makes a vocabulary from a tokenizer",
        "^spec$",
    ),
    Row(
        _IDS,
        lambda value: _is_text(value) or _is_bytes(value),
        "token ids come from the model's tokenizer, or from vocabulary.encode_greedy(...) for bytes",
        _ID_NAMES,
    ),
    Row(r"^an integer", _is_list, "accept_tokens(...) takes a list of token ids", r"^token_id$"),
    Row(
        r"^(an integer|a number)\b",
        lambda value: bool(getattr(value, "shape", None)) and len(value) == 1,
        "value.item() takes the number out of an array",
    ),
    Row(
        "^a causal model",
        _is_text,
        "AutoModelForCausalLM.from_pretrained(name) of transformers loads one by its name, and "
        "AutoTokenizer.from_pretrained(name) its tokenizer",
    ),
    Row("^a causal model", _is_tokenizer, "the model comes first, then its tokenizer"),
    Row(
        "^the model's tokenizer of transformers$",
        lambda value: value is None or _is_text(value),
        "AutoTokenizer.from_pretrained(name) loads it by the name of the model",
    ),
    Row(
        "^the model's tokenizer of transformers$",
        _of("tokenfst.tokenizers", named="Vocabulary"),
        "a Vocabulary is given as vocabulary=..., beside the tokenizer",
    ),
    Row(_PROMPT, _is_list, "Generator.batch(prompts, targets) takes several prompts"),
    Row(
        _PROMPT,
        lambda value: _is_type(value) or getattr(value, "never_a_list", False),
        "the prompt comes first, then the target",
    ),
    Row(
        _PROMPT,
        lambda value: hasattr(value, "shape") or _is_mapping(value),
        "give the text itself, from which token ids are made here; messages are a list",
    ),
    Row(
        r"^(a list of (prompts|functions|tools|logits processors)|an iterable)$",
        _is_whole_thing,
        "put it in a list",
    ),
    Row(
        r"\b(sequence|iterable|collection|list) of .*\btexts\b",
        lambda value: _is_text(value) or _is_bytes(value),
        "put one text in a list; list(...) makes a list of the characters of a text",
    ),
    Row(
        r"\b(sequence|iterable|collection|list) of ",
        lambda value: getattr(value, "never_a_list", False),
        "put it in a list",
    ),
    Row(
        r"^a list of (prompts|functions)$",
        lambda value: hasattr(value, "__iter__"),
        "list(...) makes one from it",
    ),
    Row(_BYTES, _is_text, "text.encode() makes bytes from text"),
    Row(_TEXT, _is_bytes, "data.decode() makes text from bytes"),
    Row(
        r"\ba random\.Random\b",
        _is_whole,
        "random.Random(...) makes one from a seed; for several texts, call sample() several times",
    ),
    Row(r"\ba numpy Generator\b", _is_whole, "numpy.random.default_rng(...) makes one from a seed"),
    Row(r"\ba Budget\b", _is_mapping, "tokenfst.Budget(**fields) makes one from its fields"),
    Row(
        r"\ba Budget\b",
        lambda value: isinstance(value, int | float | str),
        "tokenfst.Budget(seconds=..., bytes=..., states=...) says what the number bounds",
    ),
)
"""The first row that fits gives the remedy."""


READ_FILE = 'the text of a file is pathlib.Path("...").read_text()'
"""The remedy for the name of a file in place of its text."""
_FILE_NAME = re.compile(r"[^\n{}\"']*[^\n{}\"'\s./\\]\.(json|lark|gbnf|ebnf|g4|txt)\s*", re.IGNORECASE)


def looks_like_a_file(text: str) -> bool:
    """Whether a text that should be a schema or a grammar is rather the name of a file with one."""
    return len(text) < 1000 and _FILE_NAME.fullmatch(text) is not None


def remedy(wanted: str, value: object, name: str = "") -> str:
    """How to make what is ``wanted`` (in the words of a message) from ``value``, which was given as the argument
    ``name``; empty if no row fits.
    """
    for row in ROWS:
        if row.given(value) and re.search(row.wanted, wanted) and re.search(row.name, name):
            return row.remedy
    return ""
