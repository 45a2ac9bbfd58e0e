"""Requests replayed through each adapter and through the plain matcher: every mask is the same."""

from __future__ import annotations

import pytest
from support.engines.replay import ADAPTERS, SCHEMAS, World, replay, traces, world

pytestmark = pytest.mark.skipif(not SCHEMAS.is_file(), reason="the schemas are not beside the repository")


@pytest.fixture(scope="module")
def known() -> World:
    return world()


@pytest.mark.parametrize("name", ADAPTERS)
def test_masks_of_an_adapter_are_the_plain_matchers(name, known):
    adapter = ADAPTERS[name]
    if missing := adapter.missing():
        pytest.skip(f"{missing} has an environment of its own")
    compared = [replay(known, adapter, trace) for trace in traces(known, 12)]
    assert sum(number is not None for number in compared) >= 8
    assert sum(number or 0 for number in compared) > 300
