"""tokenfst.compat.llguidance but for matchers: names, tokenizers, drafts, tags, options, the interpreter."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import random
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import small_model

import tokenfst.compat.llguidance as ours
from tests.support.engines.peers import peer
from tokenfst.errors import ConstraintError

torch = pytest.importorskip("torch")
MODULES = ("hf", "torch", "numpy", "tiktoken")
NOT_HERE = {
    "": {"_grammar_from", "_lib", "_struct_tag", "_tokenizer", "_util"},
    "torch": {"logger"},
}
"""What docs/engines/compat.md says is not here; a name with an underscore is llguidance's own."""
PIECES = [
    "hello",
    "the",
    " ca",
    "t",
    '{"a": ',
    "é",
    "日本",
    "<|end|>",
    "  ",
    "\n",
    "12",
    "/",
    "\\d",
    "\\W",
    "\\",
    "[",
]


@pytest.fixture(scope="module")
def specification() -> tuple[str, int]:
    tokenizer = small_model.load().tokenizer
    return tokenizer.backend_tokenizer.to_str(), tokenizer.eos_token_id


@pytest.fixture(scope="module")
def tokenizer(specification: tuple[str, int]) -> ours.LLTokenizer:
    return ours.LLTokenizer(specification[0], eos_token=specification[1])


@pytest.fixture
def theirs() -> Any:
    return peer("llguidance")


def own(module: Any) -> set[str]:
    """What a module has of its own library, private names left out."""
    found = set()
    for name, value in vars(module).items():
        home = getattr(value, "__module__", module.__name__) or module.__name__
        if not name.startswith("__") and (
            home.startswith(("llguidance", "builtins")) or inspect.ismodule(value)
        ):
            found.add(name)
    return found


def test_every_name_is_here(theirs: Any) -> None:
    known = {name for name in own(theirs) if not name.startswith("_")} - NOT_HERE[""]
    assert known <= {*dir(ours), *MODULES, "cli", "gbnf_to_lark", "mlx"}, known - set(dir(ours))
    assert set(theirs.__all__) <= set(dir(ours))
    for name in MODULES:
        try:
            module = import_module(f"llguidance.{name}")
        except ImportError:
            continue
        there = {each for each, value in vars(module).items() if inspect.isfunction(value)}
        there |= {"apply_token_bitmask_inplace_kernel"} if name in ("torch", "numpy") else set()
        mine = import_module(f"tokenfst.compat.llguidance.{name}")
        assert there <= set(dir(mine)), (name, there - set(dir(mine)))


def test_every_method_is_here(theirs: Any) -> None:
    for name in theirs.__all__:
        kind = getattr(theirs, name)
        if not inspect.isclass(kind):
            continue
        mine = getattr(ours, name)
        public = {each for each in dir(kind) if not each.startswith("_")}
        made = vars(mine()) if name == "LLParserLimits" else {}
        made = {"log_level": 1} if name == "LLInterpreter" else made
        assert public <= {*dir(mine), *made}, (name, public - {*dir(mine), *made})


def described(tokenizer: Any, texts: list[str]) -> list[Any]:
    """What a tokenizer answers about texts."""
    found: list[Any] = [
        tokenizer.vocab_size,
        tokenizer.eos_token,
        list(tokenizer.eos_tokens),
        tokenizer.is_canonical,
    ]
    for text in texts:
        tokens = tokenizer.tokenize_str(text)
        found += [
            tokens,
            tokenizer.tokenize_str(text, parse_special=True),
            tokenizer.greedy_tokenize(text),
            tokenizer.tokenize_bytes(text.encode()[:-1]),
            tokenizer.tokenize_partial(text.encode()),
            tokenizer.dbg_tokens(tokens),
            tokenizer.test_trace_tokens(tokens),
            tokenizer.decode_bytes(tokens),
            tokenizer.decode_str(tokens[:-1]),
        ]
    return found


def drawn(count: int) -> list[str]:
    draw = random.Random(7)
    return ["".join(draw.choice(PIECES) for _ in range(draw.randint(0, 6))) for _ in range(count)]


