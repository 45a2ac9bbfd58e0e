"""Who may ask the explorer, and what its answers carry."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator

import pytest

from tokenfst import Vocabulary
from tokenfst.explore.questions import Explorer
from tokenfst.explore.server import MOST_BYTES, PAGE, Server

VOCABULARY = Vocabulary([*(bytes((byte,)) for byte in range(256)), b""], 256)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(Explorer(VOCABULARY)) as made:
        made.start()
        yield made
        made.shutdown()


def request(
    server: Server, method: str, path: str, body: bytes | None = None, **headers: str
) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body, named)
    return connection.getresponse()


JSON = {"Content_Type": "application/json"}


def test_the_page_has_all_of_its_files_and_nothing_from_elsewhere(server: Server) -> None:
    for path in PAGE.iterdir():
        found = request(server, "GET", f"/{server.secret}/{path.name}")
        text = path.read_text()
        served = path.suffix != ".json"
        assert (found.status == 200) == served, path
        assert found.headers["X-Content-Type-Options"] == "nosniff"
        assert "frame-ancestors 'none'" in found.headers["Content-Security-Policy"]
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), path
        for name in re.findall(r'(?:src|href|from)[= ]"(?:\./)?([\w-]+\.\w+)"', text):
            assert (PAGE / name).is_file(), f"{path.name} wants {name}"
    assert request(server, "GET", f"/{server.secret}/").read() == (PAGE / "index.html").read_bytes()


def test_a_question_is_answered(server: Server) -> None:
    body = json.dumps({"kind": "regex", "text": "a|b"}).encode()
    found = request(server, "POST", f"/{server.secret}/ask/open", body, **JSON)
    assert found.status == 200 and json.loads(found.read())["shortest"]["text"] == "a"
    assert found.headers["Content-Type"] == "application/json; charset=utf-8"


def test_who_does_not_know_the_secret_learns_nothing(server: Server) -> None:
    for path in ("/", "/index.html", "/x/", f"/{server.secret[:-1]}/", f"/{server.secret}x/", "/ask/about"):
        for method, body in (("GET", None), ("POST", b"{}")):
            found = request(server, method, path, body, **JSON)
            assert found.status == 403 and b"tokenfst explore" in found.read()
    assert len(server.secret) >= 20
    assert request(server, "GET", f"/{server.secret}").status in (200, 403)


def test_other_sites_and_foreign_names_are_turned_away(server: Server) -> None:
    path = f"/{server.secret}/ask/about"
    port = server.server_port
    assert request(server, "POST", path, b"{}", **JSON).status == 200
    own = {"Origin": f"http://127.0.0.1:{port}"}
    assert request(server, "POST", path, b"{}", **JSON, **own).status == 200
    for origin in ("https://example.org", "null", f"http://127.0.0.1:{port + 1}", f"http://localhost:{port}"):
        assert request(server, "POST", path, b"{}", **JSON, Origin=origin).status == 403
    for host in ("example.org", f"example.org:{port}", "127.0.0.1", ""):
        assert request(server, "POST", path, b"{}", **JSON, Host=host).status == 403
    assert request(server, "POST", path, b"{}", **JSON, Host=f"localhost:{port}").status == 200


def test_nothing_outside_of_the_page_is_read(server: Server) -> None:
    for path in (
        "../server.py",
        "..%2fserver.py",
        "/etc/passwd",
        "page/index.html",
        "jsconfig.json",
        "none.js",
        ".",
    ):
        assert request(server, "GET", f"/{server.secret}/{path}").status == 404


def test_requests_of_another_form_are_refused(server: Server) -> None:
    path = f"/{server.secret}/ask/open"
    assert request(server, "POST", path, b"{}", Content_Type="text/plain").status == 415
    assert request(server, "POST", path, b"{", **JSON).status == 400
    assert request(server, "POST", path, b"[" * 100_000, **JSON).status == 400
    assert request(server, "POST", path, b"\xff", **JSON).status == 400
    assert request(server, "POST", path, None, **JSON, Content_Length=str(MOST_BYTES + 1)).status == 413
    assert request(server, "POST", path, None, **JSON, Content_Length="many").status == 413
    assert request(server, "PUT", path, b"{}", **JSON).status == 501
    assert request(server, "POST", f"/{server.secret}/ask/none", b"{}", **JSON).status == 404


def test_the_server_is_on_this_machine_alone(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.address == f"http://127.0.0.1:{server.server_port}/{server.secret}/"
