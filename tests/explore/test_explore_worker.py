"""The page without a server, in Chromium: what its worker answers is what the core answers here, and what it bears.

``make test-explore``, after ``make explorer-page``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.programs.static_files import served

from tokenfst import Vocabulary
from tokenfst.explore.kinds import KINDS
from tokenfst.explore.questions import Explorer

pytestmark = pytest.mark.explore
BUILT = Path(__file__).resolve().parents[2] / "build" / "explorer"
MOST_BYTES = 15_000_000
PAGE = 500
"""Tokens of one page of a list: the most there are."""
ASK = """async (asked) => {
  const { ask } = await import("./ask.js");
  const answers = [];
  for (const [question, what] of asked) {
    try {
      answers.push(await ask(question, what));
    } catch (error) {
      answers.push({ error: error.message });
    }
  }
  return JSON.stringify(answers);
}"""
SCHEMAS = [
    {"type": "integer", "multipleOf": 7, "minimum": -20, "maximum": 400},
    {"type": "string", "pattern": "^[A-ZÄÖÜ][a-zß]{2,5}$", "maxLength": 5},
    {"type": "object", "patternProperties": {"^x_": {"type": "number"}}, "additionalProperties": False},
    {"type": "array", "items": {"type": "string", "minLength": 2}, "uniqueItems": True, "minItems": 2, "maxItems": 3},
    {"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}}},
    {"anyOf": [{"const": "left"}, {"enum": [1, None, "right"]}, {"type": "array", "contains": {"const": 3}}]},
    {"type": "object", "properties": {"when": {"format": "date-time"}, "id": {"format": "uuid"}}, "required": ["id"]},
    {"type": "number", "exclusiveMinimum": 0.5, "maximum": 2.25},
    {"not": {"type": "string"}},
]  # fmt: skip
CASES = [
    *((kind.name, text) for kind in KINDS.values() for _, text in kind.examples),
    *(("json_schema", json.dumps(schema)) for schema in SCHEMAS),
    ("regex", r"(?i)straße \d{2}\b"),
    ("regex", r"\p{Lu}\w*(?:-\p{Lu}\w*)?"),
    ("regex", r"(?=.*[0-9])(?!.*(abc|cba))[a-c0-9]{3,8}"),
    ("regex", r"[^\x00-\x7f]{2}|😀+"),
    ("regex", "(a|b"),
    ("gbnf", 'root ::= item ("," item)*\nitem ::= "\\"" [^"\\\\]* "\\"" | "[" root "]"'),
    ("lark", 'start: "if " COND " then " start | WORD\nCOND: /[a-z]+ *(<|>) *[0-9]+/i\nWORD: /\\w+/'),
]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if not (BUILT / "index.html").is_file():
        pytest.skip("there is no page without a server: make explorer-page")
    with served(BUILT) as found:
        yield found


@pytest.fixture(scope="module")
def tab(browser: Any, address: str) -> Iterator[Any]:
    """The page, once for all questions."""
    made = browser.new_page()
    made.set_default_timeout(300_000)
    made.goto(address)
    made.locator("#picture svg").wait_for()
    yield made
    made.close()


def asked_of(explorer: Explorer, kind: str, text: str) -> tuple[list[Any], list[Any]]:
    """Questions about a constraint, and what the core here answers."""
    asked: list[Any] = []
    answers: list[Any] = []

    def ask(question: str, **more: Any) -> dict[str, Any]:
        asked.append((question, {"kind": kind, "text": text, **more}))
        answers.append(explorer.answer(*asked[-1])[1])
        return dict(answers[-1])

    opened = ask("open")
    if "error" in opened:
        return asked, answers
    shortest = (opened["shortest"] or {}).get("text") or ""
    tokens = ask("cut", candidate=shortest).get("tokens", [])
    for count in sorted({0, 1, 2, len(tokens) // 2, len(tokens)}):
        here = ask("step", tokens=tokens[:count], count=PAGE)
        for offset in sorted({PAGE, here["allowed"] // 2, max(0, here["allowed"] - PAGE)}):
            ask("step", tokens=tokens[:count], count=PAGE, offset=offset)
    ask("step", tokens=tokens[:1], limit=len(tokens) + 3, query="a", count=PAGE)
    for token in (0, 1_000, 50_000):
        ask("explain", tokens=tokens[:1], token=token)
    for candidate in (shortest, shortest + "~", shortest[:-1]):
        ask("check", candidate=candidate)
    ask("picture", tokens=tokens, around=True, states=40)
    ask("picture", tokens=[], states=40)
    return asked, answers


@pytest.mark.parametrize(("kind", "text"), CASES, ids=range(len(CASES)))
def test_masks_and_all_other_answers_are_those_of_the_core(
    tab: Any, tekken: Vocabulary, kind: str, text: str
) -> None:
    asked, here = asked_of(Explorer(tekken), kind, text)
    there = json.loads(tab.evaluate(ASK, asked))
    for (question, what), one, other in zip(asked, here, there, strict=True):
        one.pop("kind", None) if "error" in one else None
        assert json.loads(json.dumps(one)) == other, (question, what)


def test_a_budget_that_ran_out_is_said_to_have(tab: Any) -> None:
    pattern = "(?=.*a.{20})(?=.*b.{19})(?=.*c.{18}).*"
    for _ in range(2):
        (answer,) = json.loads(tab.evaluate(ASK, [("open", {"kind": "regex", "text": pattern})]))
        assert "more than" in answer["error"] and "Budget(" in answer["error"]


def test_python_that_ended_is_begun_anew(tab: Any) -> None:
    """Schemas within schemas are more than the browser's stack holds: an answer comes, and so do the next ones."""
    deep = '{"not":' * 3_000 + "true" + "}" * 3_000
    asked = [
        ("open", {"kind": "json_schema", "text": deep}),
        ("check", {"kind": "regex", "text": "a", "candidate": "a"}),
    ]
    first, second = json.loads(tab.evaluate(ASK, asked))
    assert first["error"].startswith("that was too much for this page") and second["accepted"]


def test_it_is_small_and_names_no_other_host() -> None:
    if not BUILT.is_dir():
        pytest.skip("there is no page without a server: make explorer-page")
    assert sum(path.stat().st_size for path in BUILT.iterdir()) < MOST_BYTES
    for path in [*BUILT.glob("*.html"), BUILT / "worker.js", BUILT / "local.js"]:
        assert "https://" not in path.read_text(), path
