"""The official suite of draft 2020-12: each group right in both directions, or refused when it is compiled.

``REFUSED`` says which keywords are refused, and for how many groups. ``EXCEPTIONS`` lists every group in which a text
is judged otherwise, with the documented rule that makes it so; none of them accepts what is invalid.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reference.json.json_schema_order import ordered
from reference.json.json_spelling import without_fractions
from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.automata.json_values.strings import SPELLINGS, Spelling
from tokenfst.errors import EmptyLanguageError, UnsupportedSchemaError

SUITE = Path(__file__).resolve().parents[4] / "shared" / "json-schema-test-suite"
HOME = "http://localhost:1234/"

pytestmark = pytest.mark.skipif(not SUITE.is_dir(), reason="the official suite is not beside the repository")

EXCEPTIONS = {
    ("const.json", "const with object"): "members are written in the order of the constant",
    (
        "optional/format/hostname.json",
        "validation of A-label (punycode) host names",
    ): "Format.missing: names with A-labels",
}

AS_DUMPED = {
    (
        "optional/float-overflow.json",
        "all integers are multiples of 0.5, if overflow is handled",
    ): "integers are spelled without an exponent",
}
"""More of them where an instance is written as ``json.dumps`` writes its float."""

ELSEWHERE = {
    ("optional/cross-draft.json", "refs to historic drafts are processed as historic drafts"),
}
"""Groups that need remote documents of other drafts, which are not at hand."""

REFUSED = {
    "format": 2,
    "multipleOf": 1,
}
"""By the last part of the pointer."""


def groups() -> Iterator[tuple[str, dict[str, Any]]]:
    folder = SUITE / "draft2020-12"
    for path in sorted(folder.rglob("*.json")):
        for group in json.loads(path.read_text()):
            yield path.relative_to(folder).as_posix(), group


def resolver(uri: str) -> Any:
    """The suite's remote documents."""
    path = SUITE / "remotes" / uri.removeprefix(HOME)
    return json.loads(path.read_text()) if uri.startswith(HOME) and path.is_file() else None


def texts_of(instance: Any, spelling: Spelling) -> set[str]:
    """Texts of an instance that are spelled so; plainly, with and without fractions of zeros, which integers lack."""
    found = set()
    for value in (instance, instance if spelling == "any" else without_fractions(instance)):
        text = json.dumps(value, ensure_ascii=False)
        surrogates = not text.isascii() and any("\ud800" <= each <= "\udfff" for each in text)
        found.add(json.dumps(value) if surrogates or spelling == "ascii" else text)
    return found


def wrong(name: str, group: dict[str, Any], spelling: Spelling) -> list[str]:
    """The tests of a group that are judged otherwise: a valid instance must have a text, an invalid one none."""
    asserted = "optional/format/" in name or "format-assertion" in name
    constraint: Any = None
    with contextlib.suppress(EmptyLanguageError):
        constraint = json_schema(
            group["schema"],
            resolver=resolver,
            formats="assert" if asserted else "annotate",
            spelling=spelling,
        )
    found = []
    for test in group["tests"]:
        texts = texts_of(ordered(test["data"], [group["schema"]], group["schema"]), spelling)
        accepted = constraint is not None and any(constraint.accepts(text) for text in texts)
        if accepted is not test["valid"]:
            found.append(f"{'accepts' if accepted else 'rejects'} {test['description']}")
    return found


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_group_is_right_or_refused(spelling: Spelling) -> None:
    refused: Counter[str] = Counter()
    failed = {}
    right = 0
    for name, group in groups():
        key = (name, group["description"])
        if key in ELSEWHERE:
            continue
        try:
            mistakes = wrong(name, group, spelling)
        except UnsupportedSchemaError as error:
            refused[error.pointer.rsplit("/", 1)[-1]] += 1
            continue
        if key in EXCEPTIONS or (spelling == "any" and key in AS_DUMPED):
            assert mistakes and all(each.startswith("rejects") for each in mistakes), key
        elif mistakes:
            failed[key] = mistakes
        else:
            right += 1
    assert failed == {}
    assert dict(sorted(refused.items())) == REFUSED
    assert right >= 451
