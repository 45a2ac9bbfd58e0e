"""The short way in: a model, a prompt and a Python type give an instance; whatever the model writes can be read."""

from __future__ import annotations

import enum
import inspect
import json
import re
import threading
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pydantic
import pytest
import small_model
from typing_extensions import TypedDict

import tokenfst
from tokenfst import Generator, Language, ToolCall, ToolReply, json_schema, python_object, regex, tools
from tokenfst.decoding.generation import generator as generators
from tokenfst.decoding.generation import hosts
from tokenfst.decoding.generation.targets import read_target
from tokenfst.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DecodingError,
    EmptyLanguageError,
    ModelError,
    PatternSyntaxError,
    TokenLimitError,
    ToolError,
    UnsupportedSchemaError,
    VocabularyMismatchError,
)

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("one_torch_thread")
PROMPT = "record: name, active, time\njson:"


class Person(pydantic.BaseModel, extra="forbid"):
    name: Annotated[str, pydantic.Field(max_length=12)]
    age: Annotated[int, pydantic.Field(ge=0, lt=150)]


@dataclass
class Point:
    x: Annotated[int, pydantic.Field(ge=0, le=9)]
    y: Annotated[int, pydantic.Field(ge=0, le=9)]


class Answer(TypedDict):
    sure: bool


class Color(enum.Enum):
    RED = "red"
    BLUE = "light blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mood(enum.StrEnum):
    GOOD = "good"


def book(hotel: Annotated[str, pydantic.Field(max_length=5)], nights: Literal[1, 2] = 1) -> str:
    return f"{hotel} for {nights}"


def cancel(number: Annotated[int, pydantic.Field(ge=0, le=99)]) -> int:
    return number


@pytest.fixture(scope="module")
def loaded() -> small_model.SmallModel:
    return small_model.load()


@pytest.fixture(scope="module")
def generator(loaded) -> Generator:
    return Generator(loaded.model, loaded.tokenizer)


TARGETS: dict[str, tuple[Any, type]] = {
    "pydantic": (Person, Person),
    "dataclass": (Point, Point),
    "typed dict": (Answer, dict),
    "literal": (Literal["yes", "no"], str),
    "literal of several kinds": (Literal["a", 1], object),
    "enum": (Color, Color),
    "enum of texts": (Mood, Mood),
    "enum of numbers": (Level, Level),
    "bool": (bool, bool),
    "list": (Annotated[list[Literal[1, 2]], pydantic.Field(max_length=3)], list),
    "optional": (Answer | None, object),
    "function": (book, inspect.BoundArguments),
    "schema": ({"enum": [1, {"a": []}]}, object),
    "compiled pattern": (re.compile("A[B-D]{2}", re.IGNORECASE), str),
    "pattern of bytes": (re.compile(rb"[\xfe\xff]{2}"), str),
    "regex": (regex("[0-9]{3}-[0-9]{4}"), str),
    "constraint with parse": (python_object(Point), Point),
    "schema with options": (json_schema(Point, whitespace="compact"), Point),
    "grammar": (tokenfst.gbnf('root ::= "(" root ")" | "x"'), str),
    "choices": (tokenfst.choices(["one", "two"]), str),
}


@pytest.mark.parametrize("name", TARGETS)
def test_every_kind_of_target_gives_what_the_table_says(generator, name):
    target, kind = TARGETS[name]
    found = generator(PROMPT, target, max_new_tokens=60)
    assert isinstance(found, kind)
    stream = generator.stream(PROMPT, target, max_new_tokens=60)
    assert "".join(stream) == stream.text
    assert stream.result() == found
    constraint = read_target(target).constraint
    assert constraint.accepts(stream.text.encode("utf-8", "surrogateescape"))
    assert generator.batch(["a", PROMPT], target, max_new_tokens=60)[1] == found


def test_labels_are_written_without_quotes(generator):
    for target in (Literal["yes", "no"], Color, Mood):
        assert '"' not in "".join(generator.stream(PROMPT, target))


