"""The questions that the server answers, in a worker: each is a function from a JSON object to a JSON value.

The questions are those of the command line, and share its code. A constraint is written as in a line of a batch
(``decoding/store/documents``), or is named by its id in the tenant's store. Unknown members are refused, so that none
is ignored silently.
"""

from __future__ import annotations

import random
import secrets
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from tokenfst.automata.json_schema.changes import schema_changes
from tokenfst.automata.json_schema.comparing import ComparedSchema
from tokenfst.automata.json_schema.documents.schema_texts import read as read_schema
from tokenfst.automata.json_schema.providers import PROVIDERS, provider_findings
from tokenfst.automata.json_schema.sets.work import Work
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.tools.requests import from_openai
from tokenfst.budget import Budget
from tokenfst.cli.output.terminal import json_bytes
from tokenfst.cli.questions.checking import check_text, check_tokens
from tokenfst.cli.questions.comparing import compare
from tokenfst.cli.questions.sampling import sample_tokens
from tokenfst.cli.questions.schema_changes import as_json as changes_as_json
from tokenfst.common.arguments import shown
from tokenfst.common.clock_cache import Recent
from tokenfst.decoding.compiling.compile import compile
from tokenfst.decoding.compiling.missing_bytes import warn_unspellable
from tokenfst.decoding.store.documents import Document
from tokenfst.decoding.store.entries import Automaton
from tokenfst.decoding.store.keys import NAME
from tokenfst.decoding.store.store import Store
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import ArtifactError, StoreWarning, UnspellableWarning
from tokenfst.server.refusals import Refused, refused, unknown_id
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

Json = dict[str, Any]
MOST_TEXTS = 1000
"""The greatest number of texts, token sequences or samples of one request."""
_MOST_SHOWN = 100
_SHOWN = 8
_MAX_TOKENS = 64
_KEPT = 32
"""The number of constraints that a worker caches: clients often ask about the same constraint several times."""


@dataclass
class WorkerState:
    """What a worker uses for every answer: vocabularies by name, the tenant's store, and a cache of constraints."""

    vocabularies: Mapping[str, Vocabulary]
    store: Store
    budget: Budget
    constraints: Recent[str, Constraint] = field(default_factory=lambda: Recent(_KEPT))


def answer(question: str, body: Json, state: WorkerState) -> Json:
    """The answer. Raises ``Refused``, and the errors of the library."""
    return QUESTIONS[question](_Members(body), state)


