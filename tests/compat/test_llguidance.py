"""tokenfst.compat.llguidance: what its documentation says, and call by call what llguidance itself answers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import small_model

import tokenfst.compat.llguidance as ours
from tests.support.engines.peers import peer
from tokenfst import Vocabulary

torch = pytest.importorskip("torch")
OBJECT = {
    "type": "object",
    "properties": {"a": {"type": "boolean"}},
    "required": ["a"],
    "additionalProperties": False,
}
TEXTS = {
    "regex": ["abbb", "abbbb", "xx", "abc"],
    "lark": ["((ab))", "(ab", "ab)"],
    "schema": ['{"a": true}', '{"a":false}', "{}", '{"a":true,"b":1}'],
    "enum": ['"a"', "true", "nul", "null"],
}
JSON = {"schema", "enum"}


@pytest.fixture(scope="module")
def specification() -> tuple[str, int]:
    tokenizer = small_model.load().tokenizer
    return tokenizer.backend_tokenizer.to_str(), tokenizer.eos_token_id


def grammars(module: Any) -> dict[str, str]:
    of = module.LLMatcher
    return {
        "regex": of.grammar_from_regex("ab{1,3}c?|x+"),
        "lark": of.grammar_from_lark('start: "(" start ")" | /[a-c]+/'),
        "schema": of.grammar_from_json_schema(OBJECT),
        "enum": of.grammar_from_json_schema(json.dumps({"enum": ["a", True, None]})),
    }


def answers(module: Any, tokenizer: Any, spelled: Vocabulary) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = [("size", tokenizer.vocab_size, tokenizer.eos_token)]
    for kind, grammar in grammars(module).items():
        found.append((kind, "valid", module.LLMatcher.validate_grammar(grammar)))
        for text in TEXTS[kind]:
            matcher = module.LLMatcher(tokenizer, grammar)
            tokens = [spelled.ids(bytes([byte]))[0] for byte in text.encode()]
            found.append((kind, text, "validated", matcher.validate_tokens(tokens)))
            for token in tokens:
                bits = np.frombuffer(matcher.compute_bitmask(), np.uint8)
                mask = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
                found.append((kind, text, "mask", frozenset(mask.tolist())))
                if matcher.validate_tokens([token]) == 0:
                    break
                found.append((kind, text, "taken", matcher.consume_token(token)))
            found.append(
                (kind, text, "whole", matcher.is_accepting(), matcher.is_stopped(), matcher.is_error())
            )
            copy = matcher.deep_copy()
            if matcher.is_accepting():
                found.append((kind, text, "end", matcher.consume_token(tokenizer.eos_token)))
                found.append((kind, text, "ended", matcher.is_stopped(), matcher.stop_reason()))
            found.append((kind, text, "copy", copy.is_stopped(), copy.is_accepting()))
            found.append((kind, text, "back", copy.rollback(1), copy.is_accepting()))
            found.append((kind, text, "reset", copy.reset(), copy.is_accepting()))
            found.append((kind, text, "some", copy.try_consume_tokens(tokens), copy.is_error()))
            found.append((kind, text, "wrong", copy.consume_token(spelled.ids(b"\x01")[0]), copy.is_error()))
            found.append((kind, text, "stays wrong", copy.consume_tokens(tokens), copy.is_stopped()))
        if kind not in JSON:
            found.append((kind, "forced", module.LLMatcher(tokenizer, grammar).compute_ff_bytes()))
    broken = module.LLMatcher(tokenizer, module.LLMatcher.grammar_from_regex("("))
    found.append(("broken", broken.is_error(), bool(broken.get_error()), broken.is_stopped()))
    found.append(
        ("broken", bool(module.LLMatcher.validate_grammar(module.LLMatcher.grammar_from_regex("("))))
    )
    return found


def test_it_answers_as_llguidance_does(specification):
    theirs = peer("llguidance")
    text, end = specification
    spelled = ours.LLTokenizer(text, eos_token=end).vocabulary
    mine = answers(ours, ours.LLTokenizer(text, eos_token=end), spelled)
    other = answers(theirs, theirs.LLTokenizer(text, eos_token=end), spelled)
    assert len(mine) == len(other)
    for one, two in zip(mine, other, strict=True):
        if one[0] in JSON and one[2] == "mask":  # there, what is certain is cut as the tokenizer cuts it
            assert two[3] and one[3] >= two[3], one[:2]
        else:
            assert one == two


def test_it_answers_what_its_documentation_says(specification):
    text, end = specification
    tokenizer = ours.LLTokenizer(text, eos_token=end)
    spelled = tokenizer.vocabulary
    found = {each[:3]: each[3:] for each in answers(ours, tokenizer, spelled) if len(each) > 3}
    assert found["regex", "abbb", "whole"] == (True, False, False)
    assert found["regex", "abc", "whole"] == (True, True, False)
    assert found["regex", "abc", "ended"] == (True, "NoExtension")
    assert found["lark", "(ab", "whole"] == (False, False, False)
    assert found["enum", "true", "wrong"] == (False, True)


def test_masks_of_many_matchers(specification):
    text, end = specification
    tokenizer = ours.LLTokenizer(text, eos_token=end)
    parts = grammars(ours)
    matchers = [ours.LLMatcher(tokenizer, parts[kind]) for kind in parts]
    matchers.append(ours.LLMatcher(tokenizer, ours.LLMatcher.grammar_from_regex("(")))
    for bitmask in (
        ours.allocate_token_bitmask(6, tokenizer.vocab_size),
        torch.full((6, -(-tokenizer.vocab_size // 32)), -1, dtype=torch.int32),
    ):
        rows = [(matcher, 5 - row) for row, matcher in enumerate(matchers)]
        ours.fill_next_token_bitmask_par(ours.LLExecutor(2), rows, bitmask)
        alone = ours.allocate_token_bitmask(1, tokenizer.vocab_size)
        for matcher, row in rows:
            ours.fill_next_token_bitmask(matcher, alone)
            assert np.array_equal(np.asarray(bitmask)[row], alone[0])
    token = tokenizer.greedy_tokenize("x")[0]
    assert ours.consume_token_par(ours.LLExecutor(), [(matchers[0], token), (matchers[1], token)]) == [
        True,
        False,
    ]
    bias = np.frombuffer(matchers[0].compute_logit_bias(), np.uint8)
    assert len(bias) == tokenizer.vocab_size and set(bias.tolist()) == {0, 200}


def test_grammars_by_format(specification):
    _, end = specification
    tokenizer = ours.from_tokenizer(small_model.load().tokenizer)
    assert tokenizer.eos_tokens == [end] and tokenizer.is_special_token(end)
    for format, source, word in [
        ("choice", '["yes", "no"]', "no"),
        ("gbnf", 'root ::= "a" | "b"', "b"),
        ("lark", 'start: "a"', "a"),
        ("json", '{"const": 1}', "1"),
        ("regex", "[0-9]+", "7"),
        ("llguidance", '{"grammars": [{"lark_grammar": "start: \\"q\\""}]}', "q"),
    ]:
        matcher = ours.LLMatcher(tokenizer, ours.grammar_from(format, source))
        assert not matcher.get_error()
        assert matcher.consume_tokens(tokenizer.greedy_tokenize(word)) and matcher.is_accepting()
    with pytest.raises(ValueError, match="format"):
        ours.grammar_from("nonsense", "")
    for wrong in (
        '{"grammars": []}',
        "{",
        '{"grammars": [{"json_schema": {}, "options": {"nonsense": true}}]}',
    ):
        matcher = ours.LLMatcher(tokenizer, wrong)
        assert matcher.is_error() and ours.LLMatcher.validate_grammar_with_warnings(wrong)[0]
        assert matcher.compute_ff_tokens() == [] and matcher.try_consume_tokens([1]) == 0
    assert tokenizer.decode_str(tokenizer.greedy_tokenize("Zürich")) == "Zürich"
    forced = ours.LLMatcher(tokenizer, ours.grammar_from("choice", '["yes"]'))
    assert forced.compute_ff_bytes() == b"yes" and forced.stop_reason() == "NotStopped"


def both() -> list[Any]:
    """This module, and llguidance itself if it is installed."""
    try:
        return [ours, peer("llguidance")]
    except pytest.skip.Exception:
        return [ours]


def test_end_tokens_after_the_text_has_stopped_are_taken_and_not_counted():
    for module in both():
        tokenizer = module.LLTokenizer("byte")
        stopped = module.LLMatcher(tokenizer, module.LLMatcher.grammar_from_regex("ab?"), log_level=0)
        assert stopped.consume_tokens([97, 98]) and stopped.is_stopped()
        assert all(stopped.consume_token(tokenizer.eos_token) for _ in range(3))
        assert stopped.stop_reason() == "NoExtension" and not stopped.is_error()
        assert stopped.rollback(1) and stopped.validate_tokens([98]) == 1
        ended = module.LLMatcher(tokenizer, module.LLMatcher.grammar_from_regex("ab?"), log_level=0)
        assert ended.consume_token(97) and not ended.is_stopped()
        assert all(ended.consume_token(tokenizer.eos_token) for _ in range(3))
        assert ended.stop_reason() == "EndOfSentence" and ended.rollback(2) and not ended.is_accepting()
        wrong = module.LLMatcher(tokenizer, module.LLMatcher.grammar_from_regex("ab?"), log_level=0)
        assert not wrong.consume_token(120) and wrong.consume_token(tokenizer.eos_token) and wrong.is_error()


def test_a_rollback_beyond_the_beginning_is_an_error():
    for module in both():
        grammar = module.LLMatcher.grammar_from_regex("ab?")
        matcher = module.LLMatcher(module.LLTokenizer("byte"), grammar, log_level=0)
        assert matcher.consume_token(97) and not matcher.rollback(2)
        assert matcher.is_error() and "rollback" in matcher.get_error()
        assert not matcher.consume_token(98) and not matcher.reset()
