"""The OpenAPI document of the server. Tests compare every answer with it."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from tokenfst.server.refusals import STATUS

Json = dict[str, Any]
_CONSTRAINT: Json = {
    "type": "object",
    "description": "One of json_schema, regex, lark, gbnf, ebnf and structural_tag, and options of that front end by "
    "their own names.",
    "properties": {
        "id": {"description": "For people; it means nothing here."},
        "json_schema": {},
        **{name: {"type": "string"} for name in ("regex", "lark", "gbnf", "ebnf")},
        "structural_tag": {"type": "object"},
    },
    "oneOf": [
        {"required": [name]} for name in ("json_schema", "regex", "lark", "gbnf", "ebnf", "structural_tag")
    ],
}
_TEXT: Json = {
    "type": "object",
    "description": "Bytes: as text where they are UTF-8, and else as hexadecimal digits.",
    "required": ["text"],
    "properties": {"text": {"type": ["string", "null"]}, "hex": {"type": "string"}},
}
_MAYBE: Json = {"anyOf": [{"$ref": "#/components/schemas/Text"}, {"type": "null"}]}
_WARNINGS: Json = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["type", "message"],
        "properties": {"type": {"type": "string"}, "message": {"type": "string"}},
    },
}
_VOCABULARY: Json = {
    "type": "string",
    "description": "A name or a fingerprint of GET /v1/vocabularies; may be left out where there is one.",
}
_ID: Json = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_COUNT: Json = {"type": "integer", "minimum": 0}


def _object(required: Json, optional: Json | None = None) -> Json:
    return {
        "type": "object",
        "required": list(required),
        "properties": required | (optional or {}),
        "additionalProperties": False,
    }


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


_COMPILED: Json = {
    "id": _ID,
    "source": {"type": "string"},
    "vocabulary": {"type": "string"},
    "kind": {"enum": ["program", "tables"]},
    "bytes": _COUNT,
    "states": {"type": ["integer", "null"]},
}
_SCHEMAS: Json = {
    "Constraint": _CONSTRAINT,
    "Text": _TEXT,
    "Compiled": _object(_COMPILED | {"warnings": _WARNINGS}),
    "Described": _object(_COMPILED),
    "Checked": _object(
        {
            "accepted": {"type": "boolean"},
            "results": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["text", "accepted"],
                    "properties": {"accepted": {"type": "boolean"}, "byte": _COUNT, "token": _COUNT},
                },
            },
        }
    ),
    "Explained": _object(
        {
            "accepted": {"type": "boolean"},
            "message": {"type": "string"},
            "byte": {"type": ["integer", "null"]},
            "character": {"type": ["integer", "null"]},
            "stops_early": {"type": "boolean"},
            "expected": {"type": ["object", "null"]},
            "ending": _MAYBE,
            "rules": {"type": ["array", "null"], "items": {"type": "string"}},
        }
    ),
    "Compared": {
        "type": "object",
        "required": ["kind"],
        "oneOf": [
            {
                "properties": {
                    "kind": {"const": "texts"},
                    "relation": {"enum": ["equivalent", "a_in_b", "b_in_a", "overlapping", "disjoint"]},
                    "only_in_a": _MAYBE,
                    "only_in_b": _MAYBE,
                    "in_both": _MAYBE,
                },
                "required": ["relation", "only_in_a", "only_in_b", "in_both"],
            },
            {
                "properties": {
                    "kind": {"const": "schemas"},
                    "backward_compatible": {"type": "boolean"},
                    "forward_compatible": {"type": "boolean"},
                    "changes": {"type": "array", "items": {"type": "object"}},
                },
                "required": ["backward_compatible", "forward_compatible", "changes"],
            },
        ],
    },
    "Sampled": _object(
        {"seed": _COUNT, "samples": {"type": "array", "items": _ref("Text")}},
    ),
    "Validated": _object(
        {
            "valid": {"type": "boolean"},
            "source": {"type": "string"},
            "needs_stack": {"type": "boolean"},
            "program_bytes": _COUNT,
            "shortest_tokens": _COUNT,
            "milliseconds": {
                "type": "object",
                "description": "What it took here, this time.",
                "additionalProperties": {"type": "number"},
            },
            "provider_findings": {"type": "array", "items": {"type": "object"}},
            "warnings": _WARNINGS,
        }
    ),
    "Vocabularies": _object(
        {
            "vocabularies": {
                "type": "array",
                "items": _object(
                    {"name": {"type": "string"}, "fingerprint": {"type": "string"}, "tokens": _COUNT}
                ),
            }
        }
    ),
    "Error": _object(
        {
            "error": _object(
                {
                    "code": {"enum": sorted(STATUS)},
                    "type": {"type": ["string", "null"], "description": "The class of the library's error."},
                    "message": {"type": "string", "description": "The library's words."},
                    "pointer": {"type": ["string", "null"], "description": "A JSON pointer to the place."},
                    "position": {"type": ["integer", "null"], "description": "The place in a pattern."},
                    "part": {"type": ["string", "null"], "description": "The member that it is about."},
                    "remedy": {"type": ["string", "null"]},
                }
            )
        }
    ),
}
_BOUNDS: Json = {"type": "integer", "minimum": 0, "maximum": 65536}
_ASKED: dict[str, tuple[str, Json, Json, str]] = {
    "/v1/constraints": (
        "Compile a constraint, and put it into the store",
        {"constraint": _ref("Constraint")},
        {"expand": {"type": "boolean", "description": "Make tables, where there are any, not a program."}},
        "Compiled",
    ),
    "/v1/check": (
        "Whether texts, or token sequences, satisfy a constraint; for token sequences its id is enough",
        {},
        {
            "constraint": _ref("Constraint"),
            "id": _ID,
            "texts": {"type": "array", "items": {"type": "string"}},
            "tokens": {"type": "array", "items": {"type": "array", "items": _COUNT}},
        },
        "Checked",
    ),
    "/v1/explain": (
        "Where a text leaves a constraint, and what could stand there",
        {"constraint": _ref("Constraint"), "text": {"type": "string"}},
        {"prefix": {"type": "boolean", "description": "Whether some text of the constraint begins so."}},
        "Explained",
    ),
    "/v1/diff": (
        "How two constraints lie to each other; of two JSON Schemas, what changed from a to b",
        {"a": _ref("Constraint"), "b": _ref("Constraint")},
        {},
        "Compared",
    ),
    "/v1/sample": (
        "Random texts of a constraint, or token sequences; the same seed gives the same ones",
        {},
        {
            "constraint": _ref("Constraint"),
            "id": _ID,
            "number": {"type": "integer", "minimum": 1, "maximum": 100},
            "seed": _COUNT,
            "length": _BOUNDS,
            "max_length": _BOUNDS,
            "tokens": {"type": "boolean"},
            "max_new_tokens": _BOUNDS,
        },
        "Sampled",
    ),
    "/v1/openai/validate": (
        "Whether a request of OpenAI's APIs has a constraint that compiles, and what that costs",
        {"request": {"type": "object"}},
        {
            "format": {"type": "string"},
            "reasoning": {"enum": ["disabled", "enabled", "auto"]},
            "provider": {"enum": ["openai", "anthropic", "gemini"]},
        },
        "Validated",
    ),
}
_REFUSALS = {
    "default": {
        "description": "No answer, and why. 429 and 503 say in Retry-After when to send it again.",
        "content": {"application/json": {"schema": _ref("Error")}},
    }
}
_PATH_ID: Json = {"name": "id", "in": "path", "required": True, "schema": _ID}
_OPEN: Json = {"security": []}


@cache
def document() -> Json:
    """The document."""
    paths: Json = {}
    for path, (summary, required, optional, name) in _ASKED.items():
        body = _object(required, optional | {"vocabulary": _VOCABULARY})
        paths[path] = {
            "post": {
                "summary": summary,
                "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
                "responses": _answered(name),
            }
        }
    query = {"name": "vocabulary", "in": "query", "schema": _VOCABULARY}
    paths["/v1/constraints/{id}"] = {
        "get": {
            "summary": "The sizes of a constraint that was put",
            "parameters": [_PATH_ID, query],
            "responses": _answered("Described"),
        }
    }
    paths["/v1/constraints/{id}/artifact"] = {
        "get": {
            "summary": "Its artifact, as docs/serving/format.md says; Range and If-None-Match are heard",
            "parameters": [_PATH_ID],
            "responses": {
                code: {"description": words, "content": {"application/octet-stream": {}}}
                for code, words in (("200", "The whole"), ("206", "A part"))
            }
            | {"304": {"description": "It is what you have"}}
            | _REFUSALS,
        }
    }
    paths["/v1/vocabularies"] = {
        "get": {"summary": "The vocabularies of this server", "responses": _answered("Vocabularies")}
    }
    for path, summary in (
        ("/healthz", "Whether the process lives"),
        ("/readyz", "Whether requests should be sent here"),
        ("/metrics", "What is counted, for Prometheus"),
        ("/openapi.json", "This document"),
    ):
        paths[path] = {"get": {"summary": summary, "responses": {"200": {"description": "Yes"}}, **_OPEN}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "tokenfst serve", "version": sys.modules["tokenfst"].__version__},
        "paths": paths,
        "components": {
            "schemas": _SCHEMAS,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
        },
        "security": [{"bearer": []}, {"header": []}],
    }


def _answered(name: str) -> Json:
    return {
        "200": {"description": "The answer", "content": {"application/json": {"schema": _ref(name)}}}
    } | _REFUSALS
