"""The meta-schemas of the drafts are built in: no resolver is needed, and they judge as ``jsonschema`` does."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tokenfst.automata.json_schema.documents.metaschemas import metaschema
from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.errors import SchemaError

VALIDATORS = {
    "http://json-schema.org/draft-06/schema": jsonschema.Draft6Validator,
    "http://json-schema.org/draft-07/schema#": jsonschema.Draft7Validator,
    "https://json-schema.org/draft/2019-09/schema": jsonschema.Draft201909Validator,
    "https://json-schema.org/draft/2020-12/schema": jsonschema.Draft202012Validator,
}
CORPUS = Path(__file__).parents[3] / "corpus" / "json_schema.toml"


def schemas() -> Iterator[Any]:
    """Schemas of the corpus, and with one thing wrong."""
    for case in tomllib.loads(CORPUS.read_text())["case"]:
        schema = json.loads(case["schema"])
        yield schema
        if isinstance(schema, dict):
            for keyword in schema:
                for wrong in (1, "x", [], {"type": "no"}, None):
                    yield {**schema, keyword: wrong}


@pytest.mark.parametrize("uri", VALIDATORS)
def test_schemas_are_judged_by_their_metaschema(uri: str) -> None:
    constraint = json_schema({"$ref": uri}, property_order="any", formats="annotate")
    validator = VALIDATORS[uri](VALIDATORS[uri].META_SCHEMA)
    judged = [(constraint.accepts(json.dumps(each)), validator.is_valid(each)) for each in schemas()]
    assert all(accepted is valid for accepted, valid in judged)
    assert {accepted for accepted, _ in judged} == {False, True}


def test_every_document_is_found_by_its_own_identifier() -> None:
    uris = [uri.rstrip("#") for uri in VALIDATORS] + ["http://json-schema.org/draft-04/schema"]
    for draft, names in {
        "2019-09": "core applicator validation meta-data format content",
        "2020-12": "core applicator unevaluated validation meta-data format-annotation format-assertion content",
    }.items():
        uris += [f"https://json-schema.org/draft/{draft}/meta/{name}" for name in names.split()]
    for uri in uris:
        document = metaschema(uri)
        assert document.get("$id", document.get("id")).rstrip("#") == uri
        assert metaschema(uri.replace("https:", "http:")) == document
    assert metaschema("http://json-schema.org/schema") == metaschema(
        "https://json-schema.org/draft/2020-12/schema"
    )
    for unknown in (
        "https://json-schema.org/draft/2020-12/meta/nothing",
        "https://json-schema.org/draft/2020-12/meta/../schema",
        "http://json-schema.org/draft-03/schema",
        "http://example.com/schema",
    ):
        assert metaschema(unknown) is None


def test_parts_of_a_metaschema_are_found_too() -> None:
    reference = {"$ref": "http://json-schema.org/draft-07/schema#/definitions/simpleTypes"}
    constraint = json_schema({"properties": {"kind": reference}})
    assert constraint.accepts('{"kind": "array"}') and not constraint.accepts('{"kind": "list"}')
    with pytest.raises(SchemaError, match="leads nowhere") as caught:
        json_schema({"items": {"$ref": "http://json-schema.org/draft-07/schema#/definitions/no"}})
    assert caught.value.pointer == "#/items/$ref"
    with pytest.raises(SchemaError, match="nothing is fetched"):
        json_schema({"$ref": "http://json-schema.org/draft-03/schema#"})
