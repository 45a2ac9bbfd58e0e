"""Old names of parameters and of public names, and the words that parameters of the public interface are called by."""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import tokenfst
from tokenfst.common.renamed import old_attribute, renamed
from tokenfst.errors import ArgumentTypeError

NAMES = {
    "TokenBudgetError": "TokenLimitError",
    "abs_beam_search": "automata_beam_search",
    "abs_generate": "automata_beam_generate",
    "gcd_sample": "exact_length_sample",
}
DEEP = {
    "tokenfst.decoding.search.beam_search.Hypothesis": tokenfst.Generation,
    "tokenfst.decoding.search.beam_search.abs_beam_search": tokenfst.automata_beam_search,
    "tokenfst.decoding.search.beam_search_generate.abs_generate": tokenfst.automata_beam_generate,
    "tokenfst.decoding.search.exact_length_sampling.Sample": tokenfst.Generation,
    "tokenfst.decoding.search.exact_length_sampling.gcd_sample": tokenfst.exact_length_sample,
    "tokenfst.errors.TokenBudgetError": tokenfst.TokenLimitError,
}
PARAMETERS = {
    "CanonicalAutomaton.matcher": ("max_tokens", "max_new_tokens"),
    "ComposingDeviceAutomaton.bitmask": ("budget", "max_new_tokens"),
    "ComposingDeviceAutomaton.start": ("max_tokens", "max_new_tokens"),
    "DeviceAutomaton": ("budgets", "token_limits"),
    "DeviceAutomaton.bitmask": ("budget", "max_new_tokens"),
    "DeviceAutomaton.check": ("budget", "max_new_tokens"),
    "DeviceAutomaton.choose": ("budget", "max_new_tokens"),
    "DeviceAutomaton.mask_logits_": ("budget", "max_new_tokens"),
    "DeviceAutomaton.start": ("max_tokens", "max_new_tokens"),
    "DeviceAutomaton.start_states": ("max_tokens", "max_new_tokens"),
    "DeviceAutomaton.step": ("budget", "max_new_tokens"),
    "GraphedStep.__call__": ("budget", "max_new_tokens"),
    "HmmProduct": ("max_tokens", "max_new_tokens"),
    "HmmProduct.log_accepted": ("left", "max_new_tokens"),
    "HmmProduct.log_joint": ("left", "max_new_tokens"),
    "HmmProduct.log_weights": ("left", "max_new_tokens"),
    "PushDownDeviceAutomaton": ("budgets", "token_limits"),
    "PushDownDeviceAutomaton.start_states": ("max_tokens", "max_new_tokens"),
    "TensorRows": ("max_tokens", "max_new_tokens"),
    "TensorRows.allowed": ("left", "max_new_tokens"),
    "TensorRows.mask_": ("left", "max_new_tokens"),
    "TokenAutomaton.matcher": ("max_tokens", "max_new_tokens"),
    "automata_beam_search": ("max_length", "max_new_tokens"),
    "distil_hmm": ("max_tokens", "max_new_tokens"),
    "exact_length_sample": ("max_length", "max_new_tokens"),
    "generate": ("automaton", "automata"),
    "smc": ("max_tokens", "max_new_tokens"),
    "start_rows": ("max_tokens", "max_new_tokens"),
}
"""Public calls with a parameter that had another name: the old one, the new one."""
NOT_SAID = {
    "left": "max_new_tokens",
    "limit": "budget, or max_new_tokens",
    "max_tokens": "max_new_tokens",
    "most": "max_new_tokens",
    "num_tokens_left": "max_new_tokens",
    "budgets": "token_limits",
    "timeout": "budget",
    "deadline": "budget",
    "random": "generator",
    "rng": "generator",
    "seed": "generator",
}
"""Words that no parameter is called by, and what it is called instead."""
BYTES = {f"{kind}.{call}" for kind in ("Constraint", "Grammar", "Language") for call in ("count", "sample")}
"""Calls whose ``max_length`` is a number of bytes."""
EXEMPT = {
    ("BudgetExceeded", "limit"): "how much of one thing the budget allows",
    ("Concepts", "deadline"): "the clock of the question that it is a part of",
    ("Concepts.product", "deadline"): "the clock of the question that it is a part of",
}


def parameters() -> Iterator[tuple[str, str, str]]:
    """The public calls, their parameters, and what these are annotated with."""
    for name in tokenfst.__all__:
        public = getattr(tokenfst, name)
        calls = [(name, public)]
        if inspect.isclass(public):
            methods = [each for each in dir(public) if not each.startswith("_") or each == "__call__"]
            calls += [(f"{name}.{each}", getattr(public, each)) for each in methods]
        for call, function in calls:
            if not callable(function):
                continue
            try:
                found = inspect.signature(function).parameters.values()
            except ValueError:  # the core: its docstrings begin with their signatures
                text = (function.__doc__ or "").partition(") ->")[0].partition("(")[2]
                for part in re.split(r", (?=\w+:)", text):
                    yield call, *(each.strip() for each in f"{part}:".split(":", 2)[:2])
                continue
            for parameter in found:
                yield call, parameter.name, str(parameter.annotation)


