"""Names that tokenfst does not have: what other libraries call so, and misspelled ones."""

from __future__ import annotations

import importlib
import re

import pytest

import tokenfst
from tokenfst.common.names import ELSEWHERE, unknown


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_name_of_another_library_is_told_what_is_meant(name: str) -> None:
    with pytest.raises(
        AttributeError, match=re.escape(f"has no attribute {name!r}; here: {ELSEWHERE[name]}")
    ):
        getattr(tokenfst, name)
    said = ELSEWHERE[name]
    for ours in re.findall(r"^(\w+)", said) + (said.split(", ") if re.fullmatch(r"[\w, ]+", said) else []):
        assert ours == "automaton" or hasattr(tokenfst, ours), ours
    for module in re.findall(r"tokenfst\.compat\.\w+", said):
        assert hasattr(importlib.import_module(module), name)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("regx", "regex"),
        ("JsonSchema_", "json_schema"),
        ("json_shema", "json_schema"),
        ("ConstraintLogitProcessor", "ConstraintLogitsProcessor"),
        ("vocab", None),
        ("__wrapped__", None),
        ("zzz", None),
    ],
)
def test_a_misspelled_name_is_told_the_nearest(name: str, near: str | None) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(tokenfst, name)
    said = str(caught.value)
    assert said.startswith(f"module 'tokenfst' has no attribute {name!r}")
    assert f"did you mean {near}" in said if near else "did you mean" not in said
    assert not hasattr(tokenfst, name)


def test_every_public_name_misspelled_by_one_letter_is_found() -> None:
    for name in tokenfst.__all__:
        if len(name) > 5:
            assert name in unknown("tokenfst", name[:-2] + name[-1], tokenfst.__all__), name
