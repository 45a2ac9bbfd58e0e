"""What served requests ask for in the tests of engines, and what their answers must be."""

from __future__ import annotations

import enum
import json
import random
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import pydantic
import pytest
from typing_extensions import TypedDict  # the one that pydantic takes before Python 3.12

from tokenfst import Endpoint, Generator, choices, ebnf, json_schema, regex
from tokenfst.errors import ModelError

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
LIST = {"type": "array", "items": {"enum": ["red", "green", 1]}, "minItems": 2, "maxItems": 4}
PATTERN = r"[0-9]{3}-[a-f]{2,6}(x|yy)"
EBNF = 'root ::= "(" root ")" | [a-c]+ | ""'
LARK = 'start: "a" start "b" | "c"'
TAG = {
    "type": "structural_tag",
    "format": {
        "type": "tag",
        "begin": "<a>",
        "content": {"type": "json_schema", "json_schema": LIST},
        "end": "</a>",
    },
}
CHOICE = ["yes", "no", "it depends"]


def check(kind: str, text: str) -> None:
    """The text is one of the kind asked for, whole."""
    if kind in ("json", "response_format"):
        assert json_schema(PERSON).accepts(text), text
        assert set(json.loads(text)) == {"name", "age"}
    elif kind == "list":
        assert 2 <= len(json.loads(text)) <= 4, text
    elif kind == "json_object":
        assert isinstance(json.loads(text), dict), text
    elif kind == "regex":
        assert re.fullmatch(PATTERN, text), text
    elif kind == "choice":
        assert text in CHOICE
    elif kind == "grammar":
        assert ebnf(EBNF).accepts(text), text
    elif kind == "lark":
        assert re.fullmatch("a*cb*", text) and text.count("a") == text.count("b"), text
    else:
        assert re.fullmatch(r"<a>.*</a>", text, re.DOTALL) and len(json.loads(text[3:-4])) >= 2, text


def stay(hotel: Literal["Sea View", "Inn"], nights: Literal[1, 2] = 1) -> str:
    """A tool."""
    return f"{hotel}: {nights}"


class Hotel(enum.Enum):
    SEA_VIEW = "Sea View"
    INN = "Inn"


class Stay(pydantic.BaseModel):
    hotel: Hotel
    nights: Literal[1, 2]


@dataclass
class Trip:
    hotel: Hotel
    nights: Literal[1, 2]


class Booked(TypedDict):
    hotel: Literal["Sea View", "Inn"]


def with_types(endpoint: Any) -> None:
    """``Generator`` over a server: types, patterns, lists, grammars, tools, a batch, a stream, a refusal."""
    generator = Generator(endpoint)
    chat = [{"role": "user", "content": "Say something."}]
    assert set(generator(chat, PERSON, max_new_tokens=40)) == {"name", "age"}
    for made in (Stay, Trip):
        answer = generator("Say:", made, max_new_tokens=40)
        assert type(answer) is made and answer.hotel in Hotel and answer.nights in (1, 2)
    assert generator("Say:", Booked, max_new_tokens=40)["hotel"] in ("Sea View", "Inn")
    assert generator("Say:", Hotel, max_new_tokens=20) in Hotel
    assert generator("Say:", Literal["yes", "it depends"], max_new_tokens=20) in ("yes", "it depends")
    assert generator("Say:", choices(["yes"]) | choices(["no"]), max_new_tokens=20) in ("yes", "no")
    for pattern in (PATTERN, re.compile(PATTERN), regex(PATTERN)):
        assert re.fullmatch(PATTERN, generator("Say:", pattern, max_new_tokens=30))
    assert ebnf(EBNF).accepts(generator("Say:", ebnf(EBNF), max_new_tokens=20))
    assert generator.tools(chat, [stay], max_new_tokens=60).call() in {
        f"{hotel}: {nights}" for hotel in ("Sea View", "Inn") for nights in (1, 2)
    }
    listed = generator.batch(["Say:"] * 20, LIST, max_new_tokens=40)
    assert all(2 <= len(each) <= 4 for each in listed)
    stream = generator.stream(chat, PERSON, max_new_tokens=40)
    assert json.loads("".join(stream)) == stream.result()
    with pytest.raises(ModelError, match="least number"):
        generator("Say:", re.compile("[0-9]{90}"), max_new_tokens=10)


class ServedRequests:
    """Requests over HTTP, as every engine's server must answer them; ``client`` is an OpenAI client of one.

    ``server``: which. ``asked``: the fields that ask for each kind. ``whole``: a kind whose texts need nearly all
    of the tokens. ``seeded``: whether requests have a seed.
    """

    server: Literal["vllm", "sglang"]
    asked: dict[str, dict[str, Any]]
    whole: str
    seeded: bool

    def ask(self, client: Any, kind: str, seed: int, max_tokens: int = 40, **more: Any) -> Any:
        return client.chat.completions.create(
            model="tiny",
            messages=[{"role": "user", "content": f"Say something. {seed}"}],
            max_tokens=max_tokens,
            temperature=1.0,
            extra_body={**self.asked[kind], **more},
            **({"seed": seed} if self.seeded else {}),
        ).choices[0]

    def test_each_kind(self, client: Any) -> None:
        for kind in self.asked:
            for seed, room in enumerate((40, 24, 60)):
                check(kind, self.ask(client, kind, seed, room).message.content)

    def test_two_hundred_mixed_requests_sixteen_at_a_time(self, client: Any) -> None:
        draw = random.Random(0)
        jobs = [(draw.choice([*self.asked]), seed, draw.randint(24, 60)) for seed in range(200)]
        with ThreadPoolExecutor(16) as pool:
            found = list(pool.map(lambda job: self.ask(client, *job), jobs))
        for (kind, _, _), choice in zip(jobs, found, strict=True):
            assert choice.finish_reason in ("stop", "length")
            check(kind, choice.message.content)

    def test_a_generator_over_the_server(self, client: Any) -> None:
        with_types(Endpoint(client, server=self.server))

    def test_stop_tokens_of_the_request_end_whole_texts_only(self, client: Any) -> None:
        for seed in range(5):
            choice = self.ask(client, "regex", seed, stop_token_ids=list(range(66, 90)))
            check("regex", choice.message.content)

    def test_whatever_the_number_of_tokens_the_text_is_whole(self, client: Any) -> None:
        for room in (20, 21, 22, 23):
            check(self.whole, self.ask(client, self.whole, room, room).message.content)