def test_one_thing_has_one_name() -> None:
    every = list(parameters())
    assert len(every) > 600 and {"Matcher", "Matcher.accept_token"} & {call for call, _, _ in every}
    for call, name, annotation in every:
        if (call, name) in EXEMPT:
            continue
        assert name not in NOT_SAID, f"{call}: {name} is called {NOT_SAID[name]} in the public interface"
        assert name != "max_length" or call in BYTES, f"{call}: max_length is a number of bytes"
        assert (name == "budget") == ("Budget" in annotation), (
            f"{call}: {name}: {annotation}: a Budget is a budget"
        )
        random = re.search(r"\bGenerator\b|\bRandom\b", annotation) is not None
        assert (name == "generator") == random, (
            f"{call}: {name}: {annotation}: a source of chance is a generator"
        )
        if name == "max_new_tokens":
            assert re.search(r"\bint\b|\bLeft\b", annotation), f"{call}: {name}: {annotation}"
    for name in tokenfst.__all__:
        assert not re.search(r"(^|_)(abs|gcd)(_|$)", name), name


@pytest.mark.parametrize("old", sorted(NAMES))
def test_an_old_public_name_works_and_warns(old: str) -> None:
    new = NAMES[old]
    with pytest.warns(DeprecationWarning, match=f"tokenfst.{old} is called {new} now") as caught:
        found = getattr(tokenfst, old)
    assert found is getattr(tokenfst, new)
    assert caught[0].filename == __file__
    assert old not in tokenfst.__all__ and new in tokenfst.__all__


@pytest.mark.parametrize("old", sorted(DEEP))
def test_an_old_name_in_its_module_works_and_warns(old: str) -> None:
    module, _, name = old.rpartition(".")
    with pytest.warns(DeprecationWarning, match=f"{old} is called"):
        assert getattr(importlib.import_module(module), name) is DEEP[old]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        importlib.import_module(module).nothing  # noqa: B018  # the look-up is what is tested


@pytest.mark.parametrize("call", sorted(PARAMETERS))
def test_an_old_parameter_stands_for_the_new_one(call: str) -> None:
    old, new = PARAMETERS[call]
    function: Any = tokenfst
    for part in call.split("."):
        function = getattr(function, part)
    names = inspect.signature(function).parameters
    assert new in names and old not in names
    # Both together are refused before anything else is looked at.
    with pytest.raises(TypeError, match=f"{old} is the old name of {new}: give {new} alone"):
        function(**{old: 1, new: 1})


def test_an_old_parameter_warns_where_it_is_given() -> None:
    @renamed(most="max_new_tokens", rng="generator")
    def call(first: int, max_new_tokens: int = 3, *, generator: int = 0) -> tuple[int, int, int]:
        """What it does."""
        return first, max_new_tokens, generator

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert call(1) == (1, 3, 0) and call(1, 2, generator=4) == call(1, max_new_tokens=2, generator=4)
    with pytest.warns(
        DeprecationWarning, match="call: the parameter most is called max_new_tokens now"
    ) as caught:
        assert call(1, most=7, generator=2) == (1, 7, 2)
    assert caught[0].filename == __file__
    with pytest.warns(DeprecationWarning):
        assert call(most=5, rng=6, first=4) == (4, 5, 6)
    with pytest.raises(ArgumentTypeError, match="most is the old name of max_new_tokens"):
        call(1, most=1, max_new_tokens=1)
    with pytest.warns(DeprecationWarning), pytest.raises(TypeError, match="multiple values"):
        call(1, 2, most=3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'mist'"):
        call(1, mist=3)
    assert call.__doc__ == "What it does." and list(inspect.signature(call).parameters)[1] == "max_new_tokens"


def test_an_old_attribute_reads_the_new_one() -> None:
    class Thing:
        new = 3
        old = old_attribute("old", "new")

    with pytest.warns(DeprecationWarning, match="Thing.old is called new now"):
        assert Thing().old == 3
    device = tokenfst.DeviceAutomaton(
        tokenfst.compile(tokenfst.regex("a"), tokenfst.Vocabulary([b"a", b""], eos_token_id=1))
    )
    with pytest.warns(DeprecationWarning, match="DeviceAutomaton.budgets is called token_limits now"):
        assert device.budgets is True
