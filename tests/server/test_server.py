"""The server, over HTTP: every answer and every refusal is as its document says, and tenants do not see each other."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tokenfst import Store, load, load_vocabulary
from tokenfst.server.limits import Limits

pytest.importorskip("starlette", reason="the extra serve is not installed")
pytest.importorskip("uvicorn", reason="the extra serve is not installed")
pytest.importorskip("prometheus_client", reason="the extra serve is not installed")
httpx = pytest.importorskip("httpx", reason="the tests of the server need httpx")

from support.programs.constraint_server import KEYS, Running, serving

from tokenfst.server.front.openapi import document

LIMITS = Limits(workers=1, seconds=60, memory=1 << 30, body=20_000, states=2_000, queue=3, waiting=60)
REGEX = {"regex": "[0-9]{3}"}
SCHEMA = {"json_schema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("server"), LIMITS) as found:
        yield found


@pytest.fixture(scope="module")
def client(running: Running) -> Iterator[Any]:
    with httpx.Client(base_url=running.url, headers={"x-api-key": KEYS["acme"]}, timeout=60) as found:
        yield found


def held(path: str, response: Any, method: str = "post") -> Any:
    """The answer, which is as the document says."""
    about = document()["paths"][path][method]["responses"]
    schema = about.get(str(response.status_code), about["default"])["content"]["application/json"]["schema"]
    found = response.json()
    jsonschema.validate(found, schema | {"components": document()["components"]})
    return found


def ask(client: Any, path: str, body: Any) -> Any:
    response = client.post(path, json=body)
    assert response.status_code == 200, response.text
    return held(path, response)


def test_what_is_compiled_is_an_artifact_that_workers_load(
    client: Any, running: Running, tmp_path: Path
) -> None:
    made = ask(client, "/v1/constraints", {"constraint": SCHEMA, "expand": True})
    assert made["kind"] == "tables" and made["states"] > 1
    described = held("/v1/constraints/{id}", client.get(f"/v1/constraints/{made['id']}"), "get")
    assert made == described | {"warnings": []}
    whole = client.get(f"/v1/constraints/{made['id']}/artifact")
    assert len(whole.content) == made["bytes"]
    ((_, spec),) = running.server._work.vocabularies
    vocabulary = load_vocabulary(spec)
    (tmp_path / "a.safetensors").write_bytes(whole.content)
    assert load(tmp_path / "a.safetensors", vocabulary).is_expanded
    mine = Store(f"{running.server._store}/tenants/acme")
    assert bytes(mine.artifact(made["id"])) == whole.content == mine.get(made["id"], vocabulary).serialize()
    assert ask(client, "/v1/constraints", {"constraint": SCHEMA})["kind"] == "program"


def test_artifacts_come_in_parts(client: Any) -> None:
    name = ask(client, "/v1/constraints", {"constraint": REGEX})["id"]
    path = f"/v1/constraints/{name}/artifact"
    whole = client.get(path)
    size = len(whole.content)
    assert whole.headers["etag"] == f'"{name}"' and whole.headers["content-length"] == str(size)
    for header, begin, end in (
        ("0-9", 0, 10),
        ("5-", 5, size),
        ("-7", size - 7, size),
        (f"3-{size * 9}", 3, size),
        (f"3-{(1 << 64) - 1}", 3, size),
    ):
        part = client.get(path, headers={"range": f"bytes={header}"})
        assert part.status_code == 206 and part.content == whole.content[begin:end], header
        assert part.headers["content-range"] == f"bytes {begin}-{end - 1}/{size}"
    for header in ("bytes=0-1,4-5", "lines=1-2", "bytes=-", "bytes=9-3", "bytes=x"):
        part = client.get(path, headers={"range": header})
        assert part.status_code == 200 and part.content == whole.content, header
    for header in (f"bytes={size}-", "bytes=-0", f"Bytes={1 << 64}-"):
        none = client.get(path, headers={"range": header})
        assert none.status_code == 416 and none.headers["content-range"] == f"bytes */{size}"
    etag = whole.headers["etag"]
    for header, status in ((etag, 304), (f"W/{etag}", 304), (f'"another", W/{etag}', 304), ("*", 304)):
        assert client.get(path, headers={"if-none-match": header}).status_code == status, header
    for header in ('"another"', name, f'"another,{etag}', '""'):
        assert client.get(path, headers={"if-none-match": header}).status_code == 200, header
    changed = client.get(path, headers={"if-range": '"another"', "range": "bytes=0-1"})
    assert changed.status_code == 200 and len(changed.content) == size
    head = client.head(path)
    assert head.status_code == 200 and head.headers["content-length"] == str(size) and not head.content
    for header in ("bytes=0-9", f"bytes={size}-"):  # only GET has ranges
        head = client.head(path, headers={"range": header})
        assert head.status_code == 200 and head.headers["content-length"] == str(size), header


def test_questions_are_answered_as_on_the_command_line(client: Any) -> None:
    checked = ask(client, "/v1/check", {"constraint": REGEX, "texts": ["123", "12a"]})
    assert [each["accepted"] for each in checked["results"]] == [True, False]
    assert checked["results"][1]["byte"] == 2 and not checked["accepted"]
    name = ask(client, "/v1/constraints", {"constraint": {"regex": "ab|c"}})["id"]
    for given in ({"id": name}, {"constraint": {"regex": "ab|c"}}):
        tokens = ask(client, "/v1/check", given | {"tokens": [[97, 98], [256], [99, 99]]})
        assert [each["accepted"] for each in tokens["results"]] == [True, True, False]
    explained = ask(client, "/v1/explain", {"constraint": SCHEMA, "text": '{"a": x}'})
    assert explained["byte"] == 6 and explained["ending"]["text"] and explained["rules"][-1] == "#"
    assert ask(client, "/v1/explain", {"constraint": SCHEMA, "text": '{"a', "prefix": True})["accepted"]
    assert ask(client, "/v1/diff", {"a": {"regex": "a+"}, "b": {"regex": "a*"}})["only_in_b"]["text"] == ""
    changes = ask(client, "/v1/diff", {"a": SCHEMA, "b": {"json_schema": {"type": "object"}}})
    assert changes["kind"] == "schemas" and changes["backward_compatible"] and changes["changes"]
    body = {"constraint": {"regex": "[a-z]{4}"}, "number": 3, "seed": 7}
    drawn = ask(client, "/v1/sample", body)
    assert drawn == ask(client, "/v1/sample", body) and len(drawn["samples"]) == 3
    ids = ask(client, "/v1/sample", {"id": name, "tokens": True})["samples"][0]["tokens"]
    assert bytes(b for each in ids for b in (b"ab" if each == 256 else [each])) in (b"ab", b"c")


def test_requests_of_openai_are_judged(client: Any) -> None:
    form = {
        "type": "json_schema",
        "json_schema": {"name": "n", "strict": True, "schema": SCHEMA["json_schema"]},
    }
    found = ask(client, "/v1/openai/validate", {"request": {"messages": [], "response_format": form}})
    assert found["valid"] and found["program_bytes"] > 0 and found["shortest_tokens"] > 1
    strict = {"request": {"response_format": form}, "provider": "openai"}
    (finding,) = ask(client, "/v1/openai/validate", strict)["provider_findings"]
    assert finding["pointer"] == "#/response_format/json_schema/schema"
    broken = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "x"}}}
    refused = client.post("/v1/openai/validate", json={"request": {"response_format": broken}})
    assert refused.status_code == 422
    assert refused.json()["error"]["pointer"] == "#/response_format/json_schema/schema/type"


BAD: list[tuple[str, Any, int, str, dict[str, Any]]] = [
    ("/v1/check", b"nonsense", 400, "bad_request", {"message": "column 1"}),
    ("/v1/check", b"[1]", 400, "bad_request", {"message": "not a JSON object"}),
    ("/v1/check", b"[" * 9_000, 400, "bad_request", {"message": "nested too deeply"}),
    ("/v1/check", b"\xff\xfe{}", 400, "bad_request", {"message": "not JSON"}),
    ("/v1/check", b'{"a":' + b"9" * 5000 + b"}", 400, "bad_request", {"message": "4,300 digits"}),
    ("/v1/check", b"", 400, "bad_request", {"message": "give one of 'texts' and 'tokens'"}),
    ("/v1/check", {"constraint": REGEX, "texts": 3}, 400, "bad_request", {"pointer": "#/texts"}),
    ("/v1/check", {"constraint": REGEX, "texts": ["a", 3]}, 400, "bad_request", {"pointer": "#/texts/1"}),
    ("/v1/check", {"constraint": REGEX, "texts": ["\ud800"]}, 400, "bad_request", {"pointer": "#/texts/0"}),
    ("/v1/check", {"constraint": REGEX, "tokens": [[True]]}, 400, "bad_request", {"pointer": "#/tokens/0"}),
    ("/v1/check", {"constraint": REGEX, "tokens": [[9999]]}, 422, "bad_constraint", {"part": "tokens"}),
    ("/v1/check", {"id": "0" * 64, "tokens": [[1]]}, 404, "not_found", {}),
    ("/v1/check", {"id": "../../etc/passwd", "tokens": [[1]]}, 404, "not_found", {}),
    ("/v1/explain", {"constraint": REGEX}, 400, "bad_request", {"pointer": "#/text"}),
    ("/v1/constraints", {"constraint": REGEX, "x": 1}, 400, "bad_request", {"pointer": "#/x"}),
    ("/v1/constraints", {"constraint": []}, 400, "bad_request", {"pointer": "#/constraint"}),
    ("/v1/constraints", {"constraint": {"regex": "a(b"}}, 422, "bad_constraint", {"position": 1}),
    (
        "/v1/constraints",
        {"constraint": {"regex": "a(?!)"}},
        422,
        "bad_constraint",
        {"type": "EmptyLanguageError"},
    ),
    ("/v1/constraints", {"constraint": {"nothing": 1}}, 422, "bad_constraint", {"part": "constraint"}),
    (
        "/v1/constraints",
        {"constraint": {"json_schema": {"properties": {"a": {"type": "x"}}}}},
        422,
        "bad_constraint",
        {"type": "SchemaError", "pointer": "#/properties/a/type"},
    ),
    (
        "/v1/constraints",
        {"constraint": {"regex": "(a|b)*a(a|b){40}c"}, "expand": True},
        422,
        "over_limit",
        {"type": "BudgetExceeded", "message": "2,000 states", "remedy": "2,000 states"},
    ),
    ("/v1/constraints", {"constraint": REGEX, "vocabulary": "x"}, 400, "bad_request", {"message": "'small'"}),
    ("/v1/diff", {"a": REGEX, "b": {"regex": "("}}, 422, "bad_constraint", {"part": "b", "position": 0}),
    ("/v1/sample", {"constraint": REGEX, "number": 1000}, 400, "bad_request", {"pointer": "#/number"}),
    ("/v1/sample", {"constraint": REGEX, "seed": 10**400}, 400, "bad_request", {"pointer": "#/seed"}),
    ("/v1/sample", {"constraint": REGEX, "seed": None}, 400, "bad_request", {"pointer": "#/seed"}),
    ("/v1/sample", {"constraint": REGEX, "length": 2}, 422, "bad_constraint", {}),
    ("/v1/openai/validate", {"request": {"tools": 3}}, 422, "bad_constraint", {"pointer": "#/tools"}),
    ("/v1/openai/validate", {"request": {}, "provider": "x"}, 400, "bad_request", {"pointer": "#/provider"}),
    (
        "/v1/openai/validate",
        {"request": {"text": 3}, "provider": "openai"},
        422,
        "bad_constraint",
        {"pointer": "#/text"},
    ),
]


def test_every_refusal_says_what_where_and_what_to_do(client: Any) -> None:
    for path, body, status, code, wanted in BAD:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        for _ in range(2):  # the second time it may be kept
            response = client.post(path, content=data)
            error = held(path, response)["error"]
            assert (response.status_code, error["code"]) == (status, code), (path, data[:80], error)
            for name, value in wanted.items():
                found = error[name]
                assert value == found or (isinstance(found, str) and value in found), (path, data[:80], error)
    for method, path, status in (("GET", "/v1/check", 405), ("GET", "/nothing", 404), ("POST", "/v1", 404)):
        response = client.request(method, path)
        assert response.status_code == status and response.json()["error"]["remedy"]


def test_bodies_have_a_limit(client: Any) -> None:
    large = b'{"constraint": "' + b"a" * LIMITS.body + b'"}'
    declared = client.post("/v1/check", content=large)
    streamed = client.post("/v1/check", content=iter([large[:9000], large[9000:18000], large[18000:]]))
    for response in (declared, streamed):
        assert response.status_code == 413 and held("/v1/check", response)["error"]["code"] == "too_large"
    packed = client.post("/v1/check", content=b"x", headers={"content-encoding": "gzip"})
    assert packed.status_code == 415


@pytest.mark.parametrize("path", ["/healthz/", "/v1/check/", "/v1/constraints/"])
def test_no_answer_names_the_host_of_the_request(path: str, client: Any) -> None:
    """Neither as the place to go to, nor otherwise: a cache in front would give the answer to others."""
    response = client.get(path, headers={"host": "elsewhere.example"})
    assert response.status_code == 404 and "location" not in response.headers
    assert b"elsewhere" not in response.content


def test_a_tenant_learns_nothing_of_another(client: Any, running: Running) -> None:
    body = {"constraint": {"regex": "a secret of acme"}}
    name = ask(client, "/v1/constraints", body)["id"]
    for path in ("", "/artifact"):  # so that it is in all caches, that of the machine included
        assert client.get(f"/v1/constraints/{name}{path}").status_code == 200
    with httpx.Client(base_url=running.url, timeout=60) as stranger:
        for key in (
            {},
            {"x-api-key": "key-of-acm"},
            {"authorization": "Basic key-of-acme"},
            {"x-api-key": ""},
        ):
            refused = stranger.get(f"/v1/constraints/{name}", headers=key)
            assert refused.status_code == 401 and refused.headers["www-authenticate"] == "Bearer"
        bearer = {"authorization": f"Bearer {KEYS['other']}"}
        for path in ("", "/artifact"):
            theirs = stranger.get(f"/v1/constraints/{name}{path}", headers=bearer)
            guessed = stranger.get(f"/v1/constraints/{'0' * 64}{path}", headers=bearer)
            assert theirs.status_code == guessed.status_code == 404 and theirs.content == guessed.content
        check = stranger.post("/v1/check", json={"id": name, "tokens": [[1]]}, headers=bearer)
        assert check.status_code == 404 and check.content == guessed.content
        own = stranger.post("/v1/constraints", json=body, headers=bearer)  # whoever has the text has the id
        assert own.json()["id"] == name
        assert stranger.get(f"/v1/constraints/{name}/artifact", headers=bearer).status_code == 200
    assert client.get(f"/v1/constraints/{name}").status_code == 200


def test_too_many_are_told_when_to_come_again(client: Any, running: Running) -> None:
    """The one worker's job does not end before the queue is full: it is made to wait for a lock that we hold."""
    pool = running.server._pool
    held_back = threading.Event()
    drive = pool._drive

    def slowly(worker: Any, job: Any) -> Any:
        held_back.wait()
        return drive(worker, job)

    pool._drive = slowly  # type: ignore[method-assign]
    try:
        with ThreadPoolExecutor(8) as threads:
            bodies = [{"constraint": {"regex": f"x{number}"}, "texts": ["x1"]} for number in range(5)]
            first = [threads.submit(client.post, "/v1/check", json=body) for body in bodies[:4]]
            same = [threads.submit(client.post, "/v1/check", json=bodies[0]) for _ in range(3)]
            while pool.waiting < 3 or pool.busy < 1:
                time.sleep(0.01)
            response = client.post("/v1/check", json=bodies[4])
            assert response.status_code == 429 and int(response.headers["retry-after"]) >= 1
            assert held("/v1/check", response)["error"]["code"] == "busy"
            gauges = client.get("/metrics").text
            assert "tokenfst_queue_waiting 3.0" in gauges and "tokenfst_workers_busy 1.0" in gauges
            held_back.set()
            answers = [each.result() for each in first]
            assert [each.json()["accepted"] for each in answers] == [False, True, False, False]
            assert {each.content for each in (each.result() for each in same)} == {answers[0].content}
    finally:
        held_back.set()
        pool._drive = drive  # type: ignore[method-assign]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are stopped by signals")