class _Members:
    """The members of a request. A question takes each by name and type; ``end`` refuses members that are left."""

    def __init__(self, body: Json) -> None:
        self._left = dict(body)

    def take(self, name: str, kind: type | tuple[type, ...], wanted: str, default: Any = None) -> Any:
        """A member, or ``default``. Raises ``Refused`` for a wrong type."""
        if name not in self._left:
            return default
        value = self._left.pop(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise _bad(f"{name!r} must be {wanted}, not {_shown(value)}", name)
        return value

    def need(self, name: str, kind: type | tuple[type, ...], wanted: str) -> Any:
        """A required member."""
        if name not in self._left:
            there = ", ".join(map(repr, sorted(self._left)))
            raise _bad(f"{name!r} is missing: it must be {wanted}. There is {there or 'nothing'}", name)
        return self.take(name, kind, wanted)

    def number(self, name: str, low: int, high: int, default: int | None) -> int | None:
        """An integer from ``low`` to ``high``."""
        found = self.take(name, int, "an integer", default)
        if found is not None and not low <= found <= high:
            raise _bad(f"{name!r} must be from {low:,} to {high:,}, not {shown(found)}", name)
        return found if found is None else int(found)

    def end(self) -> None:
        """Raise ``Refused`` if a member was not taken."""
        if self._left:
            raise _bad(f"there is no member {min(self._left)!r} here: leave it out", min(self._left))


def _bad(message: str, name: str) -> Refused:
    pointer = "#/" + name.replace("~", "~0").replace("/", "~1")
    return Refused("bad_request", message, "see /openapi.json", pointer=pointer)


def _shown(value: object) -> str:
    return {"NoneType": "null", "dict": "an object", "list": "an array", "str": "a string"}.get(
        type(value).__name__, "a number or a boolean"
    )


# --- constraints and vocabularies ---------------------------------------------------------------------------------


def _vocabulary(members: _Members, state: WorkerState) -> Vocabulary:
    name = members.take("vocabulary", str, "the name of a vocabulary")
    known = state.vocabularies
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    if name in known:
        return known[name]
    for each in known.values():
        if each.fingerprint == name:
            return each
    what = "'vocabulary' is missing" if name is None else f"there is no vocabulary {name!r:.100}"
    raise _bad(f"{what}: it is one of {', '.join(map(repr, known))}", "vocabulary")


@contextmanager
def _about(part: str) -> Iterator[None]:
    """A context whose errors become refusals that name ``part``, the member of the request that they are about."""
    begun = time.process_time()
    try:
        yield
    except (Refused, MemoryError):
        raise
    except Exception as error:
        raise refused(error, part, time.process_time() - begun) from error


def _made(document: Json, part: str, vocabulary: Vocabulary, state: WorkerState) -> Constraint:
    """The constraint of a document, from the cache if it is there."""
    with _about(part):
        read = Document.of(document)
        return state.constraints.get(
            read.digest(vocabulary, {}), lambda: read.constraint(vocabulary, state.budget)
        )


def _constraint(members: _Members, part: str, vocabulary: Vocabulary, state: WorkerState) -> Constraint:
    return _made(members.need(part, dict, "a constraint, as an object"), part, vocabulary, state)


def _automaton(members: _Members, vocabulary: Vocabulary, state: WorkerState) -> Automaton:
    """The token automaton of a constraint, or of an id."""
    name = members.take("id", str, "the id of a constraint")
    if name is None:
        constraint = _constraint(members, "constraint", vocabulary, state)
        with _about("constraint"), warnings.catch_warnings():
            warnings.simplefilter("ignore", UnspellableWarning)
            return compile(constraint, vocabulary, state.budget)
    return _stored(name, vocabulary, state)


def _stored(name: str, vocabulary: Vocabulary, state: WorkerState) -> Automaton:
    if not NAME.fullmatch(name):
        raise unknown_id()
    return state.store.get(name, vocabulary, state.budget)


# --- questions ----------------------------------------------------------------------------------------------------


def _compile(members: _Members, state: WorkerState) -> Json:
    """Compile a constraint and store it: its id, sizes and warnings."""
    vocabulary = _vocabulary(members, state)
    document = members.need("constraint", dict, "a constraint, as an object")
    expand = members.take("expand", bool, "true or false", False)
    members.end()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with _about("constraint"):
            key, made = state.store.ensure(document, vocabulary, state.budget, expand=expand)
            try:
                automaton = state.store.get(key, vocabulary, state.budget)
            except ArtifactError:  # damaged: it is compiled again, and replaced
                automaton = state.store.compile_document(document, vocabulary, state.budget, expand=expand)
            constraint = None
            if not made or not vocabulary.native.complete:  # what it warned of when it was compiled
                constraint = Document.of(document).constraint(vocabulary, state.budget)
        if constraint is not None and not vocabulary.native.complete:
            warn_unspellable(constraint, vocabulary, automaton.native)
    told = [each for each in caught if not issubclass(each.category, StoreWarning)]
    return _described(key, automaton, state) | {
        "warnings": [
            {"type": each.category.__name__, "message": str(each.message)}
            for each in {str(each.message): each for each in told}.values()
        ]
    }


def _describe(members: _Members, state: WorkerState) -> Json:
    """The kind and size of the entry with an id."""
    vocabulary = _vocabulary(members, state)
    name = members.need("id", str, "the id of a constraint")
    members.end()
    return _described(name, _stored(name, vocabulary, state), state)


def _described(key: str, automaton: Automaton, state: WorkerState) -> Json:
    states = None
    if isinstance(automaton, TokenAutomaton) and automaton.is_expanded:
        states = automaton.stats().states
    return {
        "id": key,
        "source": automaton.source,
        "vocabulary": automaton.vocabulary.fingerprint,
        "kind": "program" if states is None else "tables",
        "bytes": len(state.store.artifact(key)),
        "states": states,
    }


def _texts(members: _Members, name: str) -> list[Any] | None:
    found = members.take(name, list, "an array")
    if found is not None and len(found) > MOST_TEXTS:
        raise _bad(f"{name!r} has {len(found):,} elements: give at most {MOST_TEXTS:,}", name)
    return None if found is None else list(found)


def _check(members: _Members, state: WorkerState) -> Json:
    """Whether texts, or token sequences, satisfy a constraint."""
    vocabulary = _vocabulary(members, state)
    texts, tokens = _texts(members, "texts"), _texts(members, "tokens")
    if (texts is None) == (tokens is None):
        raise _bad("give one of 'texts' and 'tokens'", "texts")
    if texts is not None:
        constraint = _constraint(members, "constraint", vocabulary, state)
        members.end()
        results = [check_text(constraint, _utf8(each, place)).as_json() for place, each in enumerate(texts)]  # type: ignore[arg-type]
    else:
        assert tokens is not None
        automaton = _automaton(members, vocabulary, state)
        members.end()
        ids = [_token_ids(each, place) for place, each in enumerate(tokens)]
        with _about("tokens"):
            results = [check_tokens(automaton, each, _SHOWN).as_json() for each in ids]
    return {"accepted": all(each["accepted"] for each in results), "results": results}


def _utf8(text: object, place: int | None = None) -> bytes:
    name = "text" if place is None else f"texts/{place}"
    if not isinstance(text, str):
        raise Refused("bad_request", f"a text is a string, not {_shown(text)}", pointer=f"#/{name}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Refused(
            "bad_request", "a text has a lone surrogate, which UTF-8 cannot encode", pointer=f"#/{name}"
        ) from None


def _token_ids(ids: object, place: int) -> list[int]:
    if not isinstance(ids, list) or not all(type(each) is int and 0 <= each < 1 << 31 for each in ids):
        raise Refused("bad_request", "tokens are an array of token ids", pointer=f"#/tokens/{place}")
    return ids


def _explain(members: _Members, state: WorkerState) -> Json:
    """Where a text violates a constraint, and what is allowed there, in words and as data."""
    vocabulary = _vocabulary(members, state)
    text = _utf8(members.need("text", str, "a text"))
    prefix = members.take("prefix", bool, "true or false", False)
    constraint = _constraint(members, "constraint", vocabulary, state)
    members.end()
    found = constraint.explain(text, prefix=prefix)
    rules = found.rules
    if rules is None and not found.accepted and found.expected is not None:
        rules = constraint.open_rules(text[: found.place])
    return {
        "accepted": found.accepted,
        "message": str(found),
        "byte": None if found.accepted else found.place,
        "character": None if found.accepted else found.character,
        "stops_early": not found.accepted and found.place == len(text),
        "expected": None if found.expected is None else found.expected.as_json(),
        "ending": None if found.ending is None else json_bytes(found.ending),
        "rules": None if rules is None else list(rules),
    }


def _diff(members: _Members, state: WorkerState) -> Json:
    """The relation of two constraints; for two JSON Schemas, their differences."""
    vocabulary = _vocabulary(members, state)
    a, b = (_constraint(members, part, vocabulary, state) for part in ("a", "b"))
    members.end()
    if isinstance(a, ComparedSchema) and isinstance(b, ComparedSchema):
        return {"kind": "schemas"} | changes_as_json(schema_changes(a, b))
    relation, witnesses = compare(a, b)  # type: ignore[arg-type]
    return {
        "kind": "texts",
        "relation": relation,
        **{name: None if word is None else json_bytes(word) for name, word in witnesses.items()},
    }


def _sample(members: _Members, state: WorkerState) -> Json:
    """Random texts, or token sequences."""
    vocabulary = _vocabulary(members, state)
    number = members.number("number", 1, _MOST_SHOWN, 1)
    seed = members.number("seed", 0, (1 << 63) - 1, None)
    length, longest = (
        members.number("length", 0, 1 << 16, None),
        members.number("max_length", 0, 1 << 16, None),
    )
    most = members.number("max_new_tokens", 0, 1 << 16, None)
    of_tokens = members.take("tokens", bool, "true or false", False)
    seed = secrets.randbits(53) if seed is None else seed
    rng = random.Random(seed)
    samples: list[Json] = []
    assert number is not None
    if of_tokens:
        if length is not None or longest is not None:
            raise _bad(
                "'max_new_tokens' bounds token sequences; leave out 'length' and 'max_length'", "tokens"
            )
        automaton = _automaton(members, vocabulary, state)
        members.end()
        for _ in range(number):
            ids = sample_tokens(automaton, rng, _MAX_TOKENS if most is None else most)
            samples.append(json_bytes(vocabulary.shown(ids)) | {"tokens": ids})
    else:
        if most is not None:
            raise _bad("'max_new_tokens' goes with 'tokens': true", "max_new_tokens")
        constraint = _constraint(members, "constraint", vocabulary, state)
        members.end()
        samples += [json_bytes(constraint.sample(rng, longest, length=length)) for _ in range(number)]
    return {"seed": seed, "samples": samples}


def _openai(members: _Members, state: WorkerState) -> Json:
    """Whether the constraint of a request to OpenAI's APIs compiles, and its size and times."""
    vocabulary = _vocabulary(members, state)
    request = members.need("request", dict, "a request of Chat Completions or of the Responses API")
    how = {
        "format": members.take("format", str, "the name of a format of calls"),
        "reasoning": members.take("reasoning", str, "'disabled', 'enabled' or 'auto'", "disabled"),
    }
    provider = members.take("provider", str, f"one of {', '.join(PROVIDERS)}")
    members.end()
    if provider is not None and provider not in PROVIDERS:
        raise _bad(f"'provider' must be one of {', '.join(PROVIDERS)}, not {provider!r:.40}", "provider")
    with warnings.catch_warnings(record=True) as caught, _about("request"):
        warnings.simplefilter("always")
        began = time.perf_counter()
        constraint = from_openai(request, vocabulary=vocabulary, budget=state.budget, **how)
        front = time.perf_counter() - began
        began = time.perf_counter()
        automaton = compile(constraint, vocabulary, state.budget)
        rest = time.perf_counter() - began
    findings = [] if provider is None else list(_findings(request, provider))
    return {
        "valid": not findings,
        "source": constraint.source,
        "needs_stack": automaton.is_pushdown,
        "program_bytes": len(automaton.serialize(expand=False)),
        "shortest_tokens": automaton.distance(),
        "milliseconds": {"front_end": round(1e3 * front, 3), "compile": round(1e3 * rest, 3)},
        "provider_findings": findings,
        "warnings": [{"type": each.category.__name__, "message": str(each.message)} for each in caught],
    }


def _findings(request: Json, provider: str) -> Iterator[Json]:
    """The parts of a request's schemas that a provider does not accept, each by its pointer in the request."""
    for pointer, schema in islice(_schemas(request), _MOST_SHOWN):
        for each in provider_findings(read_schema(schema, "#", Work(None)), provider):
            yield {"pointer": pointer + each.pointer.removeprefix("#"), "message": each.message}


def _schemas(request: Json) -> Iterator[tuple[str, Any]]:
    for holder, pointer in (
        (request.get("response_format"), "#/response_format"),
        ((request.get("text") or {}).get("format"), "#/text/format"),
    ):
        if isinstance(holder, dict) and holder.get("type") == "json_schema":
            inner = holder.get("json_schema")
            if isinstance(inner, dict):
                yield f"{pointer}/json_schema/schema", inner.get("schema", True)
            else:
                yield f"{pointer}/schema", holder.get("schema", True)
    for number, tool in enumerate(request.get("tools") or []):
        about = tool.get("function", tool)
        if "parameters" in about:
            place = "/function" if "function" in tool else ""
            yield f"#/tools/{number}{place}/parameters", about["parameters"]


QUESTIONS: dict[str, Callable[[_Members, WorkerState], Json]] = {
    "compile": _compile,
    "describe": _describe,
    "check": _check,
    "explain": _explain,
    "diff": _diff,
    "sample": _sample,
    "openai": _openai,
}
"""The questions by name; the routes use these names."""
