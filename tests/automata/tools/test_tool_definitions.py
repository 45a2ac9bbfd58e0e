"""What tools are made from, the choice among them, requests, and what is refused, with the place."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pydantic
import pytest

import tokenfst
from tokenfst import EmptyLanguageError, SchemaError, ToolError, UnsupportedSchemaError, from_openai, tools

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"type": "function", "function": {"name": "weather", "description": "Now.", "parameters": CITY}}
TIME = {"type": "function", "name": "time", "parameters": CITY, "strict": True}
HERMES = '<tool_call>\n{"name": "%s", "arguments": %s}\n</tool_call>'
PARIS = '{"city": "Paris"}'


def names(text: str, made: Any) -> list[str]:
    return [call.name for call in made.parse(text).calls]


def test_both_of_openais_forms() -> None:
    made = tools([WEATHER, TIME], format="hermes")
    assert made.tool_names == ("weather", "time")
    text = HERMES % ("weather", PARIS) + "\n" + HERMES % ("time", PARIS)
    assert names(text, made) == ["weather", "time"]
    assert made.parse(text).calls[0].arguments == {"city": "Paris"}
    assert tokenfst.structural_tag(made.structural_tag).accepts(text)


def test_functions_and_models() -> None:
    def weather(city: str, days: Annotated[int, pydantic.Field(ge=1, le=7)] = 1) -> str:
        """The weather of a city."""
        return f"{city} {days}"

    class Search(pydantic.BaseModel):
        """Looks for words."""

        words: list[str]
        how: Literal["all", "any"] = "any"

    made = tools([weather, Search], format="hermes")
    text = HERMES % ("weather", '{"city": "Rome", "days": 3}') + HERMES % ("Search", '{"words": ["a"]}')
    first, second = made.parse(text).calls
    assert weather(**first.arguments) == "Rome 3" and Search(**second.arguments).words == ["a"]
    assert not made.accepts(HERMES % ("weather", '{"city": "Rome", "days": 9}'))
    with pytest.raises(ToolError, match="#/0: a tool must be a definition"):
        tools([5], format="hermes")

    def variadic(*words: str) -> None: ...

    with pytest.raises(SchemaError, match="#/1/"):
        tools([weather, variadic], format="hermes")


def test_no_parameters() -> None:
    for parameters in ({}, {"parameters": None}, {"parameters": {"type": "object", "properties": {}}}):
        made = tools([{"type": "function", "function": {"name": "now", **parameters}}], format="hermes")
        assert names(HERMES % ("now", "{}"), made) == ["now"]
        assert not made.accepts(HERMES % ("now", '{"a": 1}'))
    loose = {"type": "function", "function": {"name": "now", "parameters": CITY, "strict": False}}
    made = tools([loose], format="hermes")
    assert made.parse(HERMES % ("now", '{"a": [1]}')).calls[0].arguments == {"a": [1]}
    assert not made.accepts(HERMES % ("now", "5"))


@pytest.mark.parametrize(
    ("choice", "texts"),
    [
        ("auto", ["hi", "w", "wt", "hi w"]),
        (None, ["hi", "w", "wt", "hi w"]),
        ("none", ["hi"]),
        ("required", ["w", "wt"]),
        ("time", ["t"]),
        ({"type": "function", "function": {"name": "time"}}, ["t"]),
        ({"type": "function", "name": "time"}, ["t"]),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "time"}]},
            ["hi", "t"],
        ),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "required",
                    "tools": [{"type": "function", "function": {"name": "weather"}}],
                },
            },
            ["w"],
        ),
    ],
)
@pytest.mark.parametrize("parallel", [True, False])
def test_choices(choice: Any, texts: list[str], parallel: bool) -> None:
    """``w`` and ``t`` stand for calls."""
    made = tools([WEATHER, TIME], format="hermes", choice=choice, parallel=parallel)
    for text in ("hi", "w", "t", "wt", "hi w", "hi t"):
        written = text.replace("w", HERMES % ("weather", PARIS)).replace("t", HERMES % ("time", PARIS), 1)
        if "w" in text:
            written = text.replace("w", "%W").replace("t", HERMES % ("time", PARIS))
            written = written.replace("%W", HERMES % ("weather", PARIS))
        expected = text in texts and (parallel or text != "wt")
        if text in ("t", "hi t") and choice in ("auto", None, "required"):
            expected = text == "t" or choice != "required"
        if text == "hi t" and isinstance(choice, dict) and choice.get("mode") == "auto":
            expected = True
        assert made.accepts(written) is expected, text


@pytest.mark.parametrize(
    ("given", "pointer", "reason"),
    [
        ({"function": {"name": "a"}}, "#/1", "'type' is missing"),
        ({"type": "function", "function": {"description": "x"}}, "#/1/function", "'name' is missing"),
        ({"type": "function", "name": ""}, "#/1/name", "is not valid: it must have 1 to 256"),
        ({"type": "function", "name": "a b"}, "#/1/name", "is not valid: it must have 1 to 256"),
        ({"type": "function", "name": 5}, "#/1/name", "a name must be a string"),
        ({"type": "function", "name": "weather"}, "#/1", "also the name of the tool at #/0"),
        ({"type": "function", "name": "a", "paramters": {}}, "#/1/paramters", "did you mean 'parameters'"),
        ({"type": "function", "function": {"name": "a"}, "strict": True}, "#/1/strict", "unknown field of"),
        ({"type": "function", "name": "a", "strict": 1.5}, "#/1/strict", "true, false or null"),
        ({"type": "function", "name": "a", "strict": 0}, "#/1/strict", "true, false or null"),
        ({"type": "function", "name": "a", "description": 5}, "#/1/description", "must be a string"),
        ({"type": "function", "name": "a", "parameters": 5}, "#/1/parameters", "must be an object"),
        (
            {"type": "function", "name": "a", "parameters": {"type": "array"}},
            "#/1/parameters/type",
            "'object'",
        ),
        ({"type": "function", "function": 5}, "#/1/function", "must be an object"),
        ({"type": "web_search"}, "#/1/type", "provider"),
        ({"type": "custom", "name": "a", "format": 5}, "#/1/format", "must be an object"),
        ({"type": "custom", "name": "a", "format": {"type": "x"}}, "#/1/format/type", "'text' or 'grammar'"),
        (
            {"type": "custom", "name": "a", "format": {"type": "grammar", "syntax": "x", "definition": ""}},
            "#/1/format/syntax",
            "'lark' or 'regex'",
        ),
        (
            {
                "type": "custom",
                "name": "a",
                "format": {"type": "grammar", "syntax": "regex", "definition": "("},
            },
            "#/1/format/definition",
            "(position",
        ),
        (
            {
                "type": "custom",
                "custom": {"name": "a", "format": {"type": "grammar", "grammar": {"syntax": "lark"}}},
            },
            "#/1/custom/format/grammar/definition",
            "must be a string",
        ),
        (5, "#/1", "a tool must be a definition"),
    ],
)
def test_definitions_that_are_refused(given: Any, pointer: str, reason: str) -> None:
    with pytest.raises(ToolError) as caught:
        tools([WEATHER, given], format="harmony")
    assert caught.value.pointer == pointer and reason in caught.value.reason
    with pytest.raises(ToolError) as caught:
        from_openai({"tools": [WEATHER, given]}, format="harmony")
    assert caught.value.pointer == pointer.replace("#", "#/tools", 1)


@pytest.mark.parametrize("format", ["hermes", "qwen_3_coder", "cohere", "python", "harmony"])
def test_schemas_that_are_refused_are_named_in_the_list(format: str) -> None:
    def with_value(value: Any) -> list[Any]:
        parameters = {"type": "object", "properties": {"a": value}, "required": ["a"]}
        return [WEATHER, {"type": "function", "function": {"name": "f", "parameters": parameters}}]

    with pytest.raises(SchemaError) as caught:
        tools(with_value({"type": "strin"}), format=format)
    assert caught.value.pointer == "#/1/function/parameters/properties/a/type"
    with pytest.raises(EmptyLanguageError, match="#/1/function/parameters"):
        tools(with_value({"type": "string", "maxLength": 0, "minLength": 1}), format=format)
    with pytest.raises(SchemaError) as caught:
        from_openai({"tools": with_value({"minimum": "1"})}, format=format)
    assert caught.value.pointer == "#/tools/1/function/parameters/properties/a/minimum"


def test_names_that_a_format_cannot_write() -> None:
    odd = {"type": "object", "properties": {"a>b": {"type": "string"}}}
    definition = {"type": "function", "name": "f", "parameters": odd}
    for format in ("qwen_3_coder", "python"):
        with pytest.raises(UnsupportedSchemaError, match="a>b"):
            tools([definition], format=format)
    assert tools([definition], format="hermes").accepts(HERMES % ("f", '{"a>b": ""}'))


def test_arguments_that_are_refused() -> None:
    for name, given, place in (
        ("format", "lama", "format"),
        ("format", "zzz", "format"),
        ("reasoning", "yes", "reasoning"),
        ("special_tokens", "names", "special_tokens"),
        ("choice", "wether", "choice"),
        ("choice", 5, "choice"),
        ("choice", {"type": "x"}, "choice/type"),
        ("choice", {"type": "function"}, "choice"),
        ("choice", {"type": "function", "name": "nope"}, "choice/name"),
        ("choice", {"type": "allowed_tools", "mode": "x", "tools": []}, "choice/mode"),
        ("choice", {"type": "allowed_tools", "tools": 5}, "choice/tools"),
        ("choice", {"type": "allowed_tools", "tools": [5]}, "choice/tools/0"),
        ("choice", {"type": "allowed_tools", "mode": "required", "tools": []}, "choice/tools"),
    ):
        given_all: dict[str, Any] = {"format": "hermes", name: given}
        with pytest.raises(ToolError) as caught:
            tools([WEATHER], **given_all)
        assert caught.value.pointer == place
    with pytest.raises(ToolError, match="did you mean 'llama'"):
        tools([WEATHER], format="lama")
    with pytest.raises(ToolError, match="qwen_3, exaone"):
        tools([WEATHER], format="zzz")
    with pytest.raises(ToolError, match="did you mean 'weather'"):
        tools([WEATHER], format="hermes", choice="wether")
    with pytest.raises(ToolError, match="there is no tool"):
        tools([], format="hermes", choice="required")
    with pytest.raises(ToolError, match="has no reasoning"):
        tools([WEATHER], format="llama", reasoning="enabled")
    with pytest.raises(TypeError):
        tools(5, format="hermes")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        tools([WEATHER], format=5)  # type: ignore[arg-type]
    assert tools([], format="hermes").parse("hi").content == "hi"


# --- custom tools -------------------------------------------------------------------------------------

LARK = 'start: "select " NAME ("(" start ")")?\nNAME: /[a-z]+/'


def custom(syntax: str, definition: str) -> dict[str, Any]:
    return {
        "type": "custom",
        "name": "run",
        "format": {"type": "grammar", "syntax": syntax, "definition": definition},
    }


def test_custom_tools() -> None:
    recursive = custom("lark", LARK)
    made = tools([recursive], format="harmony", choice="required")
    begin = "<|channel|>commentary to=functions.run<|message|>"
    assert made.parse(f"{begin}select a(select b)<|call|>").calls[0].arguments == {
        "input": "select a(select b)"
    }
    assert not made.accepts(f"{begin}select<|call|>")
    made = tools([recursive], format="hermes")
    assert made.parse(HERMES % ("run", '{"input": "select a(select b)"}')).calls[0].arguments["input"] == (
        "select a(select b)"
    )
    for definition in (custom("regex", 'a"?'), custom("lark", 'start: "a" "\\""?')):
        made = tools([definition], format="hermes")
        assert made.parse(HERMES % ("run", '{"input": "a\\""}')).calls[0].arguments == {"input": 'a"'}
        made = tools([definition], format="glm_4_7")
        text = '<tool_call>run<arg_key>input</arg_key><arg_value>a"</arg_value></tool_call>'
        assert made.parse(text).calls[0].arguments == {"input": 'a"'}
    free = {"type": "custom", "custom": {"name": "say", "format": {"type": "text"}}}
    made = tools([free, WEATHER], format="kimi")
    text = "<|tool_call_begin|>functions.say:0<|tool_call_argument_begin|>any </tool_call>\n<|tool_call_end|>"
    whole = f"<|tool_calls_section_begin|>{text}<|tool_calls_section_end|>"
    assert made.parse(whole).calls[0].arguments == {"input": "any </tool_call>\n"}
    assert made.parse(whole).calls[0].raw == text


# --- requests -----------------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def chat(form: Any, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [], "temperature": 0, "response_format": form, **more}


def test_forms_of_answers() -> None:
    strict = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}}
    for request in (
        chat(strict),
        {"text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}}},
    ):
        made = from_openai(request)
        assert made.accepts('{"a": 1}') and made.parse('{"a": 1}').content == '{"a": 1}'
        assert not made.accepts('{"a": 1, "b": 2}') and not made.accepts("hi")
    loose = from_openai(chat({"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}))
    assert loose.accepts('{"a": 1, "b": 2}') and not loose.accepts('{"b": 2}')
    made = from_openai(chat({"type": "json_object"}))
    assert made.accepts('{"x": [1]}') and not made.accepts("[1]") and not made.accepts("hi")
    assert from_openai(chat({"type": "text"})).parse("hi").content == "hi"
    assert from_openai({}).accepts("anything")
    ignored = {"guided_json": None, "functions": None, "extra_body": {"top_k": 5}, "stop": ["x"]}
    assert from_openai(ignored).accepts("anything")


def test_a_form_and_tools() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}}
    made = from_openai(chat(form, tools=[WEATHER]), format="hermes")
    assert made.parse('{"a": 1}') == tokenfst.ToolReply('{"a": 1}', "", ())
    assert names(HERMES % ("weather", PARIS), made) == ["weather"]
    assert not made.accepts("hi") and not made.accepts("")
    required = from_openai(chat(form, tools=[WEATHER], tool_choice="required"), format="hermes")
    assert not required.accepts('{"a": 1}') and required.accepts(HERMES % ("weather", PARIS))
    nothing = from_openai(chat(form, tools=[WEATHER], tool_choice="none"), format="hermes")
    assert nothing.accepts('{"a": 1}') and not nothing.accepts(HERMES % ("weather", PARIS))
    one = from_openai({"tools": [WEATHER], "parallel_tool_calls": False}, format="hermes")
    assert one.accepts("x" + HERMES % ("weather", PARIS)) and not one.accepts(HERMES % ("weather", PARIS) * 2)
    for format in ("harmony", "kimi_k3", "deepseek_v3_2", "python", "mistral", "minimax_m3"):
        made = from_openai(chat(form, tools=[WEATHER]), format=format)
        shortest = made.parse(made.witness() or b"")
        assert shortest.content.startswith("{") or shortest.calls
        assert not made.accepts("") and not made.accepts("hi")
    final = from_openai(chat(form, tools=[WEATHER]), format="harmony", reasoning="auto")
    text = '<|channel|>analysis<|message|>so<|end|><|start|>assistant<|channel|>final<|message|>{"a": 1}<|return|>'
    assert final.parse(text) == tokenfst.ToolReply('{"a": 1}', "so", ())
    assert not final.accepts("<|channel|>analysis<|message|>so<|end|>")


@pytest.mark.parametrize(
    ("request_", "pointer"),
    [
        (5, "#"),
        ({"tools": 5}, "#/tools"),
        ({"tools": [WEATHER], "tool_choice": "x"}, "#/tool_choice"),
        ({"parallel_tool_calls": "yes"}, "#/parallel_tool_calls"),
        ({"parallel_tool_calls": 0}, "#/parallel_tool_calls"),
        ({"response_format": {"type": "text", "schema": {}}}, "#/response_format/schema"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {}, "stric": True}}},
            "#/response_format/json_schema/stric",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {}}, "strict": True}},
            "#/response_format/strict",
        ),
        ({"response_format": 5}, "#/response_format"),
        ({"response_format": {"type": "x"}}, "#/response_format/type"),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, "#/response_format/json_schema"),
        ({"text": 5}, "#/text"),
        ({"text": {"format": {"type": "json_schema", "schema": 5}}}, "#/text/format/schema"),
        (
            {"text": {"format": {"type": "json_schema", "schema": {}, "strict": 1}}},
            "#/text/format/strict",
        ),
        ({"text": {"format": {"type": "text"}}, "response_format": {"type": "text"}}, "#/text/format"),
        ({"tools": [WEATHER], "tool_choice": "auto"}, "format"),
        # Fields that constrain the text and are not read: ignored, they would allow any text.
        ({"functions": [WEATHER["function"]]}, "#/functions"),
        ({"function_call": {"name": "weather"}}, "#/function_call"),
        ({"structured_outputs": {"json": SCHEMA}}, "#/structured_outputs"),
        ({"guided_json": SCHEMA, "guided_regex": None}, "#/guided_json"),
        ({"extra_body": {"guided_choice": ["a", "b"]}}, "#/extra_body/guided_choice"),
        ({"regex": "a+"}, "#/regex"),
        ({"grammar": 'root ::= "a"'}, "#/grammar"),
        ({"json_schema": SCHEMA, "response_format": {"type": "text"}}, "#/json_schema"),
    ],
)
def test_requests_that_are_refused(request_: Any, pointer: str) -> None:
    with pytest.raises(ToolError) as caught:
        from_openai(request_, format=None if pointer == "format" else "hermes")
    assert caught.value.pointer == pointer


def test_python_calls_need_python_names() -> None:
    for name in ("get-time", "a.b", "class"):
        tool = {"type": "function", "function": {"name": name}}
        with pytest.raises(ToolError, match="not a Python identifier") as caught:
            tools([WEATHER, tool], format="python")
        assert caught.value.pointer == "#/1/function/name"
        assert tools([WEATHER, tool], format="python", choice="weather").accepts("[weather(city='Paris')]")
    with pytest.raises(tokenfst.EmptyLanguageError, match="#/0/format/definition: "):
        tools([custom("lark", "start: start")], format="hermes")


def test_schemas_of_requests_are_named() -> None:
    broken = {"type": "json_schema", "json_schema": {"schema": {"properties": {"a": {"type": "x"}}}}}
    with pytest.raises(SchemaError) as caught:
        from_openai(chat(broken))
    assert caught.value.pointer == "#/response_format/json_schema/schema/properties/a/type"
    empty = {"type": "json_schema", "json_schema": {"schema": False}}
    with pytest.raises(EmptyLanguageError, match="#/response_format/json_schema/schema"):
        from_openai(chat(empty))


# --- tokens -------------------------------------------------------------------------------------------


def test_special_tokens_mask_and_text_reads(tekken: tokenfst.Vocabulary) -> None:
    """The mask speaks of the token, the text of its name."""
    made = tools([WEATHER], format="mistral_v3", vocabulary=tekken, choice="required")
    matcher = tokenfst.compile(made, tekken).matcher()
    token = tekken.special_tokens["[TOOL_CALLS]"]
    assert matcher.accept_token(token)
    written = '[{"name": "weather", "arguments": {"city": "Paris"}}]'
    for each in tekken.encode_greedy(written.encode()):
        assert matcher.accept_token(each)
    assert matcher.is_accepting()
    assert names("[TOOL_CALLS]" + written, made) == ["weather"]
    plain = tools([WEATHER], format="mistral_v3")
    assert plain.accepts("[TOOL_CALLS]" + written)
    matcher.reset()
    assert not matcher.accept_token(tekken.encode_greedy(b"[TOOL")[0])


def test_an_end_token_ends_the_call() -> None:
    """Where ``<|call|>`` is an end token, the mask allows it after the arguments, and the text lacks it."""
    names_of = [
        "<|channel|>",
        "<|constrain|>",
        "<|message|>",
        "<|start|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
    ]
    special = {name: 256 + number for number, name in enumerate(names_of)}
    letters = [bytes([byte]) for byte in range(256)]
    ends = [special["<|return|>"], special["<|call|>"]]
    vocabulary = tokenfst.Vocabulary([*letters, *[b""] * len(special)], ends, special)
    made = tools([WEATHER], format="harmony", vocabulary=vocabulary, reasoning="auto")
    matcher = tokenfst.compile(made, vocabulary).matcher()

    def take(text: str) -> bool:
        return all(matcher.accept_token(byte) for byte in text.encode())

    for name, text in (
        ("<|channel|>", "analysis"),
        ("<|message|>", "so"),
        ("<|end|>", ""),
        ("<|start|>", "assistant"),
        ("<|channel|>", "commentary to=functions.weather"),
        ("<|constrain|>", "json"),
        ("<|message|>", PARIS),
    ):
        assert matcher.accept_token(special[name]) and take(text)
    assert matcher.is_accepting()
    text = (
        "<|channel|>analysis<|message|>so<|end|><|start|>assistant<|channel|>commentary to=functions.weather"
    )
    reply = made.parse(f"{text}<|constrain|>json<|message|>{PARIS}")
    assert reply.reasoning == "so" and [call.arguments for call in reply.calls] == [{"city": "Paris"}]


def test_any_constraint_in_a_structural_tag() -> None:
    call = {
        "type": "tag",
        "begin": "<",
        "content": {"type": "grammar", "grammar": tokenfst.regex("a+")},
        "end": ">",
    }
    made = tokenfst.structural_tag(call)
    assert made.accepts("<aa>") and not made.accepts("<>")
    nested = tokenfst.lark_grammar('start: "(" start? ")"')
    made = tokenfst.structural_tag({**call, "content": {"type": "grammar", "grammar": nested}})
    assert made.accepts("<(())>") and not made.accepts("<(()>")


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"type": "json_object"}, "this is a response format.*{'response_format': ...}"),
        ({"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}, "this is a response format"),
        ({"type": "function", "function": {"name": "f", "parameters": {}}}, "this is a tool.*{'tools': "),
    ],
)
def test_a_part_of_a_request_in_its_place_is_refused(part: dict[str, Any], said: str) -> None:
    """None of its fields is a request's, so any text was allowed."""
    with pytest.raises(ToolError, match=said) as caught:
        from_openai(part)
    assert caught.value.pointer == "#"
