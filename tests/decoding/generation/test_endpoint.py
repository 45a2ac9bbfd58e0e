"""A server as the model: what it is told, what its answers become, and every way in which it can fail.

The server here answers what a test says; real ones are in the tests of engines.
"""

from __future__ import annotations

import enum
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated, Any, Literal

import pydantic
import pytest

pytest.importorskip("openai", reason="the client of servers is the package openai")
import openai

from tokenfst import Budget, Endpoint, Generator, choices, ebnf, gbnf, json_schema, lark_grammar, regex
from tokenfst.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DecodingError,
    ModelError,
    VocabularyMismatchError,
)


class Point(pydantic.BaseModel):
    x: int
    y: float = 0.5


class Line(pydantic.BaseModel):
    start: Point
    end: Point


class Color(enum.Enum):
    RED = "red"
    BLUE = "light blue"


def draw(line: Line, color: Color = Color.RED) -> str:
    return f"{color.value} from {line.start.x} to {line.end.x}"


def clear(hard: bool) -> bool:
    return hard


class Server(ThreadingHTTPServer):
    """Answers ``texts``, one after the other, and keeps what it was sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.texts: list[str] = []
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.models, self.status, self.reason = ["tiny"], 200, "stop"
        self.body: Any = None
        self.begun, self.together, self.lock = 0, 0, threading.Lock()
        self.gate: threading.Barrier | None = None


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: Any) -> None: ...

    def do_GET(self) -> None:
        self.reply(
            {"object": "list", "data": [{"id": name, "object": "model"} for name in self.server.models]}
        )

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.sent.append((self.path, sent))
        if self.server.gate is not None:
            self.server.gate.wait(60)
        if self.server.status != 200 or self.server.body is not None:
            self.reply(self.server.body, self.server.status)
        elif sent.get("stream"):
            self.stream(self.server.texts.pop(0))
        else:
            self.reply({"choices": [self.choice(self.server.texts.pop(0), self.server.reason)]})

    def choice(self, text: str, reason: str | None, part: str = "message") -> dict[str, Any]:
        inside = {part: {"role": "assistant", "content": text}} if "chat" in self.path else {"text": text}
        return {"index": 0, "finish_reason": reason, **inside}

    def reply(self, body: Any, status: int = 200) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for piece in [*re.findall(".{1,3}", text), ""]:
            reason = None if piece else self.server.reason
            self.wfile.write(
                f"data: {json.dumps({'choices': [self.choice(piece, reason, 'delta')]})}\n\n".encode()
            )
        self.wfile.write(b"data: [DONE]\n\n")


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def client(server: Server, **options: Any) -> Any:
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    return openai.OpenAI(base_url=url, api_key="none", max_retries=0, timeout=60, **options)


def told(server: Server, target: Any, text: str, kind: str = "vllm", prompt: Any = "Say:") -> dict[str, Any]:
    """What the server was sent for a target, less what each request has."""
    server.texts.append(text)
    Generator(Endpoint(client(server), server=kind))(prompt, target, max_new_tokens=9)
    path, sent = server.sent.pop()
    most = "max_completion_tokens" if kind == "openai" else "max_tokens"
    assert sent.pop("model") == "tiny" and sent.pop(most) == 9
    sent["to"] = path.removeprefix("/v1/")
    return sent


POINT = '{"x": 1, "y": 2.5}'
GRAMMAR = 'root ::= "(" root ")" | "x"'
SCHEMA = Point.model_json_schema()


@pytest.mark.parametrize(
    ("kind", "target", "text", "fields"),
    [
        ("vllm", Point, POINT, {"structured_outputs": {"json": SCHEMA}}),
        ("vllm", {"type": "boolean"}, "true", {"structured_outputs": {"json": {"type": "boolean"}}}),
        (
            "vllm",
            json_schema('{"type": "boolean"}'),
            "true",
            {"structured_outputs": {"json": {"type": "boolean"}}},
        ),
        ("vllm", Color, "red", {"structured_outputs": {"choice": ["red", "light blue"]}}),
        ("vllm", re.compile("a+"), "aa", {"structured_outputs": {"regex": "a+"}}),
        ("vllm", "a+", "aa", {"structured_outputs": {"regex": "a+"}}),
        ("vllm", re.compile("a.", re.I | re.S), "A\n", {"structured_outputs": {"regex": "(?is)a."}}),
        ("vllm", regex("a."), "ab", {"structured_outputs": {"regex": "a."}}),
        ("vllm", regex("a.", re.I).with_budget(Budget()), "AB", {"structured_outputs": {"regex": "(?i)a."}}),
        ("vllm", regex("(?s)b.", re.I), "B\n", {"structured_outputs": {"regex": "(?i)(?s)b."}}),
        (
            "vllm",
            choices(["no", "yes"]) | choices(["é"]),
            "é",
            {"structured_outputs": {"choice": ["no", "é", "yes"]}},
        ),
        ("vllm", re.compile(b"[ab]"), "b", {"structured_outputs": {"choice": ["a", "b"]}}),
        ("vllm", ebnf(GRAMMAR), "(x)", {"structured_outputs": {"grammar": GRAMMAR}}),
        ("vllm", lark_grammar('start: "a"+'), "a", {"structured_outputs": {"grammar": 'start: "a"+'}}),
        ("sglang", Literal["a.", "b"], "a.", {"regex": "a\\.|b"}),
        ("sglang", re.compile("a+"), "aa", {"regex": "a+"}),
        ("sglang", ebnf(GRAMMAR), "x", {"ebnf": GRAMMAR}),
        ("llama.cpp", Point, POINT, {"response_format": {"type": "json_object", "schema": SCHEMA}}),
        ("llama.cpp", Literal['"', "b"], "b", {"grammar": 'root ::= "\\"" | "b"'}),
        (
            "llama.cpp",
            Literal["\b\f", 'a"\\'],
            "\b\f",
            {"grammar": r'root ::= "\x08\x0C" | "a\"\\"'},
        ),
        ("llama.cpp", gbnf(GRAMMAR), "((x))", {"grammar": GRAMMAR}),
    ],
)
def test_what_a_server_is_told(server, kind, target, text, fields):
    sent = told(server, target, text, kind)
    prompt = (
        {"messages": [{"role": "user", "content": "Say:"}]} if kind == "llama.cpp" else {"prompt": "Say:"}
    )
    assert sent == {"to": "chat/completions" if kind == "llama.cpp" else "completions", **prompt, **fields}


@pytest.mark.parametrize("kind", ["sglang", "openai"])
def test_a_schema_as_a_response_format(server, kind):
    sent = told(server, Point, POINT, kind, [{"role": "user", "content": "x"}])
    assert sent["to"] == "chat/completions" and sent["messages"] == [{"role": "user", "content": "x"}]
    assert sent["response_format"]["json_schema"]["schema"] == SCHEMA
    assert (told(server, Point, POINT, kind)["to"] == "completions") == (kind == "sglang")


@pytest.mark.parametrize(
    ("kind", "target", "message"),
    [
        ("vllm", regex("a*") | regex("b"), "cannot be sent to a server"),
        ("vllm", re.compile(b"a*"), "cannot be sent to a server"),
        ("vllm", regex("[a-z]{3}").with_budget(Budget()) & regex("[^q]*"), "at most 1,000 texts"),
        ("vllm", choices([b"\xff", b"a"]), "cannot be sent to a server"),
        ("vllm", gbnf(GRAMMAR), "no constraint of the kind 'gbnf'"),
        ("vllm", ebnf('a ::= "x"', start="a"), "cannot be sent to a server"),
        ("sglang", lark_grammar('start: "a"'), "no constraint of the kind 'lark'"),
        ("llama.cpp", re.compile("a"), "no constraint of the kind 'regex'; it accepts json, choice, gbnf"),
        ("openai", Color, "no constraint of the kind 'choice'; it accepts json"),
    ],
)
def test_what_no_server_can_be_told_is_refused_before_the_request(server, kind, target, message):
    with pytest.raises(ModelError, match=message):
        Generator(Endpoint(client(server), "tiny", server=kind))("x", target)
    assert not server.sent


def test_answers_become_instances_however_they_are_spelled(server):
    generator = Generator(client(server))
    server.texts = [POINT, '{"x":1}', ' {"y": 2.50, "x": 1}\n', r'{"\u0078": 1}']
    expected = [Point(x=1, y=2.5), Point(x=1), Point(x=1, y=2.5), Point(x=1)]
    assert [generator("x", Point) for _ in expected] == expected
    server.texts = ['{"x":1}', '{"x": 1}']
    compact = json_schema(Point, whitespace="compact")
    assert generator("x", compact) == Point(x=1)
    with pytest.raises(DecodingError, match="a text that violates the constraint"):
        generator("x", compact)


def test_several_at_once(server):
    generator = Generator(Endpoint(client(server), at_once=3))
    server.gate = threading.Barrier(3)
    server.texts = ["red"] * 6
    assert generator.batch(["x"] * 6, Color) == [Color.RED] * 6
    server.gate = None
    server.texts = ["red", "green"]
    with pytest.raises(DecodingError, match="green"):
        generator.batch(["x", "y"], Color)


def test_a_stream(server):
    generator = Generator(client(server))
    server.texts = [POINT, POINT, "((x)", POINT]
    stream = generator.stream("x", Point)
    assert next(stream) == '{"x'
    assert stream.result() == Point(x=1, y=2.5) and stream.text == POINT
    assert "".join(generator.stream([{"role": "user", "content": "x"}], Point)) == POINT
    server.reason = "length"
    with pytest.raises(DecodingError, match=r"'length'.*Increase max_new_tokens"):
        generator.stream("x", ebnf(GRAMMAR)).result()
    with generator.stream("x", Point) as left:
        next(left)
    assert server.sent[-1][1]["stream"] is True


def test_tools(server):
    generator = Generator(client(server))
    server.texts = [
        '{"name": "draw", "arguments": {"line": {"start": {"x": 1}, "end": {"x": 2}}}}',
        '{"arguments":{"hard":true},"name":"clear"}',
    ]
    assert generator.tools("x", [draw, clear]).call() == "red from 1 to 2"
    assert generator.tools("x", [draw, clear]).call() is True
    schema = server.sent[0][1]["structured_outputs"]["json"]
    for text in (
        '{"name":"draw","arguments":{"line":{"start":{"x":1},"end":{"x":2}}}}',
        '{"name":"clear","arguments":{"hard":true}}',
    ):
        assert json_schema(schema).accepts(text)
    assert not json_schema(schema).accepts('{"name":"clear","arguments":{"line":1}}')


def test_a_text_that_was_cut_off_or_is_something_else_is_no_answer(server):
    generator = Generator(client(server))
    server.texts, server.reason = ['{"x": 1'], "length"
    with pytest.raises(DecodingError, match=r"finish_reason 'length'.*backend tokenfst"):
        generator("x", Point)
    server.texts, server.reason = ["Sure! Here is it"], "stop"
    with pytest.raises(DecodingError, match=r"Sure! Here is it.*which backend"):
        generator("x", Point)
    server.texts, server.reason = [""], "stop"
    with pytest.raises(DecodingError):
        generator("x", Point)


def test_what_the_server_refuses_is_said_in_its_words(server):
    generator = Generator(client(server))
    server.status, server.body = (
        400,
        {"error": {"message": "no accepted text fits into 3 tokens", "code": 400}},
    )
    for call in (lambda: generator("x", Point), lambda: generator.stream("x", Point).result()):
        with pytest.raises(ModelError, match="no accepted text fits into 3 tokens") as caught:
            call()
        assert isinstance(caught.value.__cause__, openai.BadRequestError)
    server.status, server.body = 500, {"error": "broken"}
    with pytest.raises(ModelError, match="500"):
        generator("x", Point)
    server.status, server.body = 200, {"choices": []}
    with pytest.raises(ModelError, match="no choices"):
        generator("x", Point)


def test_no_server_at_all(server):
    made = client(server)
    server.shutdown()
    server.server_close()
    with pytest.raises(ModelError, match="did not answer"):
        Generator(made)
    with pytest.raises(ModelError, match="did not answer"):
        Generator(Endpoint(made, "tiny"))("x", Point)


def test_which_model(server):
    server.models = ["one", "two"]
    with pytest.raises(ModelError, match=r"serves 2 models \(one, two\)"):
        Generator(client(server))
    server.texts = ["red"]
    assert Generator(Endpoint(client(server), "two"))("x", Color) is Color.RED
    assert server.sent[0][1]["model"] == "two"
    server.models = []
    with pytest.raises(ModelError, match="serves 0 models"):
        Generator(client(server))


def test_options_go_to_the_server_and_those_that_break_the_promise_do_not(server):
    generator = Generator(client(server))
    server.texts = [POINT]
    body = {"top_k": 3, "structured_outputs": {"disable_any_whitespace": True}}
    generator("x", Point, temperature=0.5, seed=7, extra_body=body)
    sent = server.sent[0][1]
    assert (sent["temperature"], sent["seed"], sent["top_k"]) == (0.5, 7, 3)
    assert sent["structured_outputs"] == {"json": SCHEMA, "disable_any_whitespace": True}
    assert body == {"top_k": 3, "structured_outputs": {"disable_any_whitespace": True}}
    for name in ("stop", "max_tokens", "stream", "n", "response_format", "scores", "scores_weight"):
        with pytest.raises(DecodingError, match=name):
            generator("x", Point, **{name: 1})


def test_bad_endpoints(server):
    made = client(server)
    with pytest.raises(ArgumentValueError, match=r"unknown server='tgi'; expected one of 'vllm'"):
        Endpoint(made, server="tgi")
    with pytest.raises(ArgumentValueError, match="at_once must be at least 1, not 0"):
        Endpoint(made, at_once=0)
    with pytest.raises(ArgumentTypeError, match="model"):
        Endpoint(made, 3)
    with pytest.raises(ModelError, match=r"openai\.OpenAI"):
        Endpoint("http://127.0.0.1/v1")
    with pytest.raises(ModelError, match="asynchronous"):
        Endpoint(openai.AsyncOpenAI(base_url="http://127.0.0.1", api_key="none"))
    with pytest.raises(ModelError, match="tokenizer"):
        Generator(made, "tokenizer")
    with pytest.raises(VocabularyMismatchError):
        Generator(made, vocabulary=3)
    generator = Generator(made)
    with pytest.raises(ModelError, match="vocabulary of a server"):
        generator.vocabulary  # noqa: B018  # the look-up is what is tested
    with pytest.raises(ModelError, match="nothing to compile"):
        generator.compile(Point)
    with pytest.raises(ArgumentTypeError, match="json_schema"):
        generator("x", '{"type": "string"}')


def test_bounds_of_a_type_are_checked(server):
    generator = Generator(client(server))
    server.texts = ["12"]
    with pytest.raises(DecodingError):
        generator("x", Annotated[int, pydantic.Field(le=9)])
