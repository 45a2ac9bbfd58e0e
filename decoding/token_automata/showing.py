"""How a matcher is shown: ``repr(matcher)``, and a table of facts in a notebook.

Showing a matcher computes nothing: no mask, no distance, no state that the matcher has not reached.
"""

from __future__ import annotations

from typing import Any

import tokenfst.common.notebook as notebook
from tokenfst._native import Matcher
from tokenfst.automata.languages.display.readable import quoted
from tokenfst.common.plurals import counted
from tokenfst.decoding.token_automata.explaining import native_of
from tokenfst.decoding.token_automata.held_constraints import held_by
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_MOST = 200
"""Characters of a text or a source that are shown."""


def described(matcher: Any) -> str:
    """The class of a matcher, its constraint, how many tokens it has accepted, and whether the text may end."""
    tokens = counted(matcher.num_tokens, "token")
    return f"<{type(matcher).__name__} of {_source(matcher)}: {tokens}, {_stand(matcher)}>"


def described_in_html(matcher: Any) -> str:
    """A matcher as an HTML table: its constraint and vocabulary, the text so far, and its last tokens."""
    vocabulary: Vocabulary = native_of(matcher).made_from[2]
    tokens = matcher.tokens
    last = ", ".join(map(str, tokens[-10:]))
    facts: list[tuple[str, object]] = [
        ("constraint", _source(matcher)),
        ("vocabulary", f"{vocabulary.name or 'unnamed'}, {counted(len(vocabulary), 'token')}"),
        ("text so far", quoted(vocabulary.decode(tokens), _MOST)),
        (
            "tokens so far",
            f"{len(tokens):,}" + (f": … {last}" if len(tokens) > 10 else f": {last}" if tokens else ""),
        ),
        ("the text", _stand(matcher)),
    ]
    return notebook.card(type(matcher).__name__, facts)


def _source(matcher: Any) -> str:
    """The source of the constraint."""
    native = native_of(matcher)
    held = held_by(native)
    if held is None:
        return "a constraint from a file"
    text = held.source
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"


def _stand(matcher: Any) -> str:
    """Whether the text may end, and how many tokens are left."""
    if matcher.is_terminated():
        return "it has ended"
    left = matcher.max_tokens_left
    limit = "" if left is None else f", {counted(left, 'token')} left"
    return ("it may end" if matcher.is_accepting() else "it must go on") + limit


for _name, _method in (("__repr__", described), ("_repr_html_", described_in_html)):
    setattr(Matcher, _name, _method)
