"""Parameters of calls in the styles of models, written from values, and schemas and values to write.

``written`` makes one text of a list of named values; ``is_valid`` says by itself whether a schema of the small kind
that ``random_schema`` makes allows it.
"""

from __future__ import annotations

import json
import random
from typing import Any

Pairs = list[tuple[str, Any]]
"""An object's members, in their order, names perhaps twice."""


class Obj:
    """An object as pairs."""

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs


def kind_of(value: Any) -> str:
    """The JSON type of a value; integers are numbers."""
    if isinstance(value, bool):
        return "boolean"
    if value is None:
        return "null"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object" if isinstance(value, Obj) else "number"


def as_json(value: Any) -> str:
    """The JSON text of a value."""
    if isinstance(value, Obj):
        return "{" + ", ".join(f"{json.dumps(name)}: {as_json(each)}" for name, each in value.pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def written(style: str, pairs: Pairs, gap: str = "") -> str:
    """The text of an object's members."""
    return _among(gap, [_element(style, name, value, gap) for name, value in pairs])


def _among(gap: str, elements: list[str]) -> str:
    return gap + gap.join(elements) + gap if elements else gap


def _element(style: str, name: str | None, value: Any, gap: str) -> str:
    kind = kind_of(value)
    bare = value if kind == "string" else None
    if style == "minimax_m3_xml":
        mark, tag = "]<]minimax[>[", name or "item"
        inner = as_json(value) if bare is None else bare
        if kind in ("array", "object"):
            inner = _nested(style, value, gap)
        return f"{mark}<{tag}>{inner}{mark}</{tag}>"
    if style == "cohere_xml":
        escaped = (
            (name or "")
            .replace("&", "&amp;")
            .replace("<", "&lt;")
            .replace(">", "&gt;")
            .replace('"', "&quot;")
        )
        named = "" if name is None else f' name="{escaped}"'
        kinds = {"string": "raw", "array": "list", "object": "dict"}
        inner = gap + as_json(value) + gap if bare is None else bare
        if kind in ("array", "object"):
            inner = _nested(style, value, gap)
        return f'<cofl:value{named} type="{kinds.get(kind, "json")}">{inner}</cofl:value>'
    inner = gap + as_json(value) + gap if bare is None else bare
    if style == "qwen_xml":
        return f"<parameter={name}>{inner}</parameter>"
    if style == "minimax_xml":
        return f'<parameter name="{name}">{inner}</parameter>'
    if style in ("deepseek_xml", "deepseek_v4_1_xml"):
        space = " " if "v4" in style else ""
        flag = "true" if kind == "string" else "false"
        return f'<｜DSML｜{space}parameter name="{name}" string="{flag}">{inner}</｜DSML｜{space}parameter>'
    if style == "glm_xml":
        return f"<arg_key>{name}</arg_key>{gap}<arg_value>{inner}</arg_value>"
    assert style == "kimi_k3_xml"
    escaped = (name or "").replace("&", "&amp;").replace('"', "&quot;")
    return f'<|open|>argument key="{escaped}" type="{kind}"<|sep|>{inner}<|close|>argument<|sep|>'


def _nested(style: str, value: Any, gap: str) -> str:
    if isinstance(value, Obj):
        return written(style, value.pairs, gap)
    return _among(gap, [_element(style, None, each, gap) for each in value])


STOPS = {
    "qwen_xml": "</parameter>",
    "minimax_xml": "</parameter>",
    "minimax_m3_xml": "]<]minimax[>[",
    "deepseek_xml": "</｜DSML｜parameter>",
    "deepseek_v4_1_xml": "</｜DSML｜ parameter>",
    "glm_xml": "</arg_value>",
    "cohere_xml": "</cofl:value>",
    "kimi_k3_xml": "<|close|>argument<|sep|>",
}


def is_valid(schema: dict[str, Any], value: Any, any_order: bool) -> bool:
    """Whether a schema allows a value, its members in the schema's order unless ``any_order``."""
    if "enum" in schema:
        return any(kind_of(each) == kind_of(value) and each == value for each in schema["enum"])
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    kind = kind_of(value)
    if not (kind in types or (kind == "number" and "integer" in types and isinstance(value, int))):
        return False
    if kind == "string":
        return schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value))
    if kind == "array":
        fits = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
        return fits and all(is_valid(schema["items"], each, any_order) for each in value)
    if kind == "object":
        names = [name for name, _ in value.pairs]
        known = list(schema["properties"])
        in_order = any_order or names == [name for name in known if name in names]
        return (
            len(set(names)) == len(names)
            and set(names) <= set(known)
            and set(schema["required"]) <= set(names)
            and in_order
            and all(is_valid(schema["properties"][name], each, any_order) for name, each in value.pairs)
        )
    return True


_SCALARS: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "string", "minLength": 1, "maxLength": 3},
    {"type": "integer"},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "null"},
    {"type": ["string", "integer"]},
    {"type": ["integer", "null"]},
    {"enum": ["x", "yes", 3, None]},
]


def random_schema(rng: random.Random, depth: int) -> dict[str, Any]:
    """A schema of an object."""
    properties: dict[str, Any] = {}
    for name in rng.sample(["a", "bb", "c_d", "e"], rng.randint(1, 3)):
        draw = rng.random()
        if depth and draw < 0.25:
            properties[name] = random_schema(rng, depth - 1)
        elif depth and draw < 0.5:
            items = random_schema(rng, depth - 1) if rng.random() < 0.3 else rng.choice(_SCALARS)
            properties[name] = {"type": "array", "items": items, "minItems": rng.randrange(2)}
        else:
            properties[name] = rng.choice(_SCALARS)
    required = [name for name in properties if rng.random() < 0.5]
    return {"type": "object", "properties": properties, "required": required}


def random_value(rng: random.Random, schema: dict[str, Any] | None = None) -> Any:
    """A value, mostly one that the schema allows."""
    if schema is None or rng.random() < 0.07:
        return rng.choice(
            ["", "x", "yes", "3", "null", 3, -1, 2.5, True, None, [], ["x"], Obj([]), "a</para", "long text"]
        )
    if "enum" in schema:
        return rng.choice(schema["enum"])
    kind = rng.choice(schema["type"]) if isinstance(schema["type"], list) else schema["type"]
    if kind == "object":
        pairs = [
            (name, random_value(rng, each))
            for name, each in schema["properties"].items()
            if name in schema["required"] or rng.random() < 0.5
        ]
        if rng.random() < 0.1:
            rng.shuffle(pairs)
        if pairs and rng.random() < 0.06:
            pairs.append(rng.choice(pairs))
        if pairs and rng.random() < 0.05:
            pairs.pop(rng.randrange(len(pairs)))
        return Obj(pairs)
    if kind == "array":
        return [random_value(rng, schema["items"]) for _ in range(rng.randrange(3))]
    choices: dict[str, list[Any]] = {
        "string": ["x", "", "<b>", "a b", "long text", "line\nbreak", "</", "{}", "12"],
        "integer": [0, 7, -12],
        "number": [0, 1.5, -2],
        "boolean": [True, False],
        "null": [None],
    }
    return rng.choice(choices[kind])
