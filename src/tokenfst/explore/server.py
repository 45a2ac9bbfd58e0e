"""HTTP for the explorer's page, on this machine and for this page alone.

Who may ask: the address has a secret of 128 random bits, which no other page knows; a request must name this machine as
its host (so that no foreign name leads here) and, where a browser says where it comes from, come from this very page.
Answers forbid frames, other hosts and copies in caches. A request is JSON of at most ``MOST_BYTES``; what a constraint
may cost is the budget's to say.
"""

from __future__ import annotations

import json
import secrets
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import tokenfst.errors as errors
from tokenfst.budget import Budget
from tokenfst.explore.kinds import KINDS
from tokenfst.explore.opened import MOST_LISTED, MOST_STATES, MOST_TOKENS, Opened
from tokenfst.recent import Recent
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

PAGE = Path(__file__).parent / "page"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
MOST_BYTES = 1 << 20
_KEPT = 8
"""Constraints that are kept open."""
_SECONDS = 30.0
"""Of silence on a connection before it is closed."""
GIVEN = "given"
"""The kind of the constraint that the command line gave."""


class RequestError(errors.TokenfstError, ValueError):
    """What was asked has another form than the page gives it."""


class Explorer:
    """The questions of the page by name; ``given``: a constraint that is there from the beginning."""

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
        """The answer to a question, or what is wrong with it."""
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


class Server(ThreadingHTTPServer):
    """The explorer at ``address``, until ``shutdown()``. ``port`` 0: one that is free."""

    daemon_threads = True

    def __init__(self, explorer: Explorer, port: int = 0) -> None:
        self.explorer = explorer
        self.secret = secrets.token_urlsafe(16)
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.server_port}/{self.secret}/"

    def start(self) -> None:
        """Serve in a thread of its own."""
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A page that was closed in the midst of an answer is nobody's fault."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "tokenfst"
    sys_version = ""
    timeout = _SECONDS

    def do_GET(self) -> None:  # the name that the base class looks for
        place = self._place()
        if place is None:
            return
        path = PAGE / (place or "index.html")
        if path.parent != PAGE or path.suffix not in TYPES or not path.is_file():
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"there is no such page")
            return
        self._send(HTTPStatus.OK, TYPES[path.suffix], path.read_bytes())

    def do_POST(self) -> None:  # as above
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            self.close_connection = True  # what was sent is not read
            self._send(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "text/plain", b"at most a megabyte, of a known length"
            )
            return
        body = self.rfile.read(int(length))
        place = self._place()
        if place is None:
            return
        if self.headers.get_content_type() != "application/json":
            self._send(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "text/plain", b"questions are application/json")
            return
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError):
            asked = None
        code, answer = self.server.explorer.answer(place.removeprefix("ask/"), asked)
        self._send(code, "application/json", json.dumps(answer).encode())

    def _place(self) -> str | None:
        """The path below the secret; None, and an answer is sent: who asks is not this page."""
        port = self.server.server_port
        hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        secret, _, place = self.path.partition("?")[0].lstrip("/").partition("/")
        own = host in hosts and (origin is None or origin == f"http://{host}")
        if own and secrets.compare_digest(secret.encode(), self.server.secret.encode()):
            return place
        self._send(HTTPStatus.FORBIDDEN, "text/plain", b"open the address that tokenfst explore printed")
        return None

    def _send(self, code: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the answer of the command is one line."""
