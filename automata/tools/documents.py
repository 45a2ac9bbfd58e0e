"""The structural tag of tools, a choice and a format, with the role of each of its parts.

Calls occur in free text, each by itself or all in a block (``_free``); in messages with one channel each
(``_messages``); after a response (``_response``); or they form a list of Python calls (``_list``). Reasoning may come
first.
"""

from __future__ import annotations

import keyword
from dataclasses import dataclass
from typing import Any, Literal

from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.json_schema.sets.strings import TextPattern
from tokenfst.automata.languages.language import Language
from tokenfst.automata.structural_tags.documents.xml_styles import STYLES
from tokenfst.automata.tools.definitions.choosing import Chosen
from tokenfst.automata.tools.definitions.definitions import Tool
from tokenfst.automata.tools.definitions.formats import CallFormat
from tokenfst.automata.tools.definitions.sketches import (
    Form,
    Json,
    Sketch,
    any_text,
    constant,
    either,
    sequence,
    wrapped,
)
from tokenfst.automata.tools.inputs import check_texts, element_input, json_input, python_input, without
from tokenfst.automata.tools.python_arguments import python_arguments
from tokenfst.budget import Budget
from tokenfst.errors import ToolError

Reasoning = Literal["disabled", "enabled", "auto"]
_ENDS = ["<|end|>", "<|return|>"]
_START = "<|start|>assistant"
_FINAL = "<|channel|>final<|message|>"
_MESSAGE_END = "<|close|>message<|sep|>"
K3_SIGNS = ["<|open|>", "<|close|>", "<|sep|>"]
"""Texts that no string in Kimi K3's style contains."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a document is made from. ``answer``: the format of a text without calls; ``None`` if it may be any text."""

    row: CallFormat
    tools: tuple[Tool, ...]
    chosen: Chosen
    parallel: bool
    reasoning: Reasoning
    any_order: bool = False
    answer: Json | None = None
    whitespace: str = "flexible"
    budget: Budget | None = None


def draw(plan: Plan) -> tuple[Sketch, Json]:
    """The format that a plan describes, and the sketch with the roles of its tags. Raises ToolError."""
    return _Drawing(plan).whole()


