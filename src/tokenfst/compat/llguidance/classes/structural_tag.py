"""Function calls within free text, as llguidance describes them: tags, translated into a grammar in Lark's notation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tokenfst.errors import ConstraintError


class StructTag:
    """A tag: its trigger in free text, its beginning, its content (a JSON Schema or a grammar), and its end."""

    def __init__(self, *, trigger: str, begin: str, grammar: str | dict[str, Any], end: str) -> None:
        self.trigger, self.begin, self.grammar, self.end = trigger, begin, grammar, end
        self._validate()

    def _validate(self) -> None:
        # llguidance raises AssertionErrors for these
        if not self.trigger:
            raise ConstraintError("StructTag: trigger must not be empty")
        if not self.begin.startswith(self.trigger):
            raise ConstraintError(
                f"StructTag: begin must start with the trigger {self.trigger!r}, not be {self.begin!r}"
            )

    @staticmethod
    def to_grammar(
        tags: Sequence[StructTag], *, assume_special: bool = True, text_regex: str = r"(.|\n)*"
    ) -> str:
        """The grammar of free text with these tags. ``assume_special``: triggers such as <...> are special tokens."""
        if not tags or not all(isinstance(tag, StructTag) for tag in tags):
            raise ConstraintError("StructTag.to_grammar: tags must be a list of at least one StructTag")
        if "/" in text_regex:
            raise ConstraintError("StructTag.to_grammar: text_regex must not contain /")
        texts = [_quoted(tag.trigger) for tag in tags if not (assume_special and _is_special(tag.trigger))]
        # llguidance's lexer ends free text at a trigger; here the grammar must exclude triggers from the text.
        free = f"/{text_regex}/" + (f" & ~(/(.|\\n)*/ ({' | '.join(texts)}) /(.|\\n)*/)" if texts else "")
        options = " | ".join(f"tag_{place}" for place in range(len(tags)))
        lines = [
            "%llguidance {}",
            f"start: ({options})* tag_end",
            "tag_end: TAG_TEXT",
            f"TAG_TEXT: {free}",
        ]
        grammars: list[dict[str, str]] = []
        for place, tag in enumerate(tags):
            tag._validate()
            inner = _content(tag.grammar, place, grammars)
            body = f"{_quoted(tag.begin[len(tag.trigger) :])} {inner} {_quoted(tag.end)}"
            if assume_special and _is_special(tag.trigger):
                lines += ["", f"tag_{place}: TAG_TEXT {tag.trigger} {body}"]
            else:
                lines += [
                    "",
                    f"tag_{place}_trig[lazy]: TAG_TEXT {_quoted(tag.trigger)}",
                    f"tag_{place}: tag_{place}_trig {body}",
                ]
        lark = "\n".join(lines) + "\n"
        if not grammars:
            return lark
        return json.dumps({"grammars": [{"name": "struct_tag", "lark_grammar": lark}, *grammars]})


def _content(grammar: str | dict[str, Any], place: int, grammars: list[dict[str, str]]) -> str:
    if isinstance(grammar, dict):
        return "%json " + json.dumps(grammar)
    if grammar.lstrip().startswith("{"):
        return "%json " + grammar
    name = f"tag_{place}_grm"
    grammars.append({"name": name, "lark_grammar": grammar})
    return "@" + name


def _is_special(trigger: str) -> bool:
    return trigger.startswith("<") and trigger.endswith(">")


def _quoted(text: str) -> str:
    return json.dumps(text) if text else ""
