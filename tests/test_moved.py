"""Old names of modules: the same objects, with a warning."""

from __future__ import annotations

import importlib

import pytest

from tokenfst.common.moved import MOVED


@pytest.mark.parametrize("old", sorted(MOVED))
def test_an_old_name_is_the_same_module(old: str) -> None:
    new = importlib.import_module(f"tokenfst.{MOVED[old]}")
    with pytest.warns(DeprecationWarning, match=f"tokenfst.{old} has moved to tokenfst.{MOVED[old]}"):
        found = importlib.import_module(f"tokenfst.{old}")
    assert found is new
    assert found.__name__ == found.__spec__.name == f"tokenfst.{MOVED[old]}"


def test_what_never_was_is_still_not_there() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("tokenfst.automata.nothing")
