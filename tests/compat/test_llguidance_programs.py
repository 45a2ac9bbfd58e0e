"""tokenfst.compat.llguidance: grammars from one notation to the other, the program, masks of MLX."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_model

import tokenfst.compat.llguidance as ours
from tests.support.engines.peers import peer
from tokenfst import gbnf, lark_grammar
from tokenfst.compat.llguidance import cli
from tokenfst.compat.llguidance.gbnf_to_lark import GbnfToLarkError, any_to_lark, gbnf_to_lark, main
from tokenfst.errors import MaskBufferError, UnsupportedPatternError

SAME_TEXT = [
    'root ::= "a" b\nb ::= [a-c]',
    'root ::= ws "x" [0-9]{2,3} ws\nws ::= [ \\t]*',
    'root ::= "a" | ""',
    "root ::= <tool>".replace("<tool>", '"tool"'),
]
"""Grammars that llguidance writes to the letter alike, but for empty lines."""
GRAMMARS = [
    *SAME_TEXT,
    'root ::= (("a" | "b")? c)+ \n\nc ::= [^\\n"\\\\\\]/-] | ""\n',
    'root ::= camelCase camel-case "\\n\\t\\x41é"\ncamelCase ::= [0-9]{2}\ncamel-case ::= .{2}  ("x"{2,}){0,1}',
    'root ::= 1a _b\n1a ::= "1"\n_b ::= ("q"?)* 1a | "z"',
    'root ::= [&-~|&&--]{3} a?\na ::= ("x" "y")* # a comment',
    'root ::= start\nstart ::= "s"{0,2} [\\x00-\\x1f\\u00e9-\\U0001F600]',
]


@pytest.mark.parametrize("text", GRAMMARS)
def test_a_grammar_means_the_same_in_the_other_notation(text: str) -> None:
    written = gbnf_to_lark(text)
    assert gbnf(text).to_language().equivalent(lark_grammar(written).to_language())
    assert any_to_lark(text) == any_to_lark(written) == written


def test_a_grammar_that_needs_a_stack_and_tokens() -> None:
    nested = lark_grammar(gbnf_to_lark('root ::= "(" root ")" | one\none ::= "1"'))
    assert nested.accepts("((1))") and not nested.accepts("((1)")
    assert gbnf_to_lark("root ::= <tool> | <[12]> | !<[12]>").endswith(
        "start: <tool>\n     | <[12]>\n     | <[^12]>\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("root ::= a", "line 1, column 10: the rule 'a' is not defined"),
        ('a ::= "x"', "the start rule 'root' is not defined"),
        ('root ::= "x"\nroot ::= "y"', "line 2, column 1: the rule 'root' is defined twice"),
        ("root ::= [", "does not end"),
        ('root ::= "a"{3,2}', "is not valid: its bounds"),
    ],
)
def test_what_is_no_grammar(text: str, message: str) -> None:
    with pytest.raises(GbnfToLarkError, match=message):
        gbnf_to_lark(text)


def test_what_the_other_notation_cannot_say() -> None:
    with pytest.raises(UnsupportedPatternError, match="by its id"):
        gbnf_to_lark("root ::= !<tool>")
    with pytest.raises(UnsupportedPatternError, match="#x41 is a comment here"):
        gbnf_to_lark("root ::= #x41")


@pytest.mark.parametrize("text", SAME_TEXT)
def test_it_is_written_as_llguidance_writes_it(text: str) -> None:
    theirs = peer("llguidance.gbnf_to_lark")
    both = [
        [line for line in each.splitlines() if line]
        for each in (gbnf_to_lark(text), theirs.gbnf_to_lark(text))
    ]
    assert both[0] == both[1]


def test_files_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.gbnf"
    path.write_text('root ::= "é"\n', "utf-8")
    main([str(path)])
    assert path.with_suffix(".lark").read_text("utf-8") == '%llguidance {}\n\nstart: "é"\n'
    with pytest.raises(SystemExit, match="usage"):
        main([])


def test_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema, text = tmp_path / "a.json", tmp_path / "a.txt"
    small_model.load().tokenizer.save_pretrained(tmp_path)
    schema.write_text(json.dumps({"enum": ["yes"]}), "utf-8")
    for written, refused in (('"yes"', False), ('"no"', True)):
        text.write_text(written, "utf-8")
        cli.main(["--tokenizer", str(tmp_path), "--json-schema", str(schema), "--text", str(text)])
        assert ("not in mask" in capsys.readouterr().out) == refused
    with pytest.raises(SystemExit):
        cli.main(["--tokenizer", str(tmp_path)])
    assert "--lark or --json-schema" in capsys.readouterr().err
    tmp_path.joinpath("tokenizer_config.json").unlink()
    with pytest.raises(SystemExit):
        cli.main(["--tokenizer", str(tmp_path), "--json-schema", str(schema)])
    assert "end token" in capsys.readouterr().err


def test_masks_of_mlx() -> None:
    mx: Any = pytest.importorskip("mlx.core", reason="mlx is not installed: make test-compat")
    from tokenfst.compat.llguidance.mlx import apply_token_bitmask

    tokenizer = ours.LLTokenizer("byte")
    matcher = ours.LLMatcher(tokenizer, ours.grammar_from("regex", "[ab]"))
    mask = ours.allocate_token_bitmask(1, tokenizer.vocab_size)
    ours.fill_next_token_bitmask(matcher, mask)
    for logits in (mx.zeros((1, 300)), mx.zeros(262), mx.zeros((1, 200), mx.bfloat16)):
        found = apply_token_bitmask(logits, mask)
        assert found.shape == (1, logits.shape[-1]) and found.dtype == logits.dtype
        assert np.flatnonzero(np.array(found[0].astype(mx.float32)) == 0).tolist() == [97, 98]
    with pytest.raises(MaskBufferError, match="as many rows"):
        apply_token_bitmask(mx.zeros((2, 262)), mask)
