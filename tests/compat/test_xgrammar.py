"""tokenfst.compat.xgrammar: what its documentation says, and call by call what xgrammar itself answers."""

from __future__ import annotations

import json
import pickle
import re
from typing import Any

import pytest

from tests.support.engines.peers import peer

torch = pytest.importorskip("torch")
import tokenfst.compat.xgrammar as ours

TOKENS = [*(bytes([byte]) for byte in range(256)), b"ab", b"abc", b'{"', b'":', b", ", b"true", b"</s>"]
STOP = len(TOKENS) - 1
OBJECT = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
TEXTS = {
    "regex": ["abbb", "abbbb", "xx", "abc"],
    "ebnf": ["((ab))", "(a", "a)"],
    "schema": ['{"a": true}', '{"a":false}', "{}", '{"a":true,"b":1}'],
    "compact": ['{"a":"ab"}', '{"a": 1}'],
    "fixed": ['{"a": "ab"}', '{"a":"ab"}'],
    "indented": ['{\n  "a": true\n}', '{"a": true}'],
    "enum": ['"a"', "true", "nul", "null"],
    "union": ["ab", "x", "y"],
}


def compiled(module: Any) -> dict[str, Any]:
    compiler = module.GrammarCompiler(module.TokenizerInfo(TOKENS))
    of = module.Grammar.from_regex
    return {
        "regex": compiler.compile_regex("ab{1,3}c?|x+"),
        "ebnf": compiler.compile_grammar('root ::= "(" root ")" | [a-c]+'),
        "schema": compiler.compile_json_schema(OBJECT),
        "compact": compiler.compile_json_schema(
            {"type": "object", "properties": {"a": {"enum": ["ab", 1]}}, "required": ["a"]},
            any_whitespace=False,
            separators=(",", ":"),
        ),
        "fixed": compiler.compile_json_schema(
            {"type": "object", "properties": {"a": {"enum": ["ab", 1]}}, "required": ["a"]},
            any_whitespace=False,
        ),
        "indented": compiler.compile_json_schema(OBJECT, any_whitespace=False, indent=2),
        "enum": compiler.compile_json_schema(json.dumps({"enum": ["a", True, None]})),
        "union": compiler.compile_grammar(
            module.Grammar.union(module.Grammar.concat(of("a"), of("b")), of("x"))
        ),
    }