def test_a_pattern_means_what_re_means():
    for pattern in (
        re.compile("a.b", re.DOTALL),
        re.compile("k", re.IGNORECASE),
        re.compile(r"\d", re.ASCII),
    ):
        language = read_target(pattern).constraint
        for text in ("a\nb", "a-b", "k", "K", "\u212a", "5", "\u0665"):
            assert language.accepts(text) == bool(pattern.fullmatch(text))


@pytest.mark.parametrize("options", [{}, {"do_sample": True, "temperature": 1.5}, {"num_beams": 3}])
def test_whatever_the_budget_the_answer_is_whole(generator, options):
    least = generator.compile(Person).distance()
    for seed, room in enumerate([*range(least, least + 4), 40]):
        torch.manual_seed(seed)
        assert isinstance(generator(PROMPT, Person, max_new_tokens=room, **options), Person)
    with pytest.raises(TokenLimitError, match=str(least)):
        generator(PROMPT, Person, max_new_tokens=least - 1)


def test_a_batch_of_different_targets_is_what_each_alone_is(generator):
    prompts, targets = [PROMPT, "x", "request: weather?\ncall:"], [Person, Color, regex("[a-z]{4}")]
    alone = [generator(prompt, target) for prompt, target in zip(prompts, targets, strict=True)]
    assert generator.batch(prompts, targets) == alone


def test_tools(generator, loaded):
    torch.manual_seed(3)
    names = set()
    for _ in range(8):
        made = generator.tools(PROMPT, [book, cancel], max_new_tokens=50, do_sample=True, temperature=3.0)
        assert isinstance(made, ToolCall)
        assert made.function in (book, cancel) and made.call() == made.function(**made.arguments)
        names.add(made.name)
    assert names <= {"book", "cancel"}
    call = generators.tool_target([book], "json", None).parse(
        b'{"name": "book", "arguments": {"hotel": "}}", "nights": 2}}'
    )
    assert (call.name, call.call()) == ("book", "}} for 2")


@pytest.mark.parametrize("format", ["hermes", "mistral", "python", "qwen_3_coder"])
def test_tools_in_a_models_own_format(generator, format):
    """The same machinery as ``tokenfst.tools``: its formats, its errors, and a target like any other."""
    made = generator.tools(PROMPT, [book, cancel], format=format, max_new_tokens=120)
    assert isinstance(made, ToolCall) and made.function in (book, cancel)
    several = tools([book, cancel], format=format)
    read = several.parse(made.raw if format != "python" else f"[{made.raw}]")
    assert read.calls == (made,) and read.calls[0].call() == made.call()
    reply = generator(PROMPT, tools([book], format=format, choice="book"), max_new_tokens=120)
    assert isinstance(reply, ToolReply) and reply.calls[0].name == "book"


def test_a_chat_goes_through_the_template(loaded):
    tokenizer = type(loaded.tokenizer).from_pretrained(small_model.FOLDER, local_files_only=True)
    tokenizer.chat_template = "{% for m in messages %}{{m['role']}}: {{m['content']}}\n{% endfor %}json:"
    made = Generator(loaded.model, tokenizer)
    chat = [{"role": "record", "content": "name, active, time"}]
    ids = tokenizer("record: name, active, time\njson:", add_special_tokens=False)["input_ids"]
    assert made._host._ids(chat) == ids
    assert isinstance(made(chat, Person, max_new_tokens=40), Person)
    tokenizer.chat_template = "{{ raise_exception('roles must alternate') }}"
    with pytest.raises(ModelError, match="roles must alternate"):
        made(chat, Person)
    tokenizer.chat_template = None
    with pytest.raises(ModelError, match="no chat template"):
        made(chat, Person)


def test_a_target_is_read_and_compiled_once(loaded, monkeypatch):
    made = []
    real = hosts.compile
    monkeypatch.setattr(hosts, "compile", lambda *a, **k: made.append(1) or real(*a, **k))
    generator = Generator(loaded.model, loaded.tokenizer)
    for target in (Person, book, Literal["a"], list[int], re.compile("a"), TARGETS["grammar"][0]):
        assert generator.compile(target) is generator.compile(target)
    assert generator.compile(list[int]) is generator.compile(list[int])
    assert generator.tools(PROMPT, [book]) and generator.tools(PROMPT, [book])
    assert len(made) == 7
    schema: dict[str, Any] = {"const": 1}
    assert generator(PROMPT, schema) == 1
    schema["const"] = 2
    assert generator(PROMPT, schema) == 2
    for number in range(generators.KEPT + 5):
        generator.compile({"const": number})
    assert len(generator._kept.known) == generators.KEPT


