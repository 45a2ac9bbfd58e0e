"""A logits processor for MLX-LM's loops (docs/engines/mlx.md), and a program that runs it.

python -m tokenfst.compat.xgrammar.contrib.mlxlm --model mlx-community/Qwen2.5-Coder-32B-Instruct-3bit
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from tokenfst.compat.xgrammar.compiler import CompiledGrammar, GrammarCompiler
from tokenfst.compat.xgrammar.tokenizer_info import TokenizerInfo
from tokenfst.decoding.engines.mlx import MLXConstraint, mlx_vocabulary

import mlx.core as mx  # isort: skip  # after engines.mlx, whose error names the extra


class XGrammarLogitsProcessor:
    """A logits processor for one text. Make a new one for each text.

    ``max_rollback_tokens`` has no effect, because any number of tokens can be taken back.
    """

    def __init__(self, grammar: CompiledGrammar, max_rollback_tokens: int = 16) -> None:
        self.vocab_size = grammar.tokenizer_info.vocab_size
        self._constraint = MLXConstraint(grammar.automaton())

    def __call__(self, tokens: mx.array, logits: mx.array) -> mx.array:
        """The logits of shape (1, V), with -inf if a token is not allowed.

        ``tokens``: all ids so far; those of the first call are the prompt.
        """
        return self._constraint(tokens, logits)


def parse_args(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The program's options."""
    parser = argparse.ArgumentParser(description="Print a JSON text that a model generates with MLX-LM.")
    parser.add_argument("--model", required=True, help="a folder, or a name on the Hugging Face hub")
    parser.add_argument("--prompt", default="Generate a simple example JSON. No text. Only the JSON")
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--seed", type=int, default=42)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a JSON text that a model generates."""
    import mlx_lm

    given = parse_args(arguments)
    model, tokenizer, *_ = mlx_lm.load(given.model)
    mx.random.seed(given.seed)
    prompt: Any = given.prompt
    if tokenizer.chat_template is not None:
        said = [{"role": "user", "content": given.prompt}]
        prompt = tokenizer.apply_chat_template(said, add_generation_prompt=True)
    info = TokenizerInfo.from_vocabulary(mlx_vocabulary(tokenizer))
    processor = XGrammarLogitsProcessor(GrammarCompiler(info).compile_builtin_json_grammar())
    print(
        mlx_lm.generate(
            model,
            tokenizer,
            prompt,
            max_tokens=given.max_tokens,
            logits_processors=[processor],
            verbose=False,
        )
    )


if __name__ == "__main__":
    main()
