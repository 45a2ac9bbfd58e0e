"""The queries of the page by name, with checked arguments and JSON answers; independent of the transport.

The server answers them over HTTP. In a page without a server, a worker in the browser answers them.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import tokenfst.errors as errors
from tokenfst.budget import Budget
from tokenfst.common.clock_cache import Recent
from tokenfst.explore.kinds import KINDS
from tokenfst.explore.opened import MOST_LISTED, MOST_STATES, MOST_TOKENS, Opened
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_KEPT = 8
"""The number of constraints that stay open."""
GIVEN = "given"
"""The kind of the constraint that the command line gave."""


class RequestError(errors.TokenfstError, ValueError):
    """A query has a form that the page does not send."""


class Explorer:
    """The queries of the page by name. ``given``: a constraint that is open from the beginning."""

    def __init__(
        self, vocabulary: Vocabulary, budget: Budget | None = None, given: Opened | None = None
    ) -> None:
        self.vocabulary, self.budget, self.given = vocabulary, budget or Budget(seconds=10), given
        self._kept: Recent[tuple[str, str], Opened] = Recent(_KEPT)
        self.questions: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "about": self._about,
            "open": lambda asked: self._of(asked, lambda opened: opened.about()),
            "step": self._step,
            "explain": self._explain,
            "check": lambda asked: self._of(asked, lambda opened: opened.check(_string(asked, "candidate"))),
            "cut": lambda asked: self._of(asked, lambda opened: opened.cut(_string(asked, "candidate"))),
            "picture": self._picture,
        }

    def answer(self, question: str, asked: Any) -> tuple[HTTPStatus, dict[str, Any]]:
        """The answer to a query, or its error."""
        if question not in self.questions:
            return HTTPStatus.NOT_FOUND, {"error": f"there is no question {question!r}", "kind": "request"}
        if not isinstance(asked, dict):
            return HTTPStatus.BAD_REQUEST, {"error": "a question is a JSON object", "kind": "request"}
        try:
            return HTTPStatus.OK, self.questions[question](asked)
        except RequestError as error:
            return HTTPStatus.BAD_REQUEST, {"error": str(error), "kind": "request"}
        except errors.BudgetExceeded as error:
            return HTTPStatus.OK, {"error": str(error), "kind": "budget"}
        except (errors.TokenfstError, ValueError, TypeError) as error:
            return HTTPStatus.OK, {"error": str(error), "kind": "constraint"}
        except MemoryError:
            return HTTPStatus.OK, {"error": "out of memory: make the constraint smaller", "kind": "budget"}

    def _about(self, asked: dict[str, Any]) -> dict[str, Any]:
        from tokenfst import __version__

        kinds = [
            {"name": kind.name, "title": kind.title, "examples": [list(each) for each in kind.examples]}
            for kind in KINDS.values()
        ]
        given = None if self.given is None else self.given.source
        return {
            "version": __version__,
            "vocabulary": {"name": self.vocabulary.name or "unnamed", "size": len(self.vocabulary)},
            "kinds": kinds,
            "given": given,
        }

    def _of(self, asked: dict[str, Any], question: Callable[[Opened], dict[str, Any]]) -> dict[str, Any]:
        opened = self._opened(_string(asked, "kind"), _string(asked, "text"))
        with opened.lock:
            return question(opened)

    def _opened(self, kind: str, text: str) -> Opened:
        if kind == GIVEN and self.given is not None:
            return self.given
        if kind not in KINDS:
            raise RequestError(f"kind is one of {', '.join(KINDS)}, not {kind!r}")
        return self._kept.get(
            (kind, text),
            lambda: Opened.of(
                KINDS[kind].make(text, self.vocabulary, self.budget), self.vocabulary, self.budget
            ),
        )

    def _step(self, asked: dict[str, Any]) -> dict[str, Any]:
        return self._of(
            asked,
            lambda opened: opened.step(
                _tokens(asked),
                limit=_limit(asked),
                query=_string(asked, "query", ""),
                offset=_number(asked, "offset", 0, 1 << 31, 0),
                count=_number(asked, "count", 1, MOST_LISTED, 50),
            ),
        )

    def _explain(self, asked: dict[str, Any]) -> dict[str, Any]:
        return self._of(
            asked,
            lambda opened: opened.explain(_tokens(asked), _number(asked, "token", 0, 1 << 31), _limit(asked)),
        )

    def _picture(self, asked: dict[str, Any]) -> dict[str, Any]:
        return self._of(
            asked,
            lambda opened: opened.picture(
                _tokens(asked),
                around=asked.get("around") is True,
                states=_number(asked, "states", 1, MOST_STATES, 40),
            ),
        )


def _string(asked: dict[str, Any], name: str, default: str | None = None) -> str:
    given = asked.get(name, default)
    if not isinstance(given, str):
        raise RequestError(f"{name} is a string, not {given!r:.60}")
    return given


def _number(asked: dict[str, Any], name: str, low: int, high: int, default: int | None = None) -> int:
    given = asked.get(name, default)
    if not isinstance(given, int) or isinstance(given, bool) or not low <= given <= high:
        raise RequestError(f"{name} is a whole number from {low:,} to {high:,}, not {given!r:.60}")
    return given


def _limit(asked: dict[str, Any]) -> int | None:
    return None if asked.get("limit") is None else _number(asked, "limit", 1, 1 << 20)


def _tokens(asked: dict[str, Any]) -> list[int]:
    given = asked.get("tokens", [])
    if not isinstance(given, list) or len(given) > MOST_TOKENS:
        raise RequestError(f"tokens is a list of at most {MOST_TOKENS:,} token ids")
    return [_number({"a token": each}, "a token", 0, 1 << 31) for each in given]