def test_tokenizers_are_asked_alike(theirs: Any, specification: tuple[str, int]) -> None:
    text, end = specification
    both = [module.LLTokenizer(text, eos_token=end) for module in (ours, theirs)]
    assert described(both[0], drawn(200)) == described(both[1], drawn(200))
    both = [module.LLTokenizer("byte") for module in (ours, theirs)]
    assert [each.vocab_size for each in both] == [262, 262] and both[0].eos_tokens == both[1].eos_tokens
    for rest in drawn(100):
        for ascii in ("", "d", "dws"):
            assert ours.regex_to_lark(rest, ascii) == theirs.regex_to_lark(rest, ascii)


def test_what_is_cut_is_the_text(tokenizer: ours.LLTokenizer) -> None:
    assert tokenizer.is_canonical and tokenizer.with_slices(tokenizer.json_slices()) is tokenizer
    for text in drawn(60):
        data = text.encode()
        assert tokenizer.decode_bytes(tokenizer.tokenize_bytes(data)) == data
        tokens, rest = tokenizer.tokenize_partial(data)
        assert tokenizer.decode_bytes(tokens) + rest == data
        assert tokenizer.tokenize_bytes(data)[: len(tokens)] == tokens
    with pytest.raises(ValueError, match="unknown token"):
        tokenizer.decode_bytes([10**6])
    with pytest.raises(TypeError, match="tokenizer"):
        ours.LLTokenizer(3)  # type: ignore[arg-type]


def test_tokenizers_of_other_libraries() -> None:
    class Small:
        eos_token_id, bos_token_id, special_token_ids = 2, None, [2]
        tokens = [b"a", b"b", b"</s>"]  # noqa: RUF012  # no instance changes it

        def __call__(self, text: bytes) -> list[int]:
            return [b"ab".find(byte) for byte in text]

    wrapped = ours.LLTokenizer(ours.TokenizerWrapper(Small()))
    assert wrapped.tokenize_str("ab") == [0, 1] and wrapped.eos_token == 2 and wrapped.is_special_token(2)
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256}
    encoding = tiktoken.Encoding(
        "small",
        pat_str=r"\S+|\s+",
        mergeable_ranks=ranks,
        special_tokens={"<|endoftext|>": 257, "<|x|>": 258},
    )
    from tokenfst.compat.llguidance.tiktoken import lltokenizer_from_encoding

    made = lltokenizer_from_encoding(encoding)
    assert made.tokenize_str("ab<|x|>") == [256, *b"<|x|>"] and made.eos_token == 257
    assert made.tokenize_str("ab<|x|>", parse_special=True) == [256, 258]
    listed = [b"a", b"b", b"\xff<x>", b"\xff</s>"]
    llama = ours.LLTokenizer.from_llamacpp(tokens=listed, eos_token=3)
    assert (
        llama.decode_bytes([0, 2]) == b"a<x>"
        and not llama.is_canonical
        and llama.tokenize_str("ba") == [1, 0]
    )


