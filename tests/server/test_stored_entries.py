"""What the server does with entries that are damaged, unsigned, of another vocabulary, or no plain files."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tokenfst import Store, load_vocabulary
from tokenfst.decoding.store.keys import path_of
from tokenfst.decoding.store.signatures import new_private_key, public_key
from tokenfst.errors import SignatureError
from tokenfst.server.limits import Limits

pytest.importorskip("starlette", reason="the extra serve is not installed")
pytest.importorskip("uvicorn", reason="the extra serve is not installed")
pytest.importorskip("prometheus_client", reason="the extra serve is not installed")
httpx = pytest.importorskip("httpx", reason="the tests of the server need httpx")

from support.programs.constraint_server import KEYS, Running, serving

LIMITS = Limits(workers=1, seconds=60, memory=1 << 30)
BODY = {"constraint": {"regex": "[0-9]{3}"}}


def asking(running: Running, tenant: str = "acme") -> Any:
    return httpx.Client(base_url=running.url, headers={"x-api-key": KEYS[tenant]}, timeout=60)


def test_a_damaged_entry_is_told_and_replaced_when_its_constraint_comes_again(tmp_path: Path) -> None:
    with serving(tmp_path, LIMITS, store_options={}) as running, asking(running) as client:
        name = client.post("/v1/constraints", json=BODY).json()["id"]
        path = tmp_path / "store" / "tenants" / "acme" / path_of(name)
        whole = path.read_bytes()
        path.write_bytes(whole[:-1])
        for route in ("", "/artifact"):
            response = client.get(f"/v1/constraints/{name}{route}")
            assert (response.status_code, response.json()["error"]["code"]) == (503, "store")
            assert "POST /v1/constraints again" in response.json()["error"]["remedy"]
            assert os.fspath(tmp_path) not in response.text and "retry-after" not in response.headers
        again = client.post("/v1/constraints", json=BODY)
        assert again.status_code == 200 and again.json()["id"] == name and again.json()["warnings"] == []
        assert again.headers["x-cache"] == "miss" and path.read_bytes() == whole
        assert client.get(f"/v1/constraints/{name}/artifact").status_code == 200
        assert client.post("/v1/constraints", json=BODY).headers["x-cache"] == "hit"


@pytest.mark.parametrize("seen_by", ["artifact", "describe", "check"])
def test_a_removed_entry_is_stored_when_its_constraint_comes_again(tmp_path: Path, seen_by: str) -> None:
    """The cached answer of the compilation must not say for a minute that the entry is there."""
    with serving(tmp_path, LIMITS, store_options={}) as running, asking(running) as client:
        name = client.post("/v1/constraints", json=BODY).json()["id"]
        assert client.post("/v1/constraints", json=BODY).headers["x-cache"] == "hit"
        Store(tmp_path / "store" / "tenants" / "acme").remove(name)
        if seen_by == "check":
            missed = client.post("/v1/check", json={"id": name, "tokens": [[49]]})
        else:
            missed = client.get(f"/v1/constraints/{name}" + "/artifact" * (seen_by == "artifact"))
        assert missed.status_code == 404
        assert "POST /v1/constraints again" in missed.json()["error"]["remedy"]
        again = client.post("/v1/constraints", json=BODY)
        assert again.status_code == 200 and again.headers["x-cache"] == "miss"
        assert client.get(f"/v1/constraints/{name}/artifact").status_code == 200


def test_what_is_stored_is_signed_and_what_is_not_signed_is_replaced(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    private, other, stranger = (new_private_key() for _ in range(3))
    trusted = [public_key(private), public_key(other)]
    options = {"sign_with": private, "trusted_keys": trusted}
    with serving(tmp_path, LIMITS, store_options=options) as running, asking(running) as client:
        folder = tmp_path / "store" / "tenants" / "acme"
        ((_, spec),) = running.server._work.vocabularies
        vocabulary = load_vocabulary(spec)
        name = client.post("/v1/constraints", json=BODY).json()["id"]
        assert Store(folder, trusted_keys=trusted[:1]).get(name, vocabulary) is not None
        with pytest.raises(SignatureError):
            Store(folder, trusted_keys=[public_key(stranger)]).get(name, vocabulary)
        keys = {}
        for text, key in (("x", None), ("y", stranger), ("z", other)):
            filling = Store(folder, sign_with=key)
            keys[text], _ = filling.ensure({"regex": text}, vocabulary, expand=False)
            response = client.get(f"/v1/constraints/{keys[text]}/artifact")
            assert response.status_code == (200 if key == other else 503), text
        for text in "xy":
            made = client.post("/v1/constraints", json={"constraint": {"regex": text}}).json()
            assert made["id"] == keys[text] and Store(folder, trusted_keys=trusted[:1]).artifact(keys[text])
            assert client.get(f"/v1/constraints/{keys[text]}/artifact").status_code == 200
        assert private not in repr(running.server._work)


def test_an_id_of_another_vocabulary(tmp_path: Path) -> None:
    second = tmp_path / "second.json"
    second.write_text('{"tokens": ["a", "b", ""], "eos_token_id": 2}')
    given = (("second", f"tokens:{second}"),)
    with serving(tmp_path, LIMITS, vocabularies=given) as running, asking(running) as client:
        body = {"constraint": {"regex": "a|b"}, "vocabulary": "second"}
        name = client.post("/v1/constraints", json=body).json()["id"]
        assert client.get(f"/v1/constraints/{name}?vocabulary=second").status_code == 200
        wrong = client.get(f"/v1/constraints/{name}?vocabulary=small")
        error = wrong.json()["error"]
        assert (wrong.status_code, error["code"], error["pointer"]) == (400, "bad_request", "#/vocabulary")
        assert "another vocabulary" in error["message"] and os.fspath(tmp_path) not in wrong.text


@pytest.mark.skipif(os.name != "posix", reason="links and pipes of Unix")
def test_who_may_write_into_a_tenants_folder_reads_nothing_of_another(tmp_path: Path) -> None:
    """Links to another tenant's entries, pipes that nobody writes into: the server follows none and waits for none."""
    with serving(tmp_path, LIMITS) as running, asking(running) as acme, asking(running, "other") as other:
        name = acme.post("/v1/constraints", json=BODY).json()["id"]
        mine, theirs = (tmp_path / "store" / "tenants" / tenant for tenant in ("other", "acme"))
        (mine / "artifacts" / name[:2]).mkdir(parents=True)
        (mine / path_of(name)).symlink_to(theirs / path_of(name))
        pipes = [f"{number:064x}" for number in range(8)]
        (mine / "artifacts" / "00").mkdir(exist_ok=True)
        for pipe in pipes:
            os.mkfifo(mine / path_of(pipe))
        with ThreadPoolExecutor(8) as threads:
            asked = [
                f"/v1/constraints/{each}{route}" for each in (name, *pipes) for route in ("", "/artifact")
            ]
            found = list(threads.map(other.get, asked))
        assert {each.status_code for each in found} == {503}
        check = other.post("/v1/check", json={"id": name, "tokens": [[49, 50, 51]]})
        assert check.status_code == 503
        (mine / path_of(name)).unlink()
        (mine / "artifacts" / name[:2]).rmdir()
        (mine / "artifacts" / name[:2]).symlink_to(theirs / "artifacts" / name[:2])
        for route in ("", "/artifact"):
            assert other.get(f"/v1/constraints/{name}{route}").status_code == 503
            assert acme.get(f"/v1/constraints/{name}{route}").status_code == 200