def test_a_compiled_automaton_and_one_for_another_vocabulary(generator, tekken):
    automaton = tokenfst.compile(regex("[ab]{3}"), generator.vocabulary)
    assert re.fullmatch("[ab]{3}", generator(PROMPT, automaton))
    exact = tokenfst.compile(regex("[ab]{3}"), small_model.load().vocabulary, tokenization="canonical")
    assert re.fullmatch("[ab]{3}", generator(PROMPT, exact))
    with pytest.raises(VocabularyMismatchError, match=r"generator\.vocabulary"):
        generator(PROMPT, tokenfst.compile(regex("a"), tekken))


# --- streams ------------------------------------------------------------------------------------------


def test_pieces_are_whole_characters(generator):
    text = "日本" * 3
    pieces = list(generator.stream(PROMPT, tokenfst.choices([text])))
    assert "".join(pieces) == text and len(pieces) > 1
    broken = generator.stream(PROMPT, re.compile(rb"\xe6\x97"))
    assert "".join(broken).encode("utf-8", "surrogateescape") == b"\xe6\x97"


def test_a_stream_that_is_left_stops_the_model(generator):
    before = threading.active_count()
    with generator.stream(PROMPT, regex("[a-z]{200,250}"), max_new_tokens=256) as stream:
        next(stream)
    assert threading.active_count() == before
    assert len(stream.text) < 200
    with pytest.raises(DecodingError, match="closed before its text had ended"):
        stream.result()
    generator.stream(PROMPT, Person).close()
    with generator.stream(PROMPT, Person, max_new_tokens=40) as whole:
        text = "".join(whole)
    assert whole.result() == Person.model_validate_json(text)


def test_what_the_model_raises_comes_out_of_the_stream(generator):
    class Boom(Exception):
        pass

    def bang(ids, scores):
        raise Boom

    stream = generator.stream(PROMPT, Person, logits_processor=[bang])
    with pytest.raises(Boom):
        list(stream)


# --- bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [b"a", None, True, 3, 1.5, ["a", "b"], (1, 2), {1, 2}])
def test_what_is_no_target_is_refused(generator, target):
    with pytest.raises(ArgumentTypeError, match="target"):
        generator(PROMPT, target)


def test_a_text_is_a_regular_expression(generator):
    for pattern in ("[0-9]{3}-x", "yes|no", "yes", r"\{[a-z]\}", "{a}"):
        assert re.fullmatch(pattern, generator(PROMPT, pattern, max_new_tokens=20)), pattern
    stream = generator.stream(PROMPT, "[ab]{2}")
    assert "".join(stream) == stream.result() and len(stream.result()) == 2
    assert generator.compile("a|b") is generator.compile("a|b")
    with pytest.raises(PatternSyntaxError):
        generator(PROMPT, "(a")


@pytest.mark.parametrize(
    ("target", "remedy"),
    [
        ('{"type": "object"}', "json_schema"),
        (' {"type": "string", "maxLength": 3}', "json_schema"),
        ("start: /a/\nb: start", "lark_grammar"),
        ('root ::= "a"\n', "gbnf"),
    ],
)
def test_the_text_of_another_notation_is_refused(generator, target, remedy):
    with pytest.raises(ArgumentTypeError, match=remedy):
        generator(PROMPT, target)


def test_targets_without_a_constraint_say_why(generator):
    with pytest.raises(UnsupportedSchemaError):
        generator(PROMPT, complex)
    with pytest.raises(UnsupportedSchemaError, match="no members"):
        generator(PROMPT, enum.Enum("Nothing", []))
    with pytest.raises(EmptyLanguageError):
        generator(PROMPT, {"const": 1, "type": "string"})
    with pytest.raises(tokenfst.SchemaError):
        generator(PROMPT, {"type": "nonsense"})