def drafts(module: Any, tokenizer: Any, kind: str) -> list[Any]:
    """Masks after drafts, rows that are not written among them."""
    masks = import_module(f"{module.__name__}.{kind}")
    found: list[Any] = []
    cut, end = tokenizer.greedy_tokenize, tokenizer.eos_token
    for tokens in (
        cut("a") + cut("b"),
        cut("a") + cut("b") + cut("z") + cut("c"),
        [*cut("a"), *cut("c"), end, 5],
    ):
        matcher = module.LLMatcher(tokenizer, module.grammar_from("regex", "ab*c"))
        bitmask = masks.allocate_token_bitmask(6, tokenizer.vocab_size)
        bitmask[:] = 7
        jobs = [(matcher, 1, tokens)]
        masks.fill_next_token_bitmask_par_with_draft_tokens(module.LLExecutor(), jobs, bitmask)
        found.append(np.asarray(bitmask).tolist())
        found.append(
            (matcher.is_accepting(), matcher.consume_tokens(cut("a")), masks.get_bitmask_shape(2, 33))
        )
    return found


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_masks_behind_drafts(kind: str, tokenizer: ours.LLTokenizer) -> None:
    found = drafts(ours, tokenizer, kind)
    matcher = ours.LLMatcher(tokenizer, ours.grammar_from("regex", "ab*c"))
    rows = np.array(found[2])
    for place, token in enumerate(tokenizer.greedy_tokenize("a") + tokenizer.greedy_tokenize("b")):
        assert np.array_equal(rows[1 + place], np.frombuffer(matcher.compute_bitmask(), np.int32))
        matcher.consume_token(token)
    assert np.array_equal(rows[3], np.frombuffer(matcher.compute_bitmask(), np.int32))
    assert (rows[[0, 4, 5]] == 7).all()
    with pytest.raises(ValueError, match="does not fit into the bitmask, which has"):
        ours.fill_next_token_bitmask_par_with_draft_tokens(
            ours.LLExecutor(), [(matcher, 5, [1])], ours.allocate_token_bitmask(6, tokenizer.vocab_size)
        )


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_masks_behind_drafts_are_theirs(theirs: Any, specification: tuple[str, int], kind: str) -> None:
    text, end = specification
    both = [drafts(module, module.LLTokenizer(text, eos_token=end), kind) for module in (ours, theirs)]
    assert both[0] == both[1]


def test_masks_at_an_address(tokenizer: ours.LLTokenizer) -> None:
    matcher = ours.LLMatcher(tokenizer, ours.grammar_from("regex", "[0-9]+"))
    rows = ours.allocate_token_bitmask(2, tokenizer.vocab_size)
    ours.LLExecutor().unsafe_compute_mask_ptr([(matcher, 1)], rows.ctypes.data, 4 * rows.shape[1], 2)
    matcher.unsafe_compute_mask_ptr(rows.ctypes.data, 4 * rows.shape[1])
    assert rows[0].tobytes() == rows[1].tobytes() == matcher.compute_bitmask()
    with pytest.raises(ValueError, match="a mask of"):
        matcher.unsafe_compute_mask_ptr(rows.ctypes.data, 4)


TAGS: list[dict[str, Any]] = [
    {"trigger": "<f=", "begin": "<f=a>", "grammar": {"enum": [1, 2]}, "end": "</f>"},
    {"trigger": "<g", "begin": "<g>", "grammar": 'start: "(" start ")" | "x"', "end": "</g>"},
]
TEXTS = ["free", "hi<f=a>1</f>b", "<g>((x))</g>", "<g>((x)</g>", "<f=a>3</f>"]


def tagged(module: Any, tokenizer: Any, tags: list[dict[str, Any]]) -> list[Any]:
    grammar = module.StructTag.to_grammar([module.StructTag(**tag) for tag in tags], assume_special=False)
    found: list[Any] = [grammar]
    for text in TEXTS:
        matcher = module.LLMatcher(tokenizer, grammar)
        assert not matcher.is_error(), matcher.get_error()
        tokens = [tokenizer.greedy_tokenize(each)[0] for each in text]
        found.append((text, matcher.try_consume_tokens(tokens), matcher.is_accepting()))
    return found


def test_tags_of_functions(tokenizer: ours.LLTokenizer) -> None:
    found = {each[0]: each[1:] for each in tagged(ours, tokenizer, TAGS)[1:]}
    assert found["<g>((x))</g>"] == (12, True) and found["<g>((x)</g>"][0] == 7
    assert found["<f=a>3</f>"][0] == 5
    assert "<f>" in ours.StructTag.to_grammar(
        [ours.StructTag(trigger="<f>", begin="<f>a", grammar={}, end="")]
    )
    for wrong in ({"trigger": ""}, {"begin": "f"}):
        with pytest.raises(ConstraintError, match="StructTag"):
            ours.StructTag(**{**TAGS[0], **wrong})
    with pytest.raises(ConstraintError, match="at least one"):
        ours.StructTag.to_grammar([])


