"""Fixtures that several test files share."""

from __future__ import annotations

import pytest

from tokenfst import Vocabulary, load_vocabulary


@pytest.fixture(scope="session")
def tekken() -> Vocabulary:
    """The real vocabulary of 131,072 tokens that the mistral-common wheel carries."""
    return load_vocabulary("mistral:tekken_240911")