def test_a_request_that_was_kept_waiting_is_told_to_come_again(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker is stopped for longer than a request may take, as on a machine with too much to do. The same request
    is answered later, when it has the time; one that had a processor for all of its seconds is refused for good.
    """
    limits = replace(LIMITS, states=10**9)
    body = {"constraint": REGEX, "texts": ["123"]}
    bomb = {"constraint": {"regex": "(a|b)*a(a|b){40}c"}, "expand": True}
    with (
        serving(tmp_path_factory.mktemp("overloaded"), limits) as running,
        httpx.Client(base_url=running.url, headers={"x-api-key": KEYS["acme"]}, timeout=60) as client,
    ):
        (worker,) = running.workers
        os.kill(worker, signal.SIGSTOP)
        running.server._pool._limits = replace(limits, seconds=1.5)
        response = client.post("/v1/check", json=body)
        error = held("/v1/check", response)["error"]
        assert (response.status_code, error["code"]) == (503, "overloaded"), error
        assert int(response.headers["retry-after"]) == 2 and "1.5 seconds" in error["message"]
        running.server._pool._limits = limits
        response = client.post("/v1/check", json=body)
        assert response.status_code == 200 and response.json()["accepted"], response.text
        # How long the bomb has a processor is the machine's affair, which may be busy with other things than this test.
        monkeypatch.setattr(
            "tokenfst.server.workers.pool.processor_seconds", lambda process: time.monotonic()
        )
        running.server._pool._limits = replace(limits, seconds=0.2)
        response = client.post("/v1/constraints", json=bomb)
        assert response.status_code == 422, response.text
        assert held("/v1/constraints", response)["error"]["code"] == "over_limit"
        metrics = client.get("/metrics").text
        assert 'replaced_total{why="overload"} 1.0' in metrics and 'replaced_total{why="time"} 1.0' in metrics


def test_who_runs_it_sees_how_it_is(client: Any, running: Running) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ok", "ending": False, "workers": True, "store": True}
    running.server.is_draining = True
    try:
        assert client.get("/readyz").status_code == 503
        assert {"200", "503"} == set(document()["paths"]["/readyz"]["get"]["responses"])
        assert client.get("/v1/vocabularies").status_code == 200
        running.server.is_ending = True
        ending = client.get("/v1/vocabularies")
        assert ending.status_code == 503 and ending.headers["retry-after"] == "1"
    finally:
        running.server.is_draining = running.server.is_ending = False
    folder, running.server._store, running.server._looked = running.server._store, "nothing://x", 0.0
    try:
        assert client.get("/readyz").json()["store"] is False
        broken = client.get(f"/v1/constraints/{'0' * 64}/artifact")
        error = held("/v1/constraints/{id}/artifact", broken, "get")["error"]
        assert (broken.status_code, error["code"]) == (503, "store") and "nothing" not in broken.text
        assert int(broken.headers["retry-after"]) >= 1
    finally:
        running.server._store, running.server._looked = folder, 0.0
    assert client.get("/readyz").status_code == 200
    names = held("/v1/vocabularies", client.get("/v1/vocabularies"), "get")["vocabularies"]
    assert [each["name"] for each in names] == ["small"]
    question = {"constraint": {"regex": "cache?"}, "texts": ["cache"]}
    seen = [client.post("/v1/check", json=question).headers for _ in range(2)]
    assert [(each["x-cache"], each["x-kept"]) for each in seen] == [("miss", "no"), ("hit", "yes")]
    found = client.get("/v1/vocabularies", headers={"x-request-id": "mine-1"})
    assert found.headers["x-request-id"] == "mine-1"
    odd = client.get("/v1/vocabularies", headers={"x-request-id": "a b\tc"})
    assert odd.headers["x-request-id"] != "a b\tc"
    text = client.get("/metrics").text
    assert 'tokenfst_requests_total{route="/v1/vocabularies",status="200"}' in text and "acme" not in text
    assert "process_resident_memory_bytes" in text


def test_the_document_tells_every_route(client: Any, running: Running) -> None:
    served = {each.path for each in running.server.application().routes}
    assert client.get("/openapi.json").json() == document() and served == set(document()["paths"])
    for schema in document()["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