def test_tags_are_theirs(theirs: Any, specification: tuple[str, int]) -> None:
    text, end = specification
    both = [tagged(module, module.LLTokenizer(text, eos_token=end), TAGS) for module in (ours, theirs)]
    assert both[0][1:] == both[1][1:]
    special = {**TAGS[0], "trigger": "<f>", "begin": "<f>a"}
    assert ours.StructTag.to_grammar([ours.StructTag(**special)]) == theirs.StructTag.to_grammar(
        [theirs.StructTag(**special)]
    )


def options(module: Any, tokenizer: Any) -> list[Any]:
    """What is taken under the options of schemas and by the compilers."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"const": 1}}},
        "required": ["a"],
    }
    schema["additionalProperties"] = False
    of = module.LLMatcher.grammar_from_json_schema
    grammars = [
        of(schema, {"whitespace_flexible": False}),
        of({**schema, "x-guidance": {"whitespace_flexible": False}}),
        of({**schema, "x-guidance": {"whitespace_flexible": False}}, overrides={"whitespace_flexible": True}),
        of(schema, {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}),
        of({"oneOf": [{"const": 1}, {"const": 2}]}, {"coerce_one_of": True}),
        of(json.dumps(schema), overrides={"whitespace_pattern": " ?"}),
        module.JsonCompiler().compile(json.dumps(schema)),
        module.JsonCompiler(separators=(",", ":")).compile(json.dumps(schema)),
        module.JsonCompiler(whitespace_flexible=True).compile(json.dumps(schema)),
        module.RegexCompiler().compile("a/|b"),
        module.LarkCompiler().compile('start: "a"'),
    ]
    found: list[Any] = []
    for grammar in grammars:
        for text in ('{"a":[1,1]}', '{"a": [1, 1]}', '{ "a" :[1,  1]}', "1", "a/", "a"):
            matcher = module.LLMatcher(tokenizer, grammar)
            cut = tokenizer.tokenize_str(text)
            found.append((matcher.try_consume_tokens(cut) == len(cut) and matcher.is_accepting(), text))
    for compiler, wrong in (
        (module.RegexCompiler, "("),
        (module.LarkCompiler, "start: x"),
        (module.JsonCompiler, '{"type": 1}'),
    ):
        try:
            compiler().compile(wrong)
            found.append("taken")
        except ValueError:
            found.append("refused")
    return found


def test_options_of_schemas(tokenizer: ours.LLTokenizer) -> None:
    found = options(ours, tokenizer)
    assert [taken for taken, _ in found[:3]] == [True, False, False]
    assert [taken for taken, _ in found[12:15]] == [True, True, True]
    assert found[-3:] == ["refused"] * 3
    lenient = ours.LLMatcher.grammar_from_json_schema(
        {"type": "string", "pattern": r"(a*)\1"}, {"lenient": True}
    )
    wrong, warnings = ours.LLMatcher.validate_grammar_with_warnings(lenient)
    assert not wrong and "pattern" in warnings[0]
    assert ours.LLMatcher(tokenizer, lenient).get_grammar_warnings() == warnings
    for bad in ({"json_allowed_escapes": "n"}, {"nonsense": 1}, {"item_separator": ";"}):
        assert ours.LLMatcher(tokenizer, ours.LLMatcher.grammar_from_json_schema({}, bad)).is_error()
    assert ours.LLMatcher(tokenizer, ours.LLMatcher.grammar_from_json_schema("{")).is_error()
    loop = {"grammars": [{"lark_grammar": "start: @a"}, {"name": "a", "lark_grammar": "start: @a"}]}
    assert "part of itself" in ours.LLMatcher.validate_grammar(json.dumps(loop))
    assert ours.LLParserLimits(step_max_items=3).step_max_items == 3
    assert "tokenfst" in ours.get_version()


def test_options_are_theirs(theirs: Any, specification: tuple[str, int]) -> None:
    text, end = specification
    both = [options(module, module.LLTokenizer(text, eos_token=end)) for module in (ours, theirs)]
    assert both[0] == both[1]


def captured(module: Any, tokenizer: Any) -> list[Any]:
    matcher = module.LLMatcher(tokenizer, 'start: x "!" x\nx[capture]: /[a-z]+;/')
    matcher.consume_tokens(tokenizer.greedy_tokenize("ab;!"))
    found: list[Any] = [matcher.get_captures(), matcher.get_capture("x"), matcher.get_capture("y")]
    matcher.consume_tokens(tokenizer.greedy_tokenize("c;"))
    return [*found, matcher.get_captures(), matcher.get_capture("x")]


def test_captures(tokenizer: ours.LLTokenizer) -> None:
    assert captured(ours, tokenizer) == [[("x", b"ab;")], b"ab;", None, [("x", b"ab;"), ("x", b"c;")], b"c;"]


def test_captures_are_theirs(theirs: Any, specification: tuple[str, int]) -> None:
    text, end = specification
    both = [captured(module, module.LLTokenizer(text, eos_token=end)) for module in (ours, theirs)]
    assert both[0] == both[1]


def interpreted(module: Any, tokenizer: Any) -> list[Any]:
    """A decoding by the interpreter, step by step, without tokens that are forced."""
    found: list[Any] = []
    for pattern, text in (("a|ab*", "ab"), ("a|ab", "ab")):
        interpreter = module.LLInterpreter(tokenizer, module.grammar_from("regex", pattern), False, False)
        interpreter.start_without_prompt()
        tokens = [tokenizer.greedy_tokenize(each)[0] for each in text]
        found.append(interpreter.validate_tokens_raw([*tokens, 5]))
        for token in [*tokens, tokenizer.eos_token]:
            mask, told = interpreter.compute_mask()
            told = json.loads(told)
            for each in told["progress"]:
                each.pop("stats", None)
            found += [None if mask is None else set(mask), told["stop"], interpreter.is_accepting()]
            found.append([(each["object"], each.get("str")) for each in told["progress"]])
            if mask is None:
                break
            found += [
                interpreter.commit_token(token),
                interpreter.has_pending_stop(),
                interpreter.stop_reason(),
            ]
    return found


def test_the_interpreter(tokenizer: ours.LLTokenizer) -> None:
    found = interpreted(ours, tokenizer)
    assert found[0] == 2 and found[1:4] == [{0, 200}, False, False]
    forced = ours.LLInterpreter(tokenizer, ours.grammar_from("regex", "abc[0-9]"))
    assert tokenizer.decode_bytes(forced.process_prompt([])) == b"abc"
    copied = forced.deep_copy()
    removed, added = forced.commit_token(tokenizer.greedy_tokenize("7")[0])
    assert removed == 0 and tokenizer.decode_bytes(added) == b"7" and copied.validate_tokens_raw(added) == 1
    assert forced.compute_mask()[0] is None and json.loads(forced.compute_mask()[1])["stop"]
    into = bytearray(-(-tokenizer.vocab_size // 32) * 4)
    copied.compute_mask_into(into)
    assert any(into)
    with pytest.raises(ValueError, match="not allowed"):
        copied.commit_token(tokenizer.greedy_tokenize("z")[0])
    with pytest.raises(ValueError, match="position"):
        ours.LLInterpreter(tokenizer, ours.grammar_from("regex", "("))
    with pytest.raises(ValueError, match="bytes"):
        copied.compute_mask_into(bytearray(3))


def test_the_interpreter_is_theirs(theirs: Any, specification: tuple[str, int]) -> None:
    text, end = specification
    both = [interpreted(module, module.LLTokenizer(text, eos_token=end)) for module in (ours, theirs)]
    assert both[0] == both[1]


def test_a_matcher_is_copied(tokenizer: ours.LLTokenizer) -> None:
    matcher = ours.LLMatcher(tokenizer, ours.grammar_from("regex", "ab"))
    matcher.consume_tokens(tokenizer.greedy_tokenize("a"))
    other, sent = copy.deepcopy(matcher), pickle.loads(pickle.dumps(matcher))
    assert matcher.rollback(1) and other.compute_ff_bytes() == sent.compute_ff_bytes() == b"b"
    there = pickle.loads(pickle.dumps(tokenizer))
    assert there.tokenize_str("hello the") == tokenizer.tokenize_str("hello the")
    assert pickle.loads(pickle.dumps(ours.LLTokenizer("byte"))).tokenize_str("é") == list("é".encode())