class _Drawing:
    def __init__(self, plan: Plan) -> None:
        self.plan, self.row = plan, plan.row
        self.sketch = Sketch()
        self.mode, self.many = plan.chosen.mode, plan.parallel and plan.chosen.mode != "forced"
        self.contents: dict[int, tuple[Json, Form | None]] = {}

    def whole(self) -> tuple[Sketch, Json]:
        if self.row.layout == "messages":
            return self.sketch, self._messages()
        if self.row.layout == "response":
            return self.sketch, sequence(*self._thinking(), *self._response())
        made = self._list() if self.row.layout == "list" else self._free()
        return self.sketch, sequence(*self._thinking(), made)

    # --- calls ----------------------------------------------------------------------------------------

    def _arguments(self, number: int) -> tuple[Json, Form | None]:
        """The content of a call's arguments, and how it is parsed, unless tags inside of it define that; built once for
        a tool.
        """
        found = self.contents.get(number)
        if found is None:
            found = self.contents[number] = self._made_arguments(number, self.plan.tools[number])
        return dict(found[0]), found[1]

    def _made_arguments(self, number: int, tool: Tool) -> tuple[Json, Form | None]:
        schema = tool.schema
        if tool.input is not None:
            if self.row.bare:
                return {"type": "grammar", "grammar": without(tool, [self.row.end])}, "text"
            check_texts(tool)
            if isinstance(tool.input, Grammar) and not tool.input.is_regular():
                return self._input_text(number, tool), None
            schema = self._input_schema(tool)
        if self.row.style == "python":
            made = python_arguments(schema, tool.pointer, self.plan.budget)
            return {"type": "grammar", "grammar": made}, "python"
        self.sketch.origins[id(schema)] = tool.pointer
        found = {"type": "json_schema", "json_schema": schema, "style": self.row.style}
        if self.row.style == "kimi_k3_xml":
            found["excludes"] = K3_SIGNS
        form: Form = "json" if self.row.style == "json" else "elements"
        return {**found, "any_order": self.plan.any_order}, form

    def _input_text(self, number: int, tool: Tool) -> Json:
        """A custom tool's input as a string of a grammar that needs a stack."""
        row, whitespace = self.row, self.plan.whitespace
        if row.style == "json":
            return json_input(self.sketch, number, tool, whitespace)
        if row.style == "python":
            return python_input(self.sketch, number, tool)
        style, excludes = STYLES[row.style], K3_SIGNS if row.style == "kimi_k3_xml" else []
        return element_input(self.sketch, number, tool, style, excludes, whitespace, newlines=row.newlines)

    def _input_schema(self, tool: Tool) -> dict[str, Any]:
        """The schema of an object that holds a custom tool's input as a string."""
        text, language = {"type": "string"}, tool.input
        if isinstance(language, Grammar):
            language = language.to_language()
        assert isinstance(language, Language)
        if language.source != "any_text()":
            text["pattern"] = TextPattern.of(f"the input of {tool.name}", language)
        return {
            "type": "object",
            "properties": {"input": text},
            "required": ["input"],
            "additionalProperties": False,
        }

    def _call(self, number: int) -> Json:
        row, tool = self.row, self.plan.tools[number]
        begin = row.begin.replace("{name}", tool.name)
        content, form = self._arguments(number)
        if row.number:
            inner = sequence(_pattern(row.number[0]), self._numbered(number))
            return self.sketch.tag(begin, inner, "", "call", number)
        if row.tail:
            inner = self.sketch.tag("", content, "", "arguments", number, form)
            inner = sequence(inner, wrapped("optional", _pattern(row.tail)))
            return self.sketch.tag(begin, inner, row.end, "call", number)
        return self.sketch.tag(begin, content, row.end, "call", number, form)

    def _numbered(self, number: int) -> Json:
        """What follows a call's number."""
        assert self.row.number is not None
        after = self.row.number[1].replace("{name}", self.plan.tools[number].name)
        content, form = self._arguments(number)
        return self.sketch.tag(after, content, self.row.end, "arguments", number, form)

    def _calls(self) -> list[Json]:
        """A tag for each tool; one tag for all if all calls begin with the same text."""
        numbers = self.plan.chosen.tools
        if self.row.number and "{name}" not in self.row.begin:
            after = either(*map(self._numbered, numbers))
            return [
                self.sketch.tag(self.row.begin, sequence(_pattern(self.row.number[0]), after), "", "call")
            ]
        return [self._call(number) for number in numbers]

    # --- layouts --------------------------------------------------------------------------------------

    def _free(self) -> Json:
        """Calls in free text, or in a block in free text."""
        row, answer = self.row, self.plan.answer
        if self.mode == "none":
            return answer or any_text(*row.excludes, row.begins)
        calls = self._calls()
        if row.block is not None:
            return self._block(row, calls)
        if self.mode == "forced":
            return calls[0]
        needed = self.mode == "required" or answer is not None
        found = self._triggered(row, calls, at_least_one=needed)
        return either(answer, found) if answer is not None and self.mode == "auto" else found

    def _block(self, row: CallFormat, calls: list[Json]) -> Json:
        assert row.block is not None
        begin, end = row.block
        inner = calls[0] if self.mode == "forced" else _separated(calls, row.separator, many=self.many)
        if self.mode == "auto" and self.plan.answer is None:
            return self._triggered(row, [self.sketch.tag(begin, inner, end)])
        if row.open and self.mode != "forced" and self.plan.answer is None:
            return self._triggered(row, [self.sketch.tag(begin, inner, end)], at_least_one=True)
        block = self.sketch.tag(row.lead + begin, inner, end)
        return either(self.plan.answer, block) if self.plan.answer and self.mode == "auto" else block

    def _triggered(self, row: CallFormat, tags: list[Json], *, at_least_one: bool = False) -> Json:
        return {
            "type": "triggered_tags",
            "triggers": [row.begins],
            "tags": tags,
            "at_least_one": at_least_one,
            "stop_after_first": not self.many,
            "excludes": [each for each in row.excludes if each != row.begins],
        }

    def _list(self) -> Json:
        """A list of Python calls."""
        answer, tools = self.plan.answer, self.plan.tools
        numbers = range(len(tools)) if self.mode == "none" else self.plan.chosen.tools
        for tool in map(tools.__getitem__, self.plan.chosen.tools):
            if not tool.name.isidentifier() or keyword.iskeyword(tool.name):
                raise ToolError(
                    tool.place,
                    f"the name {tool.name!r} is not a Python identifier, so the format {self.row.name!r} cannot call "
                    "it: rename the tool, or choose another format",
                )
        begins = {number: f"[{tools[number].name}(" for number in numbers}
        if self.mode == "none":
            return answer or any_text(*begins.values())

        def call(number: int, lead: str) -> Json:
            content, form = self._arguments(number)
            return self.sketch.tag(lead, content, ")", "call", number, form, f"{tools[number].name}(")

        others = [call(number, f", {tools[number].name}(") for number in numbers]
        more = [wrapped("star", either(*others))] if self.many else []
        lists = [
            self.sketch.tag(begin, sequence(call(number, ""), *more), "]", tool=number, lead=1)
            for number, begin in begins.items()
        ]
        if self.mode == "auto" and answer is None:
            return {
                "type": "triggered_tags",
                "triggers": [*begins.values()],
                "tags": lists,
                "stop_after_first": not self.many,
            }
        made = either(*lists)
        return either(answer, made) if answer is not None and self.mode == "auto" else made

    def _messages(self) -> Json:
        """Messages with one channel each: reasoning, calls, and the answer."""
        thinking = [] if self.plan.reasoning == "disabled" else [self._analysis()]
        final = self.sketch.tag(_FINAL, self.plan.answer or any_text(), _ENDS, "content")
        calls = [] if self.mode == "none" else self._message_calls()
        next_one = self.sketch.frame(_START)
        before = [wrapped("star", sequence(*thinking, next_one))] if thinking else []
        more = [wrapped("star", sequence(next_one, either(*thinking, *calls)))] if self.many else []
        needed = [sequence(either(*calls), *more)] if calls else []
        others = [*thinking, final]
        if self.mode in ("required", "forced"):
            made = sequence(*before, *needed)
        elif self.plan.answer is not None:
            made = sequence(*before, either(final, *needed))
        elif self.many or not calls:
            made = _separated([*calls, *others], _START, needed=False)
        else:
            # No two tags may begin with the same text at one position: the parser could not distinguish them.
            call = either(*calls)
            last = wrapped("optional", sequence(constant(_START), call))
            made = wrapped("optional", either(call, sequence(_separated(others, _START), last)))
        return self.sketch.tag("", made, "")

    def _analysis(self) -> Json:
        assert self.row.thinking is not None
        return self.sketch.tag(self.row.thinking.begin, any_text(), _ENDS, "reasoning")

    def _message_calls(self) -> list[Json]:
        found = []
        for number in self.plan.chosen.tools:
            tool = self.plan.tools[number]
            channel, to = "<|channel|>commentary", f" to=functions.{tool.name}"
            begins = [f"{channel}{to}<|constrain|>json<|message|>"]
            begins += [f"{to}{channel} <|constrain|>json<|message|>", f"{to}{channel} json<|message|>"]
            if tool.input is not None:
                begins = [f"{channel}{to}<|message|>", f"{to}{channel}<|message|>"]
            content, form = self._arguments(number)
            found += [self.sketch.tag(begin, content, self.row.end, "call", number, form) for begin in begins]
        return found

    def _response(self) -> list[Json]:
        """A response, then calls."""
        excludes, thinking = self.row.excludes, self.row.thinking
        assert thinking is not None and self.row.block is not None
        begin = "" if self.plan.reasoning == "disabled" else "<|open|>response<|sep|>"
        content = self.plan.answer or any_text(*excludes)
        found = [self.sketch.tag(begin, content, "<|close|>response<|sep|>", "content")]
        if self.mode != "none":
            calls = self._calls()
            inner = calls[0] if self.mode == "forced" else _separated(calls, "", many=self.many)
            tools = self.sketch.tag(self.row.block[0], inner, self.row.block[1])
            found.append(wrapped("optional", tools) if self.mode == "auto" else tools)
        return [*found, self.sketch.frame(_MESSAGE_END)]

    # --- reasoning ------------------------------------------------------------------------------------

    def _thinking(self) -> list[Json]:
        """The reasoning before the answer."""
        thinking, reasoning = self.row.thinking, self.plan.reasoning
        if thinking is None:
            if reasoning == "enabled":
                raise ToolError("reasoning", f"the format {self.row.name!r} has no reasoning: leave it out")
            return []
        if reasoning == "disabled":
            return [self.sketch.frame(thinking.skipped)] if thinking.skipped else []
        must = reasoning == "enabled"
        begin = "" if must and thinking.opened else thinking.begin
        excludes = () if must and thinking.loose else thinking.excludes
        # The end may be excluded from the text before it. Nothing here begins with the empty text: then the position
        # of a sentinel would be ambiguous.
        made = self.sketch.tag(begin, any_text(*excludes), thinking.end, "reasoning")
        if thinking.after:
            made = sequence(made, self.sketch.frame(thinking.after))
        if must:
            return [made]
        if thinking.bare_end:
            made = either(made, self.sketch.frame(thinking.end))
        return [wrapped("optional", made)]


def _pattern(pattern: str) -> Json:
    return {"type": "regex", "pattern": pattern}


def _separated(tags: list[Json], separator: str, *, many: bool = True, needed: bool = True) -> Json:
    return {
        "type": "tags_with_separator",
        "tags": tags,
        "separator": separator,
        "at_least_one": needed,
        "stop_after_first": not many,
    }
