"""``Endpoint``: a server with OpenAI's protocol, and how each kind of server receives its constraint.

The kinds of servers support different constraints, and expect them in different fields:

    server         schema                 pattern, list, grammar          a text as the prompt
    "vllm"         structured_outputs     structured_outputs              /v1/completions
    "sglang"       response_format        regex, regex, ebnf (EBNF)       /v1/completions
    "llama.cpp"    response_format        a list or GBNF, as grammar      a user message
    "openai"       response_format        none                            a user message
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tokenfst.common.arguments import checked_but
from tokenfst.decoding.generation.server_targets import ServerConstraint
from tokenfst.errors import ArgumentValueError, ModelError

Server: TypeAlias = Literal["vllm", "sglang", "llama.cpp", "openai"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """The request format of one kind of server.

    ``fields``: by notation, the request fields that carry the constraint. ``completes``: whether the server continues a
    plain text. ``room``: the request field for the maximum number of new tokens.
    """

    fields: Mapping[str, Callable[[Any], dict[str, Any]]]
    completes: bool
    room: str = "max_tokens"


@dataclass(frozen=True, slots=True, init=False)
class Endpoint:
    """A server of OpenAI's interface, by its client: ``Generator(Endpoint(client, "name", server="sglang"))``.

    ``model``: the name under which the model is served; by default the only one that the server lists. ``server``: the
    kind of server, which determines how constraints are sent; see the module. ``at_once``: the number of concurrent
    requests of a batch.
    """

    client: Any
    model: str | None
    server: Server
    at_once: int

    @checked_but("client", "server")
    def __init__(
        self, client: Any, model: str | None = None, *, server: Server = "vllm", at_once: int = 16
    ) -> None:
        if not isinstance(server, str) or server not in DIALECTS:
            raise ArgumentValueError(
                f"Endpoint: unknown server={server!r}; expected one of {', '.join(map(repr, DIALECTS))}"
            )
        if at_once < 1:
            raise ArgumentValueError(f"Endpoint: at_once must be at least 1, not {at_once}")
        if not hasattr(client, "chat") or not hasattr(client, "models"):
            raise ModelError(
                f"Endpoint: client must be an openai.OpenAI(base_url=...), not {type(client).__name__}"
            )
        if type(client).__name__.startswith("Async"):
            raise ModelError(
                "Endpoint: client must be an openai.OpenAI; the asynchronous one is not supported"
            )
        for name, value in (("client", client), ("model", model), ("server", server), ("at_once", at_once)):
            object.__setattr__(self, name, value)

    def fields(self, for_server: ServerConstraint | None, target: object) -> dict[str, Any]:
        """The request fields that carry the target. Raises ModelError if the server does not support its notation."""
        makers = DIALECTS[self.server].fields
        if for_server is None:
            raise ModelError(
                f"{target!r} cannot be sent to a server, which compiles constraints itself: give a type, the dict of a "
                "JSON Schema, regex(...), a grammar made from a text, or a language of at most 1,000 texts"
            )
        if for_server.notation not in makers:
            known = ", ".join(makers)
            raise ModelError(
                f"a server of the kind {self.server!r} accepts no constraint of the kind {for_server.notation!r}; "
                f"it accepts {known}"
            )
        return makers[for_server.notation](for_server.value)


def _schema_format(schema: Any) -> dict[str, Any]:
    named = {"name": "answer", "schema": _loaded(schema), "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def _loaded(schema: Any) -> Any:
    return json.loads(schema) if isinstance(schema, str) else schema


def _any_of(texts: list[str]) -> str:
    return "|".join(map(re.escape, texts))


def _gbnf_of(texts: list[str]) -> str:
    r"""The texts as string literals of llama.cpp, which does not know JSON's escapes ``\b`` and ``\f``."""
    return "root ::= " + " | ".join('"' + text.translate(_GBNF_ESCAPES) + '"' for text in texts)


_GBNF_ESCAPES = {**{code: f"\\x{code:02X}" for code in (*range(32), 127)}, ord('"'): '\\"', ord("\\"): "\\\\"}


DIALECTS: dict[str, Dialect] = {
    "vllm": Dialect(
        {
            "json": lambda schema: {"structured_outputs": {"json": _loaded(schema)}},
            "regex": lambda pattern: {"structured_outputs": {"regex": pattern}},
            "choice": lambda texts: {"structured_outputs": {"choice": texts}},
            "ebnf": lambda text: {"structured_outputs": {"grammar": text}},
            "lark": lambda text: {"structured_outputs": {"grammar": text}},
        },
        completes=True,
    ),
    "sglang": Dialect(
        {
            "json": _schema_format,
            "regex": lambda pattern: {"regex": pattern},
            "choice": lambda texts: {"regex": _any_of(texts)},
            "ebnf": lambda text: {"ebnf": text},
        },
        completes=True,
    ),
    "llama.cpp": Dialect(
        {
            "json": lambda schema: {"response_format": {"type": "json_object", "schema": _loaded(schema)}},
            "choice": lambda texts: {"grammar": _gbnf_of(texts)},
            "gbnf": lambda text: {"grammar": text},
        },
        completes=False,
    ),
    "openai": Dialect({"json": _schema_format}, completes=False, room="max_completion_tokens"),
}
