"""Shows the tokens of a text under a grammar, one by one, as llguidance's program does.

Run it with ``python -m tokenfst.compat.llguidance.cli``. For more, see ``tokenfst check`` and ``tokenfst draw --text``
(docs/command-line.md).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenfst.compat.llguidance.classes.interpreter import LLInterpreter
from tokenfst.compat.llguidance.classes.tokenizer import LLTokenizer
from tokenfst.errors import TokenfstError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tokens of a text up to the first one that the grammar does not allow."""
    parser = argparse.ArgumentParser(
        prog="python -m tokenfst.compat.llguidance.cli", description="The tokens of a text under a grammar."
    )
    parser.add_argument(
        "--tokenizer",
        default="microsoft/Phi-3.5-mini-instruct",
        help="a tokenizer.json, a folder with one, or a name on the Hugging Face hub",
    )
    parser.add_argument("--lark", help="a file with a grammar in Lark's notation")
    parser.add_argument("--json-schema", help="a file with a JSON Schema")
    parser.add_argument("--text", help="a file with a text, for example one that a model has written")
    parser.add_argument("--log-level", default=1, type=int, help="has no effect")
    parser.add_argument(
        "--ff-tokens", action="store_true", help="accept forced tokens without computing a mask"
    )
    parser.add_argument("--backtrack", action="store_true", help="has no effect: no token is taken back")
    given = parser.parse_args(arguments)
    grammar: dict[str, Any] = {}
    if given.lark:
        grammar["lark_grammar"] = Path(given.lark).read_text("utf-8")
    if given.json_schema:
        grammar["json_schema"] = json.loads(Path(given.json_schema).read_text("utf-8"))
    if not grammar:
        parser.error("there is no grammar: give --lark or --json-schema")
    try:
        tokenizer = _tokenizer(given.tokenizer)
    except TokenfstError as error:
        parser.error(f"--tokenizer: {error}")
    tokens = tokenizer.tokenize_str(Path(given.text).read_text("utf-8")) if given.text else []
    interpreter = LLInterpreter(
        tokenizer, json.dumps({"grammars": [grammar]}), given.backtrack, given.ff_tokens, given.log_level
    )
    interpreter.start_without_prompt()
    print(tokenizer.dbg_tokens(tokens))
    for token in tokens:
        mask, told = interpreter.compute_mask()
        for each in json.loads(told)["progress"]:
            if each["object"] != "text":
                print(f"\n  {each}")
        print(tokenizer.dbg_tokens([token]), end=" ")
        if mask is None or not mask[token]:
            print("Token not in mask")
            break
        interpreter.commit_token(token)
    print()


def _tokenizer(name: str) -> LLTokenizer:
    """Load a tokenizer by its path or name. The model's folder says which tokens end a text."""
    vocabulary = Vocabulary.from_huggingface(name)
    path = Path(name, "tokenizer.json") if Path(name).is_dir() else Path(name)
    if path.is_file():
        text = path.read_text("utf-8")
    else:
        from tokenizers import Tokenizer

        text = Tokenizer.from_pretrained(name).to_str()
    return LLTokenizer(text, eos_token=vocabulary.eos_token_ids)


if __name__ == "__main__":
    main()
