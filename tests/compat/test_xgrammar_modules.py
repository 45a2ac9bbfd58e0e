"""tokenfst.compat.xgrammar beyond matchers: Lark, structural tags, tokenizers without an end, what is written as JSON,
xgrammar's helpers of tests; call by call what xgrammar itself answers, where it is installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest

from tests.support.engines.peers import peer

torch = pytest.importorskip("torch")
import tokenfst.compat.xgrammar as ours
from tokenfst.errors import ToolError

TOKENS = [*(bytes([byte]) for byte in range(256)), b"ab", b"<tool>", b"</s>"]
LARK = [
    ('start: | "a" | "b"', ["", "a", "ab"]),
    ('start: "a" |', ["", "aa"]),
    ("start:", ["", "a"]),
    ('start: "" "a" ""', ["a", ""]),
    ('%import common.WS\n%ignore WS\nstart: "a" "c".."d"', ["ac", " ac", "a c", "a\nc "]),
    (
        '%grammar_options {"allow_initial_skip": true, "no_forcing": false}\n%ignore " "\nstart: "a" "b"',
        ["ab", " a b"],
    ),
    ('start: "a"{,2} "b"~2', ["bb", "abb", "aaabb"]),
    ('start: a "!"\na[lazy]: /[a-z]*>/', ["ab>!", "!"]),
    ('start: a "!"\na[suffix=">"]: /[a-z]*/', ["ab>!", "ab!"]),
    ('start: %json {"type": "integer"} ";"', ["1;", "x;"]),
    ('start: A\nA: %regex {"substring_chunks": ["ab", "c"]}', ["abc", "a"]),
]
TAG = {"type": "tag", "begin": "<f>", "content": {"type": "const_string", "value": "x"}, "end": "</f>"}
CALL = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}


def submodule(module: Any, name: str) -> Any:
    return import_module(f"{module.__name__}.{name}")


def takes(module: Any, grammar: Any, text: str) -> bool:
    return bool(submodule(module, "testing")._is_grammar_accept_string(grammar, text))


def answers(module: Any) -> list[tuple[Any, ...]]:
    """What a module answers to the same calls."""
    found: list[tuple[Any, ...]] = []
    grammar, tags, testing = module.Grammar, submodule(module, "structural_tag"), submodule(module, "testing")
    for text, words in LARK:
        found.append((text, [takes(module, grammar.from_lark(text), word) for word in words]))
    named = {"one": grammar.from_regex("[0-9]"), "two": 'start: "x"'}
    made = grammar.from_lark("start: @one @two", named_grammars=named)
    found.append(("named", [takes(module, made, word) for word in ("1x", "x1")]))
    items = [module.StructuralTagItem(begin="<f=a>", schema=json.dumps(CALL), end="</f>")]
    legacy = grammar.from_structural_tag(items, ["<f="])
    words = ["", "free", 'a<f=a>{"a":1}</f>b', 'a<f=a>{"a":3}</f>', "<f=b>"]
    found.append(("legacy", [takes(module, legacy, word) for word in words]))
    formats = tags.SequenceFormat(
        elements=[
            tags.OptionalFormat(
                content=tags.TagFormat(**TAG | {"content": tags.RegexFormat(pattern="[0-9]+")})
            ),
            tags.OrFormat(
                elements=[
                    tags.ConstStringFormat(value="end"),
                    tags.JSONSchemaFormat(json_schema={"enum": ["e"]}),
                    tags.RepeatFormat(min=2, max=3, content=tags.GrammarFormat(grammar='root ::= "y"')),
                ]
            ),
        ]
    )
    whole = module.StructuralTag(format=formats)
    again = module.StructuralTag.from_json(whole.model_dump_json())
    for each in (whole, again, json.loads(whole.model_dump_json()), whole.model_dump_json()):
        made = grammar.from_structural_tag(each)
        found.append(
            ("tag", [takes(module, made, word) for word in ("end", "<f>12</f>yy", '"e"', "<f></f>end", "y")])
        )
    info = module.TokenizerInfo([b"a", b"b"])
    matcher = module.GrammarMatcher(
        module.GrammarCompiler(info).compile_regex("ab?"), terminate_without_stop_token=True
    )
    bitmask = module.allocate_token_bitmask(1, info.vocab_size)
    found.append(("sizes", info.vocab_size, info.stop_token_ids, info.decoded_vocab, matcher.stop_token_ids))
    for token in (0, 1):
        found.append(("fill", matcher.fill_next_token_bitmask(bitmask)))
        found.append(("refused", testing._get_masked_tokens_from_bitmask(bitmask, info.vocab_size)))
        found.append(("step", matcher.accept_token(2), matcher.accept_token(token), matcher.is_completed()))
    bools = torch.tensor([[True, False] * 20])
    found.append(("packed", testing.bool_mask_to_bitmask(bools).tolist()))
    found.append(("bits", testing.bitmask_to_bool_mask(testing.bool_mask_to_bitmask(bools), 40).tolist()))
    for chosen in ([5], [5, 40], []):
        one = torch.zeros((1, 64), dtype=torch.bool)
        one[0, chosen] = True
        answer = testing._is_single_token_bitmask(testing.bool_mask_to_bitmask(one), 64)
        found.append(("single", bool(answer[0]), int(answer[1])))
    warm = module.GrammarMatcher(
        module.GrammarCompiler(module.TokenizerInfo(TOKENS)).compile_regex("a"), default_temperature=0.5
    )
    row = torch.zeros(3)
    module.BatchGrammarMatcher.batch_fill_temperature([warm, matcher], row, [2, 0])
    found.append(("temperatures", row.tolist()))
    full = module.TokenizerInfo(TOKENS, stop_token_ids=[258])
    other = module.TokenizerInfo.from_vocab_and_metadata(TOKENS, full.dump_metadata())
    found.append(("metadata", other.vocab_size, other.stop_token_ids, other.vocab_type.value))
    read = module.TokenizerInfo.deserialize_json(full.serialize_json())
    found.append(("tokenizer", read.vocab_size, read.stop_token_ids, read.add_prefix_space))
    compiled = module.GrammarCompiler(full).compile_json_schema(CALL)
    loaded = module.GrammarMatcher(module.CompiledGrammar.deserialize_json(compiled.serialize_json(), full))
    found.append(
        ("loaded", loaded.accept_string('{"a": 1'), loaded.accept_string("2"), loaded.accept_string("}"))
    )
    captured = module.GrammarMatcher(
        module.GrammarCompiler(full).compile_lark('start: pair ";"\npair: one "," one\none[capture]: /[a-z]/')
    )
    captured.accept_string("a,b;")
    found.append(("captures", captured.get_captures()))
    found.append(("depth", module.set_max_recursion_depth(50), module.get_max_recursion_depth()))
    with module.max_recursion_depth(10):
        found.append(("depth", module.get_max_recursion_depth()))
    found.append(("depth", module.get_max_recursion_depth()))
    return found


def test_it_answers_as_xgrammar_does() -> None:
    theirs = peer("xgrammar")
    for mine, other in zip(answers(ours), answers(theirs), strict=True):
        assert mine == other


def test_it_answers_what_its_documentation_says() -> None:
    found = {each[0]: each[1:] for each in answers(ours)}
    assert found["legacy"] == ([True, True, True, False, False],)
    assert found["tag"] == ([True, True, True, False, False],)
    assert found["sizes"] == (2, [], [b"a", b"b"], [])
    assert found["temperatures"] == ([-1.0, 0.0, 0.5],)
    assert found["captures"] == ([("one", b"a"), ("one", b"b")],)
    assert found["loaded"] == (True, False, True)


def test_tools_of_a_model() -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": CALL}}]
    tag = ours.get_model_structural_tag("llama", tools, tool_choice="required", reasoning=False)
    assert isinstance(tag, ours.StructuralTag) and tag.model_dump()["type"] == "structural_tag"
    grammar = ours.Grammar.from_structural_tag(tag)
    assert takes(ours, grammar, '{"name": "f", "parameters": {"a": 1}}')
    assert not takes(ours, grammar, '{"name": "g", "parameters": {"a": 1}}')
    with pytest.raises(ToolError):
        ours.get_model_structural_tag("no such model", tools)


def test_what_is_read_is_checked() -> None:
    info = ours.TokenizerInfo(TOKENS)
    compiled = json.loads(ours.GrammarCompiler(info).compile_regex("a+").serialize_json())
    deserialize = ours.CompiledGrammar.deserialize_json
    with pytest.raises(ours.InvalidJSONError):
        deserialize("{", info)
    with pytest.raises(ours.DeserializeVersionError):
        deserialize(json.dumps(compiled | {"__VERSION__": "v0"}), info)
    for broken in (
        "{}",
        json.dumps(compiled | {"artifact": "!"}),
        json.dumps(compiled | {"artifact": "AAAA"}),
    ):
        with pytest.raises(ours.DeserializeFormatError):
            deserialize(broken, info)
    with pytest.raises(ours.DeserializeFormatError, match="another tokenizer"):
        deserialize(json.dumps(compiled), ours.TokenizerInfo(TOKENS[1:]))
    with pytest.raises(ours.DeserializeFormatError):
        ours.TokenizerInfo.from_vocab_and_metadata(TOKENS, "{}")
    with pytest.raises(ours.DeserializeFormatError, match="has no made_by"):
        ours.Grammar.deserialize_json(json.dumps(compiled))
    tags = submodule(ours, "structural_tag")
    with pytest.raises(ours.InvalidStructuralTagError, match="no field 'colour'"):
        tags.TokenFormat(token=1, colour=2)
    with pytest.raises(ours.InvalidStructuralTagError, match="needs the field 'value'"):
        tags.ConstStringFormat()
    with pytest.raises(ours.InvalidStructuralTagError):
        ours.Grammar.from_structural_tag({"type": "structural_tag", "format": {"type": "nonsense"}})
    with pytest.raises(ValueError, match="max_recursion_depth"):
        ours.set_max_recursion_depth(-1)


def test_special_tokens_of_tags_are_those_of_the_tokenizer() -> None:
    info = ours.TokenizerInfo.from_vocabulary(
        sys.modules["tokenfst"].Vocabulary([*TOKENS[:257], b"", b""], 258, {"<tool>": 257, "</s>": 258})
    )
    tags = submodule(ours, "structural_tag")
    tag = ours.StructuralTag(
        format=tags.TagFormat(begin="<tool>", content=tags.RegexFormat(pattern="x"), end="!")
    )
    matcher = ours.GrammarMatcher(ours.GrammarCompiler(info).compile_structural_tag(tag))
    assert not matcher.accept_token(ord("<")) and matcher.accept_token(257) and matcher.accept_string("x!")


def test_a_processor_of_scores() -> None:
    info = ours.TokenizerInfo(TOKENS)
    compiled = ours.GrammarCompiler(info).compile_regex("ab|c")
    processor = ours.contrib.hf.LogitsProcessor([compiled, compiled])
    texts = torch.zeros((2, 3), dtype=torch.long)
    for tokens in ([97, 99], [98, 258], [258, 258]):
        scores = processor(texts, torch.zeros(2, len(TOKENS)))
        assert all(scores[row, token] == 0 for row, token in enumerate(tokens))
        assert (scores[0] == 0).sum() <= 3
        texts = torch.cat([texts, torch.tensor(tokens)[:, None]], 1)
    assert (processor(texts, torch.zeros(2, len(TOKENS))) == 0).all()
    with pytest.raises(RuntimeError, match="one call of generate"):
        processor(texts[:, :2], torch.zeros(2, len(TOKENS)))
    with pytest.raises(RuntimeError, match="2 grammars for 3 rows"):
        ours.contrib.hf.LogitsProcessor([compiled, compiled])(
            torch.zeros((3, 1)), torch.zeros(3, len(TOKENS))
        )


def test_without_torch_it_says_what_to_install() -> None:
    """It was a plain ``No module named 'torch'``."""
    code = "import sys; sys.modules['torch'] = None; import tokenfst.compat.xgrammar"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "MissingDependencyError: this module needs torch" in done.stderr
    assert 'pip install "tokenfst[torch]"' in done.stderr
