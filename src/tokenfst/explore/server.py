"""HTTP for the explorer's page, on this computer and for this page only.

Access: the address has a secret of 128 random bits, which no other page knows. The ``Host`` header of a request must
name this computer (against DNS rebinding), and an ``Origin`` header, if a browser sends one, must name this page.
Answers forbid frames, requests to other hosts, and caching. A request is JSON of at most ``MOST_BYTES`` bytes; the
budget bounds the cost of a constraint.
"""

from __future__ import annotations

import json
import secrets
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tokenfst.explore.questions import Explorer

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
_SECONDS = 30.0
"""Seconds without data after which a connection is closed."""


class Server(ThreadingHTTPServer):
    """Serves the explorer at ``address`` until ``shutdown()``. ``port``: the port, or 0 for any free one."""

    daemon_threads = True

    def __init__(self, explorer: Explorer, port: int = 0) -> None:
        self.explorer = explorer
        self.secret = secrets.token_urlsafe(16)
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def address(self) -> str:
        """The URL of the page."""
        return f"http://127.0.0.1:{self.server_port}/{self.secret}/"

    def start(self) -> None:
        """Serve in a separate thread."""
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a page that was closed before its answer was complete."""
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
        """The path after the secret; None, after an answer was sent, if the request is not from this page."""
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
        """Log nothing: the answer of the command is one line."""
