"""tokenfst.compat.xgrammar: grammars written as JSON, and the choice among tools, beside those of xgrammar itself."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
import small_model

pytest.importorskip("torch")
import tokenfst.compat.xgrammar as ours
from tests.support.engines.peers import peer
from tokenfst.errors import ToolError

PARAMETERS = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}
CLOCK = {"type": "function", "function": {"name": "clock", "description": "The time.", "strict": True}}
SEARCH = {"type": "web_search_preview", "name": "browser.search", "parameters": PARAMETERS}
TAG = {
    "type": "structural_tag",
    "format": {"type": "tag", "begin": "<a>", "content": {"type": "regex", "pattern": "x+"}, "end": "</a>"},
}
MODELS = ("llama", "kimi", "deepseek_r1", "qwen_3", "qwen_3_coder", "minimax", "glm_4_7", "cohere", "exaone")


@pytest.fixture
def theirs() -> Any:
    return peer("xgrammar")


def grammars(module: Any) -> dict[str, tuple[Any, list[str]]]:
    """Grammars of each kind, and texts that they are asked about."""
    of = module.Grammar
    one = of.from_regex("[0-9]{2}")
    items = [module.StructuralTagItem(begin="<f=a>", schema=json.dumps(PARAMETERS), end="</f>")]
    return {
        "ebnf": (of.from_ebnf('main ::= "(" main ")" | "é"', root_rule_name="main"), ["((é))", "(é", "é"]),
        "schema": (of.from_json_schema(PARAMETERS), ['{"a": 1}', '{"a":3}', '{ "a" : 2 }']),
        "tight": (
            of.from_json_schema(json.dumps(PARAMETERS), any_whitespace=False, separators=(",", ":")),
            ['{"a":1}', '{"a": 1}'],
        ),
        "open": (of.from_json_schema(PARAMETERS, strict_mode=False), ['{"a": 1, "b": 2}']),
        "regex": (one, ["12", "1"]),
        "lark": (of.from_lark('start: "a" @n', named_grammars={"n": one}), ["a12", "a"]),
        "tag": (of.from_structural_tag(TAG), ["<a>xx</a>", "<a></a>"]),
        "legacy": (of.from_structural_tag(items, ["<f="]), ['a<f=a>{"a": 1}</f>', "<f=b>"]),
        "json": (of.builtin_json_grammar(), ["[1, null]", "[1,"]),
        "concat": (of.concat(one, of.union(one, of.from_regex("x"))), ["1234", "12x", "x"]),
    }


def accepts(module: Any, grammar: Any, text: str) -> bool:
    return bool(import_module(f"{module.__name__}.testing")._is_grammar_accept_string(grammar, text))


@pytest.mark.parametrize("name", grammars(ours))
def test_a_grammar_that_was_written_is_read_as_it_was(name: str) -> None:
    grammar, texts = grammars(ours)[name]
    again = ours.Grammar.deserialize_json(grammar.serialize_json())
    found = [accepts(ours, grammar, text) for text in texts]
    assert [accepts(ours, again, text) for text in texts] == found and found[0]
    assert again.serialize_json() == grammar.serialize_json()
    same = again.constraint.equivalent(grammar.constraint) if name in ("regex", "tag") else True
    assert same


def test_texts_are_those_that_xgrammar_accepts(theirs: Any) -> None:
    for (name, (mine, texts)), (other, _) in zip(
        grammars(ours).items(), grammars(theirs).values(), strict=True
    ):
        again = ours.Grammar.deserialize_json(mine.serialize_json())
        for text in texts:
            assert accepts(ours, again, text) == accepts(theirs, other, text), (name, text)


def test_what_no_json_says_is_refused() -> None:
    with pytest.raises(ours.Unsupported, match="pickle"):
        ours.Grammar.from_json_schema(list[int]).serialize_json()
    with pytest.raises(ours.Unsupported, match="pickle"):
        ours.Grammar.union(ours.Grammar.from_json_schema(list[int])).serialize_json()
    with pytest.raises(ours.InvalidJSONError):
        ours.Grammar.deserialize_json("{")
    with pytest.raises(ours.DeserializeVersionError):
        ours.Grammar.deserialize_json('{"__VERSION__": "v9"}')
    whole = json.loads(ours.Grammar.from_regex("a").serialize_json())
    for wrong in ({"made_by": "magic"}, {"made_by": ["regex"]}, {"arguments": 3}, {"arguments": {"x": 1}}):
        with pytest.raises(ours.DeserializeFormatError, match="serialize_json"):
            ours.Grammar.deserialize_json(json.dumps(whole | wrong))
    with pytest.raises(ours.GrammarError, match="position"):
        ours.Grammar.deserialize_json(json.dumps(whole | {"arguments": {"regex_string": "(a"}}))


CHOICES: list[Any] = [
    "auto",
    None,
    "none",
    "required",
    {"type": "function", "function": {"name": "clock"}},
    {"type": "web_search_preview"},
    {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [WEATHER, SEARCH]}},
    {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": []}},
    {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function"}]}},
    {"type": "allowed_tools", "allowed_tools": {"mode": "never", "tools": []}},
    {"type": "function", "function": {"name": "nobody"}},
    {"type": "nothing"},
    "sometimes",
    7,
]
TOOLS: list[Any] = [[WEATHER, CLOCK, SEARCH], [WEATHER], [], None, (WEATHER,), [{"function": 3}], [5], [{}]]


def normalized(module: Any, tools: Any, choice: Any) -> Any:
    try:
        functions, builtin, word = module.normalize_tool_choice(tools, choice)
    except ValueError:
        return "refused"
    return [each.model_dump() for each in functions], [each.model_dump() for each in builtin], word


def test_the_choice_among_tools() -> None:
    found = {
        (json.dumps(choice), len(tools or ())): normalized(ours, tools, choice)
        for choice in CHOICES
        for tools in TOOLS[:3]
    }
    assert found['"auto"', 3][2] == "auto" and len(found['"auto"', 3][0]) == 2
    assert found['"none"', 3] == ([], [], "auto") and found['"required"', 0] == "refused"
    assert found[json.dumps(CHOICES[4]), 3][2] == "forced" and found[json.dumps(CHOICES[4]), 1] == "refused"
    assert found[json.dumps(CHOICES[5]), 3][1][0]["name"] == "browser.search"
    assert found[json.dumps(CHOICES[6]), 3] == normalized(ours, [WEATHER, SEARCH], "auto")
    assert {found[json.dumps(choice), 3] for choice in CHOICES[7:]} == {"refused"}
    with pytest.raises(ToolError, match="tools/0/function"):
        ours.normalize_tool_choice([{"function": 3}])


def test_the_choice_is_xgrammars(theirs: Any) -> None:
    for choice in CHOICES:
        for tools in TOOLS:
            assert normalized(ours, tools, choice) == normalized(theirs, tools, choice), (tools, choice)


def with_a_model(module: Any) -> list[Any]:
    """What a function that was registered is called with."""
    seen: list[Any] = []

    @module.register_model_structural_tag("a model of one's own")
    def build(tools: Any, builtin: Any, choice: str, reasoning: str, **others: Any) -> Any:
        seen.extend([[each.model_dump() for each in tools], len(builtin), choice, reasoning, others])
        return "made"

    seen.append(module.get_model_structural_tag("a model of one's own", [WEATHER, SEARCH], "required", True))
    return seen


def test_a_model_that_was_registered() -> None:
    found = with_a_model(ours)
    assert found[1:4] == [1, "required", "enabled"] and found[-1] == "made"


def test_a_model_is_registered_as_there(theirs: Any) -> None:
    assert with_a_model(ours) == with_a_model(theirs)


@pytest.mark.parametrize("model", MODELS)
def test_reasoning_is_the_default_and_means_nothing_where_a_model_has_none(model: str) -> None:
    for reasoning in ("enabled", "auto", "disabled"):
        tag = ours.get_model_structural_tag(model, [WEATHER], reasoning=reasoning)
        assert tag.model_dump()["type"] == "structural_tag"
        ours.Grammar.from_structural_tag(tag)


def test_nothing_of_xgrammar_is_missing_but_what_the_page_says(theirs: Any) -> None:
    for name in theirs.__all__:
        assert hasattr(ours, name), name
    for name in theirs.__all__:
        kind, own = getattr(theirs, name), getattr(ours, name)
        if not inspect.isclass(kind) or issubclass(kind, (Exception, import_module("pydantic").BaseModel)):
            continue
        public = {each for each in dir(kind) if not each.startswith("_")}
        made: set[str] = set(vars(_one(own))) if name in _ONES else set()
        assert public <= {*dir(own), *made}, (name, public - {*dir(own), *made})


def _one(kind: Any) -> Any:
    return _ONES[kind.__name__]()


def _info() -> Any:
    return ours.TokenizerInfo([b"a", b"</s>"])


_ONES: dict[str, Callable[[], Any]] = {
    "TokenizerInfo": _info,
    "GrammarCompiler": lambda: ours.GrammarCompiler(_info()),
    "CompiledGrammar": lambda: ours.GrammarCompiler(_info()).compile_regex("a"),
    "GrammarMatcher": lambda: ours.GrammarMatcher(ours.GrammarCompiler(_info()).compile_regex("a")),
}


def described(module: Any, tokenizer: Any) -> list[Any]:
    """A tokenizer of transformers, and the same made of its own names of tokens and what is said beside them."""
    info = module.TokenizerInfo.from_huggingface(tokenizer, vocab_size=len(tokenizer) + 3)
    names = [""] * info.vocab_size
    for name, token in tokenizer.get_vocab().items():
        if token not in tokenizer.all_special_ids:
            names[token] = name
    again = module.TokenizerInfo.from_vocab_and_metadata(names, info.dump_metadata())
    compiler = module.GrammarCompiler(again)
    matcher = module.GrammarMatcher(compiler.compile_json_schema(PARAMETERS))
    tokens = tokenizer.encode('{"a": 2}', add_special_tokens=False)
    taken = [matcher.accept_token(token) for token in tokens]
    return [
        info.vocab_type.name,
        info.add_prefix_space,
        again.decoded_vocab[:300],
        taken,
        matcher.is_completed(),
    ]


def test_a_tokenizer_by_its_own_names() -> None:
    """As vLLM 0.33 takes special tokens out."""
    found = described(ours, small_model.load().tokenizer)
    assert found[0] == "BYTE_LEVEL" and all(found[3]) and found[4]


def test_a_tokenizer_by_its_own_names_is_as_there(theirs: Any) -> None:
    tokenizer = small_model.load().tokenizer
    assert described(ours, tokenizer) == described(theirs, tokenizer)