@pytest.mark.parametrize("prompt", [3, None, b"text", ["text"], [], [{"role": "user"}, 3]])
def test_what_is_no_prompt_is_refused(generator, prompt):
    with pytest.raises(ModelError, match="prompt"):
        generator(prompt, Person)


@pytest.mark.parametrize(
    "options",
    [
        {"stop_strings": ["}"]},
        {"stopping_criteria": []},
        {"max_time": 1.0},
        {"max_length": 9},
        {"max_tokens": 9},
        {"streamer": None},
        {"eos_token_id": 1},
        {"num_return_sequences": 2},
    ],
)
def test_options_that_would_break_the_promise_are_refused(generator, options):
    with pytest.raises(DecodingError, match=next(iter(options))):
        generator(PROMPT, Person, **options)


def test_the_holes_of_a_template_are_texts(generator):
    made = generator(PROMPT, tokenfst.template("{day}-{sign}", day="[0-9]", sign="é"), max_new_tokens=9)
    assert re.fullmatch("[0-9]", made["day"]) and made["sign"] == "é"
    split = tokenfst.template("{a}{b}", a=regex(b"\xc3"), b=regex(b"\xa9"))
    assert generator(PROMPT, split, max_new_tokens=9) == {"a": "\udcc3", "b": "\udca9"}


def test_logits_processors_are_a_list(generator):
    with pytest.raises(ArgumentTypeError, match=r"logits_processor must be a list .* put it in a list"):
        generator(PROMPT, "a", logits_processor=lambda ids, scores: scores)
    assert generator(PROMPT, "a", logits_processor=None) == "a"


def test_a_text_that_is_no_pattern_says_how_to_write_the_text(generator):
    with pytest.raises(PatternSyntaxError) as caught:
        generator(PROMPT, "Hello (world")
    assert any("Literal" in note for note in caught.value.__notes__)


def test_its_text_names_the_model(generator):
    assert repr(generator) == "<Generator of LlamaForCausalLM>"


def test_numbers_and_batches_are_checked(generator):
    for room in (0, -1):
        with pytest.raises(ArgumentValueError, match="max_new_tokens"):
            generator(PROMPT, Person, max_new_tokens=room)
        with pytest.raises(ArgumentValueError, match="max_new_tokens"):
            generator.stream(PROMPT, Person, max_new_tokens=room)
    with pytest.raises(ArgumentTypeError, match="max_new_tokens"):
        generator(PROMPT, Person, max_new_tokens="many")
    with pytest.raises(ModelError, match="positions"):
        generator(PROMPT, Person, max_new_tokens=10**6)
    with pytest.raises(ArgumentValueError, match="prompts must be at least one prompt"):
        generator.batch([], Person)
    for no_list in (PROMPT, b"bytes", 5, None):
        with pytest.raises(ArgumentTypeError, match="prompts must be a list of prompts"):
            generator.batch(no_list, Person)
    with pytest.raises(ArgumentValueError, match="2 targets for 1"):
        generator.batch([PROMPT], [Person, Point])
    with pytest.raises(DecodingError, match="num_beams"):
        generator.stream(PROMPT, Person, num_beams=2)
    with pytest.raises(ToolError, match="there is no tool"):
        generator.tools(PROMPT, [])
    with pytest.raises(ToolError, match="also the name of the tool at #/0"):
        generator.tools(PROMPT, [book, book])
    for wrong in (3, None):
        with pytest.raises(ToolError, match="#/0"):
            generator.tools(PROMPT, [wrong])
    with pytest.raises(ToolError, match="unknown format"):
        generator.tools(PROMPT, [book], format="x")


def test_models_that_do_not_fit_are_refused(loaded, tekken):
    with pytest.raises(ModelError, match="tokenizer"):
        Generator(loaded.model)
    with pytest.raises(ModelError, match="model"):
        Generator("gpt2", loaded.tokenizer)
    with pytest.raises(VocabularyMismatchError, match="131,072"):
        Generator(loaded.model, loaded.tokenizer, vocabulary=tekken)
    with pytest.raises(VocabularyMismatchError, match=r"vocabulary must be.*load_vocabulary"):
        Generator(loaded.model, loaded.tokenizer, vocabulary="tekken")