def allowed(row: Any) -> frozenset[int]:
    return frozenset(token for token in range(len(TOKENS)) if (row[token // 32].item() >> (token % 32)) & 1)


def answers(module: Any) -> list[tuple[Any, ...]]:
    """What a module answers to the same calls."""
    found: list[tuple[Any, ...]] = []
    grammars = compiled(module)
    for kind, grammar in grammars.items():
        for text in TEXTS[kind]:
            matcher = module.GrammarMatcher(grammar)
            row = module.allocate_token_bitmask(2, len(TOKENS))
            for byte in text.encode():
                matcher.fill_next_token_bitmask(row, 1)
                found.append((kind, text, "mask", allowed(row[1])))
                found.append((kind, text, "accepted", accepted := matcher.accept_token(byte)))
                if not accepted:
                    break
            found.append((kind, text, "whole", matcher.is_completed(), matcher.is_terminated()))
            found.append((kind, text, "stop", matcher.accept_token(STOP), matcher.is_terminated()))
            found.append((kind, text, "after the end", matcher.accept_token(97)))
            if matcher.is_terminated():
                matcher.rollback(1)
                found.append((kind, text, "rolled back", matcher.is_terminated(), matcher.is_completed()))
            matcher.reset()
            found.append((kind, text, "string", matcher.accept_string(text), matcher.is_completed()))
            fork = matcher.fork()
            matcher.reset()
            found.append((kind, text, "fork", fork.is_completed(), matcher.is_completed()))
            endless = module.GrammarMatcher(grammar, terminate_without_stop_token=True)
            steps = [endless.accept_token(byte) for byte in text.encode()]
            found.append((kind, text, "without a stop", steps, endless.is_terminated()))
            other = module.GrammarMatcher(grammar, override_stop_tokens=[35])
            steps = [other.accept_token(byte) for byte in text.encode()]
            found.append((kind, text, "another stop", steps, other.accept_token(35), other.is_terminated()))
        found.append((kind, "jump", module.GrammarMatcher(grammar).find_jump_forward_string()))
    found.append(("refused", refused(lambda: compiled_regex(module, "("))))
    matcher = module.GrammarMatcher(grammars["regex"])
    found.append(("out of range", matcher.accept_token(10_000), matcher.accept_token(STOP)))
    found.append(("rollback", refused(lambda: matcher.rollback(1))))
    three = [module.GrammarMatcher(grammars["regex"]) for _ in range(3)]
    bitmask = module.allocate_token_bitmask(5, len(TOKENS))
    module.BatchGrammarMatcher().batch_fill_next_token_bitmask(three, bitmask, [4, 0, 2])
    found.append(("batch", bitmask.tolist()))
    found.append(("batch", module.BatchGrammarMatcher.batch_accept_token(three, [97, 98, 120])))
    found.append(("batch", module.BatchGrammarMatcher.batch_accept_string(three, ["b", "x", "xx"])))
    module.BatchGrammarMatcher.batch_rollback(three[2:], 2)
    found.append(("batch", [each.is_completed() for each in three]))
    for indices in (None, [1]):
        logits, bitmask = torch.zeros(2, len(TOKENS)), module.allocate_token_bitmask(2, len(TOKENS))
        module.GrammarMatcher(grammars["regex"]).fill_next_token_bitmask(bitmask, 1)
        module.apply_token_bitmask_inplace(logits, bitmask, indices=indices)
        found.append(("applied", torch.isinf(logits).tolist()))
        module.reset_token_bitmask(bitmask)
        found.append(("reset", bitmask.tolist()))
    return found


def compiled_regex(module: Any, pattern: str) -> Any:
    return module.GrammarCompiler(module.TokenizerInfo(TOKENS)).compile_regex(pattern)


def refused(call: Any) -> bool:
    try:
        call()
    except RuntimeError:
        return True
    return False


def test_it_answers_as_xgrammar_does():
    theirs = peer("xgrammar")
    found, wanted = answers(ours), answers(theirs)
    assert len(found) == len(wanted)
    for mine, other in zip(found, wanted, strict=True):
        assert mine == other


def test_it_answers_what_its_documentation_says():
    found = {each[:3]: each[3:] for each in answers(ours) if len(each) > 3}
    assert found["regex", "abbb", "whole"] == (True, False)
    assert found["regex", "abbb", "stop"] == (True, True)
    assert found["regex", "abbbb", "stop"] == (True, True) or found["regex", "abbbb", "accepted"] == (False,)
    assert found["ebnf", "(a", "whole"] == (False, False)
    assert found["schema", '{"a":true,"b":1}', "string"] == (False, False)
    assert found["enum", "null", "without a stop"] == ([True] * 4, True)


def test_the_compiler_keeps_what_it_compiled():
    compiler = ours.GrammarCompiler(ours.TokenizerInfo(TOKENS))
    one = compiler.compile_regex("a+")
    assert compiler.compile_regex("a+") is one and compiler.compile_json_schema(OBJECT) is not one
    assert compiler.compile_json_schema(OBJECT) is compiler.compile_json_schema(OBJECT)
    assert compiler.compile_json_schema(OBJECT, strict_mode=False) is not compiler.compile_json_schema(OBJECT)
    assert compiler.get_cache_size_bytes() > 0
    compiler.clear_cache()
    assert compiler.get_cache_size_bytes() == 0 and compiler.compile_regex("a+") is not one
    small = ours.GrammarCompiler(ours.TokenizerInfo(TOKENS), cache_limit_bytes=1)
    assert small.compile_regex("a") is small.compile_regex("a")
    small.compile_regex("b")
    assert small.compile_regex("a") is not None
    assert small.compile_builtin_json_grammar().memory_size_bytes > 0


def test_tokens_by_kinds_of_vocabularies():
    kinds = ours.VocabType
    raw = ours.TokenizerInfo(["a", "é", "</s>"])
    assert raw.decoded_vocab == [b"a", "é".encode(), b""] and raw.stop_token_ids == [2]
    fallback = ours.TokenizerInfo(["<0xC3>", "▁a", "x"], kinds.BYTE_FALLBACK, stop_token_ids=2, vocab_size=5)
    assert fallback.decoded_vocab == [b"\xc3", b" a", b"", b"", b""] and fallback.vocab_size == 5
    assert fallback.special_token_ids == [2, 3, 4]
    assert ours.TokenizerInfo(["Ġa", "Ã", "x"], kinds.BYTE_LEVEL, stop_token_ids=[2]).decoded_vocab == [
        b" a",
        b"\xc3",
        b"",
    ]


def test_stop_tokens_are_found_by_their_names():
    names = [
        "</s>",
        "<eos>",
        "<|eos|>",
        "<|eot_id|>",
        "<|end_of_text|>",
        "<|endoftext|>",
        "<end_of_turn>",
        "<｜end▁of▁sentence｜>",
    ]
    assert ours.TokenizerInfo(["a", *names, "<EOS>"]).stop_token_ids == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("token", ["<0xZZ>", "<0x+1>", "<0x 1>", "<0x1_>", "<0x  >"])
def test_a_token_that_names_no_byte_is_named(token):
    with pytest.raises(RuntimeError, match=f"{re.escape(token)}.* names no byte"):
        ours.TokenizerInfo(["a", token], ours.VocabType.BYTE_FALLBACK)


def test_a_vocabulary_wider_than_the_logits_is_a_runtime_error():
    with pytest.raises(RuntimeError, match="2 tokens"):
        ours.TokenizerInfo(["a", "b"], vocab_size=1)


def test_a_draft_tree_and_a_compiled_grammar_that_travels():
    grammar = compiled(ours)["regex"]
    matcher = ours.GrammarMatcher(pickle.loads(pickle.dumps(grammar)))
    bitmask = ours.allocate_token_bitmask(3, len(TOKENS))
    assert matcher.accept_token(97)
    tree = [torch.tensor(each) for each in ([1, 2, -1], [-1, -1, -1], [97, 98, 98])]
    temperatures = torch.zeros(3)
    assert matcher.traverse_draft_tree(*tree, bitmask, temperatures=temperatures)
    assert (
        ord("c") in allowed(bitmask[1])
        and STOP in allowed(bitmask[2])
        and temperatures.tolist() == [-1.0] * 3
    )


def test_strict_mode_allows_no_members_where_none_are_listed():
    nothing = {"type": "object", "properties": {"x": {"type": "object", "properties": {}}}}
    compiler = ours.GrammarCompiler(ours.TokenizerInfo(TOKENS))
    for strict in (True, False):
        matcher = ours.GrammarMatcher(compiler.compile_json_schema(nothing, strict_mode=strict))
        assert matcher.accept_string('{"x":{"y":1}}') is not strict
    tag = {"type": "json_schema", "json_schema": nothing}
    matcher = ours.GrammarMatcher(compiler.compile_structural_tag({"type": "structural_tag", "format": tag}))
    assert not matcher.accept_string('{"x":{"y":1}}') and matcher.accept_string('{"x":{}}')


def small(**options: Any) -> Any:
    """A matcher of ``ab?`` over 31 letters and a stop token."""
    info = ours.TokenizerInfo([*(bytes([97 + place]) for place in range(31)), b"</s>"])
    return ours.GrammarMatcher(ours.GrammarCompiler(info).compile_regex("ab?"), **options)


def test_a_matcher_that_terminates_without_stop_tokens_allows_none():
    matcher = small(terminate_without_stop_token=True)
    assert matcher.accept_token(0) and matcher.is_terminated()
    bitmask = ours.allocate_token_bitmask(2, 32)
    assert matcher.fill_next_token_bitmask(bitmask) and bitmask[0].tolist() == [2]
    ours.BatchGrammarMatcher().batch_fill_next_token_bitmask([matcher, small()], bitmask, [1, 0])
    assert bitmask.tolist() == [[1], [2]]
    assert not matcher.accept_token(31) and matcher.accept_token(1)
    matcher.reset()
    tree = [torch.tensor(each) for each in ([1, 2, -1], [-1, -1, -1], [0, 0, 31])]
    rows = ours.allocate_token_bitmask(3, 32)
    assert matcher.traverse_draft_tree(*tree, rows) and rows.tolist() == [[1], [2], [0]]


def test_temperatures_of_a_draft_tree_are_those_of_its_nodes():
    info = ours.TokenizerInfo([b"a", b"b", b"c", b"</s>"])
    grammar = 'root ::= a b\na[temperature=0.25] ::= "a" | "c"\nb[temperature=0.75] ::= "bc" | "c"'
    matcher = ours.GrammarMatcher(
        ours.GrammarCompiler(info).compile_grammar(grammar), default_temperature=0.5
    )
    # The root has the children a, b (refused, with a child) and c; a has the child b, and c has the child c.
    tree = [torch.tensor(each) for each in ([1, 2, -1, 4, -1, 6, -1], [-1, 3, -1, 5, -1, -1, -1])]
    tokens = torch.tensor([0, 0, 1, 1, 0, 2, 2])
    bitmask, temperatures = ours.allocate_token_bitmask(7, 4), torch.zeros(7)
    assert matcher.traverse_draft_tree(*tree, tokens, bitmask, temperatures=temperatures)
    assert temperatures.tolist() == [0.25, 0.75, 0.75, -1, -1, 0.75, 0.5]
    assert matcher.temperature == 0.25 and matcher.accept_token(0)
    for wrong in (torch.zeros(2), torch.zeros(7, dtype=torch.float64)):
        with pytest.raises(RuntimeError, match="temperatures"):
            matcher.traverse_draft_tree(*tree, tokens, bitmask, temperatures=wrong)


def test_a_tokenizer_without_a_stop_token_has_masks_of_its_own_width():
    info = ours.TokenizerInfo([bytes([97 + place]) for place in range(32)])
    assert info.stop_token_ids == [] and info.hidden_tokens == 1
    matcher = ours.GrammarMatcher(ours.GrammarCompiler(info).compile_regex("ab?"))
    one = ours.allocate_token_bitmask(1, 32)[0]
    assert matcher.fill_next_token_bitmask(one) and one.tolist() == [1]
    tree = [torch.tensor(each) for each in ([1, 2, -1], [-1, -1, -1], [0, 0, 1])]
    rows = ours.allocate_token_bitmask(3, 32)
    assert matcher.traverse_draft_tree(*tree, rows) and rows.tolist() == [[1], [2], [0]]


@pytest.mark.parametrize("rows", [[0, 1], [], [2], [-1]])
def test_rows_of_a_batch_are_one_for_each_matcher_and_inside_of_the_bitmask(rows):
    bitmask = ours.allocate_token_bitmask(2, 32)
    for options in ({}, {"terminate_without_stop_token": True}):
        with pytest.raises(RuntimeError, match="indices, from 0 to 1"):
            ours.BatchGrammarMatcher().batch_fill_next_token_bitmask([small(**options)], bitmask, rows)
    assert bitmask.tolist() == [[-1], [-1]]


@pytest.mark.parametrize(
    "call",
    [
        lambda: ours.Grammar.from_json_schema({"type": "nonsense"}),
        lambda: ours.Grammar.from_lark("start: @a"),
        lambda: ours.Grammar.from_structural_tag([], []),
        lambda: ours.Grammar.from_json_schema({"const": 1, "type": "string"}),
        lambda: ours.Grammar.from_ebnf("root ::= nothing"),
        lambda: ours.Grammar.union(),
        lambda: ours.BatchGrammarMatcher.batch_accept_token([], [1]),
    ],
)
def test_what_cannot_be_is_a_runtime_error(call):
    with pytest.raises(RuntimeError):
        call()


def test_errors_of_masks_are_runtime_errors_and_an_unknown_backend_is_a_value_error():
    logits, bitmask = torch.zeros(2, 40), ours.allocate_token_bitmask(1, 40)
    with pytest.raises(RuntimeError, match="1 row"):
        ours.apply_token_bitmask_inplace(logits, bitmask)
    with pytest.raises(RuntimeError, match="twice"):
        ours.apply_token_bitmask_inplace(logits[:1], bitmask, indices=[0, 0])
    with pytest.raises(RuntimeError, match="bitmask"):
        small().fill_next_token_bitmask(ours.allocate_token_bitmask(1, 64))
    with pytest.raises(ValueError, match="torch_native, not 'nope'"):
        ours.apply_token_bitmask_inplace(logits[:1], bitmask, backend="nope")


def test_what_is_not_compiled_is_a_value_error():
    with pytest.raises(ValueError, match="TokenizerInfo"):
        ours.GrammarCompiler(TOKENS)
    with pytest.raises(ValueError, match="compiled"):
        ours.GrammarMatcher(ours.Grammar.from_regex("a"))
    with pytest.raises(RuntimeError, match="terminated"):
        ended = ours.GrammarMatcher(compiled(ours)["regex"])
        assert ended.accept_string("x") and ended.accept_token(STOP)
        ended.fill_next_token_bitmask(ours.allocate_token_bitmask(1, len(TOKENS)))
