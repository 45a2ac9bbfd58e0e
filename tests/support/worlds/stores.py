"""Stores on folders, in memory and on S3, and what small ones hold."""

from __future__ import annotations

import importlib.util
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tokenfst import (
    Store,
    Vocabulary,
    gbnf,
)

BYTES = [bytes([byte]) for byte in range(256)]
SMALL = Vocabulary([*BYTES, b"ab", b"aab", b"((", b""], 259, split_pattern=r"[a-z]+|[^a-z]")
OTHER = Vocabulary([*BYTES, b"abc", b""], 257)
TWO_STACKS = gbnf('root ::= "(" root ")" | "x" root | "x" | root "y"')
HAS_S3 = all(importlib.util.find_spec(name) for name in ("s3fs", "moto", "flask"))


@pytest.fixture(scope="session")
def s3() -> Iterator[Any]:
    """A server that speaks S3, on this machine."""
    if not HAS_S3:
        pytest.skip("needs s3fs and moto[server,s3]")
    from moto.server import ThreadedMotoServer

    names = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield {"endpoint_url": f"http://{host}:{port}"}
    server.stop()
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})


@pytest.fixture(params=["folder", "memory", "s3", "filecache"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """The arguments of a store that nobody has used yet."""
    name = f"test-{secrets.token_hex(6)}"
    if request.param == "folder":
        return {"url": tmp_path / "store"}
    if request.param == "memory":
        return {"url": f"memory://{name}"}
    options = request.getfixturevalue("s3")
    import s3fs

    s3fs.S3FileSystem(**options).mkdir(name)
    if request.param == "s3":
        return {"url": f"s3://{name}/below", "storage_options": options}
    kept = {"s3": options, "filecache": {"cache_storage": str(tmp_path / "kept")}}
    return {"url": f"filecache::s3://{name}/below", "storage_options": kept}


def files_of(store: Store) -> dict[str, bytes]:
    place = store._place
    return {each.name: place.read(each.name) or b"" for each in place.list("artifacts")}


def allowed(automaton: Any) -> bytes:

    mask = np.zeros((1, (len(automaton.vocabulary) + 31) // 32), np.int32)
    automaton.matcher().fill_next_token_bitmask(mask)
    return mask.tobytes()
