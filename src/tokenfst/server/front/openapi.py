"""The OpenAPI document of the server. Tests compare every answer with it."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from tokenfst.server.refusals import STATUS

Json = dict[str, Any]
_CONSTRAINT: Json = {
    "type": "object",
    "description": "A constraint: one of json_schema, regex, lark, gbnf, ebnf and structural_tag. Further members are "
    "options of that front end.",
    "properties": {
        "id": {"description": "A name for people, which the server ignores."},
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
    "description": "Bytes: as text (null if they are not UTF-8) and as hexadecimal digits.",
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
    "description": "The name or the fingerprint of a vocabulary in GET /v1/vocabularies; optional if the server has "
    "one vocabulary.",
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
                "description": "The time that the steps of this request took on this server.",
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
                    "message": {"type": "string", "description": "What is wrong, and where."},
                    "pointer": {"type": ["string", "null"], "description": "A JSON pointer to the error."},
                    "position": {
                        "type": ["integer", "null"],
                        "description": "The position of the error in a pattern or grammar.",
                    },
                    "part": {
                        "type": ["string", "null"],
                        "description": "The member of the request that the error is about.",
                    },
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
        {
            "expand": {
                "type": "boolean",
                "description": "Compute all states and masks ahead of time where this is possible; otherwise store a "
                "program.",
            }
        },
        "Compiled",
    ),
    "/v1/check": (
        "Whether texts or token sequences satisfy a constraint; for token sequences, the id of a stored constraint is "
        "enough",
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
        "Where a text violates a constraint, and what is allowed there",
        {"constraint": _ref("Constraint"), "text": {"type": "string"}},
        {
            "prefix": {
                "type": "boolean",
                "description": "Accept the text if it is a prefix of a text of the constraint.",
            }
        },
        "Explained",
    ),
    "/v1/diff": (
        "The relation of two constraints as sets of texts; for two JSON Schemas, the changes from a to b",
        {"a": _ref("Constraint"), "b": _ref("Constraint")},
        {},
        "Compared",
    ),
    "/v1/sample": (
        "Random texts of a constraint, or token sequences; the same seed gives the same samples",
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
        "Whether the constraint of a request to OpenAI's APIs compiles, and its costs",
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
        "description": "An error. With 429, and with 503 if sending the request again can help, the header Retry-After "
        "says when to do so.",
        "content": {"application/json": {"schema": _ref("Error")}},
    }
}
_PATH_ID: Json = {"name": "id", "in": "path", "required": True, "schema": _ID}
_OPEN: Json = {"security": []}


@cache
def document() -> Json:
    """The OpenAPI document, as a JSON value."""
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
            "summary": "The kind and size of a stored constraint",
            "parameters": [_PATH_ID, query],
            "responses": _answered("Described"),
        }
    }
    paths["/v1/constraints/{id}/artifact"] = {
        "get": {
            "summary": "The artifact of a stored constraint (docs/serving/format.md); Range and If-None-Match are "
            "supported",
            "parameters": [_PATH_ID],
            "responses": {
                code: {"description": words, "content": {"application/octet-stream": {}}}
                for code, words in (("200", "The whole artifact"), ("206", "A part of the artifact"))
            }
            | {"304": {"description": "The artifact is the one that the client has"}}
            | _REFUSALS,
        }
    }
    paths["/v1/vocabularies"] = {
        "get": {"summary": "The vocabularies of this server", "responses": _answered("Vocabularies")}
    }
    for path, summary in (
        ("/healthz", "Whether the process is alive"),
        ("/readyz", "Whether requests should be sent to this server"),
        ("/metrics", "Metrics for Prometheus"),
        ("/openapi.json", "This document"),
    ):
        paths[path] = {"get": {"summary": summary, "responses": {"200": {"description": "Yes"}}, **_OPEN}}
    paths["/readyz"]["get"]["responses"]["503"] = {
        "description": "No: it starts or ends, or cannot read the store"
    }
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