def test_likely_mistakes_are_told_what_to_write(loaded, generator):
    model, tokenizer = loaded.model, loaded.tokenizer
    for given, said in {
        ("gpt2",): r"AutoModelForCausalLM\.from_pretrained",
        ("gpt2", tokenizer): r"AutoModelForCausalLM\.from_pretrained",
        (model,): r"AutoTokenizer\.from_pretrained",
        (model, "gpt2"): r"AutoTokenizer\.from_pretrained",
        (tokenizer, model): "the model comes first",
        (model, generator.vocabulary): "vocabulary=",
    }.items():
        with pytest.raises(ModelError, match=said):
            Generator(*given)
    ids = tokenizer("a", return_tensors="pt")
    for prompt, said in (
        (["a", "b"], r"Generator\.batch"),
        (Person, "the prompt comes first"),
        (regex("a"), "the prompt comes first"),
        (b"a", r"data\.decode\(\)"),
        (ids, "give the text itself"),
        (ids.input_ids, "give the text itself"),
    ):
        with pytest.raises(ModelError, match=f"prompt must be a text, or a list of messages.*{said}"):
            generator(prompt, Person)
    with pytest.raises(ArgumentTypeError, match=r"functions must be a list of functions.*put it in a list"):
        generator.tools(PROMPT, book)
    with pytest.raises(ArgumentTypeError, match=r"functions must be a list of functions.*put it in a list"):
        generator.tools(PROMPT, "book")
    with pytest.raises(ArgumentTypeError, match=r"prompts must be a list of prompts.*list\(\.\.\.\)"):
        generator.batch((each for each in [PROMPT]), Person)
    with pytest.raises(DecodingError, match=r"seed cannot be given.*set_seed"):
        generator(PROMPT, Person, seed=1)


def test_unconstrained_rows_have_one_name(generator):
    free = tokenfst.UNCONSTRAINED
    person, text = generator.batch([PROMPT, PROMPT], [Person, free], max_new_tokens=20)
    assert isinstance(person, Person) and isinstance(text, str)
    assert (
        text
        == generator(PROMPT, Language.any_text(), max_new_tokens=20)
        == generator(PROMPT, free, max_new_tokens=20)
    )
    assert "".join(generator.stream(PROMPT, free, max_new_tokens=20)) == text
    with pytest.raises(
        ArgumentTypeError, match=r"'free' alone: write tokenfst\.UNCONSTRAINED.*regex\('free'\)"
    ):
        generator.batch([PROMPT, PROMPT], [Person, "free"])
    with pytest.raises(ArgumentTypeError, match=r"not None.*tokenfst\.UNCONSTRAINED"):
        generator(PROMPT, None)
    assert read_target(regex("free")).constraint.accepts("free")


def test_a_text_that_something_else_ended_is_not_given_back(loaded):
    generator = Generator(loaded.model, loaded.tokenizer)
    config = loaded.model.generation_config
    config.stop_strings = ["a", "b", "c"]
    try:
        with pytest.raises(DecodingError, match="before it was complete"):
            generator(PROMPT, regex("[a-c]{20}"), tokenizer=loaded.tokenizer)
    finally:
        config.stop_strings = None


def test_what_a_types_own_validator_refuses_comes_through(generator):
    class Even(pydantic.BaseModel):
        number: Literal[1, 3]

        @pydantic.field_validator("number")
        @classmethod
        def even(cls, number: int) -> int:
            raise ValueError("odd")

    with pytest.raises(pydantic.ValidationError, match="odd"):
        generator(PROMPT, Even)


def test_json_of_a_schema_is_read_as_json_loads_does(generator):
    found = generator(PROMPT, {"type": "object", "required": ["a"], "properties": {"a": {"maximum": 3}}})
    assert found == json.loads(json.dumps(found)) and "a" in found
