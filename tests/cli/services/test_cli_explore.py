"""``tokenfst explore``: it says where the page is and serves it until it is interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from support.programs.command_line import tokenfst


def test_it_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.json"
    from tokenfst import Vocabulary

    Vocabulary([*(bytes((byte,)) for byte in range(256)), b""], 256, name="mine").to_json(tokens)
    command = ["explore", "(yes|no)", "--no-browser", "--json", "--vocabulary", f"tokens:{tokens}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tokenfst", *command], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        assert told["command"] == "explore" and told["url"].startswith("http://127.0.0.1:")
        with urllib.request.urlopen(told["url"], timeout=60) as page:
            assert b"tokenfst explore" in page.read()
        asked = urllib.request.Request(
            f"{told['url']}ask/open",
            json.dumps({"kind": "given", "text": ""}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            assert json.load(answer)["shortest"]["text"] == "no"
    finally:
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(60) == 130


def test_what_is_wrong_is_said_before_it_serves() -> None:
    done = tokenfst("explore", "(", "--no-browser", "--vocabulary", "symbols:a,b")
    assert done.code == 2 and "missing )" in done.err and not done.out
    assert tokenfst("explore", "--port", "70000").code == 2
