"""The table against ``xgrammar.get_model_structural_tag``, where it is installed: the same language for every choice,
but for a list of differences (docs/constraints/tools.md).
"""

from __future__ import annotations

from typing import Any

import pytest

from tokenfst import Language, structural_tag, tools
from tokenfst.automata.tools.definitions.formats import FORMATS

xgrammar = pytest.importorskip("xgrammar", reason="the table is compared with xgrammar's")

DEFINITIONS = [
    {"type": "function", "function": {"name": name, "parameters": schema}}
    for name, schema in (
        ("w", {"type": "object", "properties": {"b": {"type": "boolean"}}, "required": ["b"]}),
        ("wx", {"type": "object", "properties": {"k": {"enum": ["x", "y"]}}}),
    )
]
CHOICES = {
    "auto": "auto",
    "none": "none",
    "required": "required",
    "named": {"type": "function", "function": {"name": "wx"}},
}
OWN = {"json", "mistral", "mistral_v11", "mistral_v3", "python"}
"""Formats that xgrammar has no tag of."""


def language(made: Any) -> Language:
    found = made if isinstance(made, Language) else made.to_language()
    assert isinstance(found, Language)
    return found


@pytest.mark.parametrize("choice", list(CHOICES))
@pytest.mark.parametrize("format", [name for name in FORMATS if name not in OWN])
def test_the_same_language(format: str, choice: str) -> None:
    for reasoning in ("disabled", "enabled", "auto"):
        if reasoning == "enabled" and FORMATS[format].thinking is None:
            continue
        for parallel in (True, False):
            theirs = structural_tag(
                xgrammar.get_model_structural_tag(
                    format,
                    tools=DEFINITIONS,
                    tool_choice=CHOICES[choice],
                    reasoning=reasoning,
                    parallel_tool_calls=parallel,
                )
            )
            ours: Any = tools(
                DEFINITIONS, format=format, choice=CHOICES[choice], reasoning=reasoning, parallel=parallel
            )
            stricter = choice == "none" or (format == "harmony" and choice in ("required", "named"))
            if stricter:
                assert language(theirs).includes(language(ours))
            else:
                assert language(theirs).equivalent(language(ours))


@pytest.mark.parametrize(
    ("format", "choice", "text"),
    [
        ("qwen_3", "none", "<tool_call>"),
        ("llama", "none", '{"name": '),
        ("harmony", "required", ""),
        ("harmony", "named", ""),
    ],
)
def test_where_we_are_stricter(format: str, choice: str, text: str) -> None:
    """A text that says "no call" holds none; one that must call does."""
    given = xgrammar.get_model_structural_tag(
        format, tools=DEFINITIONS, tool_choice=CHOICES[choice], reasoning="disabled"
    )
    assert structural_tag(given).accepts(text)
    assert not tools(DEFINITIONS, format=format, choice=CHOICES[choice]).accepts(text)
