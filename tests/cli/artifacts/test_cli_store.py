"""``tokenfst store``: each command on a folder and on a URL, and what it says to wrong input."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.programs.command_line import tokenfst, write_toy

from tokenfst import Store, TokenAutomaton, load_vocabulary, regex
from tokenfst.cli.artifacts import stores
from tokenfst.decoding.store.upkeep import Stored

UNKNOWN = "0" * 64


@pytest.fixture
def toy(tmp_path: Path) -> str:
    return write_toy(tmp_path)


def put(url: str | Path, toy: str, constraint: str = "ab+", *more: str) -> str:
    done = tokenfst("store", "put", url, constraint, "--vocabulary", toy, "--json", *more)
    assert done.code == 0, done.err
    return str(done.json["key"])


@pytest.fixture(params=["folder", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return str(tmp_path / "artifacts")
    pytest.importorskip("fsspec")
    return f"memory://{tmp_path.name}/artifacts"


def test_put_list_contains_get_and_remove(url: str, toy: str, tmp_path: Path) -> None:
    vocabulary = load_vocabulary(toy)
    key = put(url, toy)
    store = Store(url)
    assert key == str(store.key(regex("ab+"), vocabulary, expand=False))
    again = tokenfst("store", "put", url, "ab+", "-v", toy)
    assert again.code == 0 and "had it already" in again.out and key in again.out
    tables = put(url, toy, "ab+", "--expand")
    assert tables != key and store.get(tables, vocabulary).is_expanded

    listed = tokenfst("store", "list", url, "--json").json
    assert {each["key"] for each in listed["entries"]} == {key, tables} and listed["number"] == 2
    assert listed["bytes"] == sum(each["bytes"] for each in listed["entries"])
    shown = tokenfst("store", "list", url).out
    assert key in shown and tables in shown and "2 entries" in shown

    assert tokenfst("store", "contains", url, key).out == "yes\n"
    missing = tokenfst("store", "contains", url, UNKNOWN, "--json")
    assert missing.code == 1 and missing.json["contains"] is False

    file = tmp_path / "own.safetensors"
    got = tokenfst("store", "get", url, key, "--output", file, "--json")
    assert got.code == 0 and got.json["bytes"] == file.stat().st_size
    assert file.read_bytes() == bytes(store.artifact(key))
    assert TokenAutomaton.load(file, vocabulary).matcher().accept_token(0)

    assert tokenfst("store", "remove", url, key).code == 0
    gone = tokenfst("store", "remove", url, key)
    assert gone.code == 1 and "no such entry" in gone.out
    assert key not in store and tables in store


def test_options_of_the_constraint_count(toy: str, tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"enum": [10, 1]}')
    done = tokenfst("store", "put", tmp_path / "s", "--json-schema", schema, "-v", toy, "--json")
    assert done.code == 0 and len(done.json["key"]) == 64
    classes = ("(?P<IMAGE>)", "--token-class", "IMAGE=0,1")
    assert put(tmp_path / "s", toy, *classes) != put(
        tmp_path / "s", toy, "(?P<IMAGE>)", "--token-class", "IMAGE=0"
    )


def test_verify_names_what_is_damaged_and_removes_it(toy: str, tmp_path: Path) -> None:
    folder = tmp_path / "artifacts"
    keys = [put(folder, toy, constraint) for constraint in ("a", "b", "ab")]
    assert tokenfst("store", "verify", folder).code == 0
    file = folder / "artifacts" / keys[1][:2] / keys[1]
    file.write_bytes(file.read_bytes()[:-3])
    found = tokenfst("store", "verify", folder)
    assert found.code == 1 and keys[1] in found.out and "--remove" in found.out and keys[0] not in found.out
    removed = tokenfst("store", "verify", folder, "--remove", "--json")
    assert removed.code == 1 and [each["key"] for each in removed.json["damaged"]] == [keys[1]]
    assert tokenfst("store", "verify", folder, "--json").json["entries"] == 2
    damaged = tokenfst("store", "get", folder, keys[1], "-o", tmp_path / "x.safetensors")
    assert damaged.code == 2 and "has no entry" in damaged.err and not (tmp_path / "x.safetensors").exists()


def test_verify_says_that_files_of_others_are_kept(toy: str, tmp_path: Path) -> None:
    folder = tmp_path / "artifacts"
    key = put(folder, toy)
    (other := folder / "artifacts" / "notes.txt").write_text("mine")
    for more in ((), ("--remove",)):
        found = tokenfst("store", "verify", folder, *more)
        assert found.code == 1 and "notes.txt is not an entry" in found.out
        assert "1 entry, nothing is damaged, 1 file that is no entry, kept" in found.out and other.exists()
    (folder / "artifacts" / key[:2] / key).write_bytes(b"damaged")
    found = tokenfst("store", "verify", folder, "--remove")
    assert "1 damaged, removed, 1 file that is no entry, kept" in found.out and other.exists()


@pytest.mark.parametrize("year", [-5000, 20_000])
def test_clocks_that_have_no_date_are_listed(
    year: int, toy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems keep any number as the time of a file."""
    key = put(tmp_path / "s", toy)
    wrong = Stored(key, 1, (year - 1970) * 31_556_952.0)
    monkeypatch.setattr(Store, "list", lambda self: iter([wrong]))
    (listed,) = tokenfst("store", "list", tmp_path / "s", "--json").json["entries"]
    assert listed["used"] == ("0001-01-01T00:00:00Z" if year < 0 else "9999-12-31T23:59:59Z")


def test_prune_by_age_and_by_size(toy: str, tmp_path: Path) -> None:
    folder = tmp_path / "artifacts"
    keys = [put(folder, toy, constraint) for constraint in ("a", "b", "ab")]
    for days, key in enumerate(keys):
        moment = time.time() - 86_400 * 10 * days
        os.utime(folder / "artifacts" / key[:2] / key, (moment, moment))
    assert [each["key"] for each in tokenfst("store", "list", folder, "--json").json["entries"]] == keys
    old = tokenfst("store", "prune", folder, "--unused-days", "15", "--json")
    assert (old.code, old.json["removed"], old.json["kept"]) == (0, 1, 2)
    size = old.json["kept_bytes"] - 1
    assert "removed  1 entry" in tokenfst("store", "prune", folder, "--max-bytes", str(size)).out
    assert [each.key for each in Store(folder).list()] == keys[:1]
    assert tokenfst("store", "prune", folder, "--max-bytes", "0", "--json").json["removed"] == 1
    assert not list(Store(folder).list())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("list", "missing"), "there is no folder missing: check the name"),
        (("list",), "Missing argument 'URL'; see: tokenfst store list --help"),
        (("lists", "x"), "No such command 'lists'"),
        (("contains", ".", "abc"), "'abc' is not a key of a store: keys are 64 hexadecimal digits"),
        (("get", ".", UNKNOWN, "-o", "x.bin"), "must end in .safetensors"),
        (("get", ".", UNKNOWN, "-o", "x.safetensors"), "has no entry"),
        (("put", ".", "a"), "store put needs --vocabulary SPEC"),
        (("put", ".", "a(", "-v", "symbols:a,b"), "error: "),
        (("prune", "."), "say what to remove: --max-bytes SIZE, --unused-days DAYS, or both"),
        (("prune", ".", "--max-bytes", "9" * 400), "--max-bytes takes a size such as 500M or 2G"),
        (("prune", ".", "--max-bytes", "-1"), "--max-bytes takes a size such as 500M or 2G"),
        (("put", ".", "a", "-v", "symbols:a,b", "--sign-with", "missing.key"), "missing.key"),
        (("put", ".", "a", "-v", "symbols:a,b", "--sign-with", "file.txt"), "file.txt is not a private key"),
        (("new-key", "file.txt"), "file.txt exists, and a key in it would be lost"),
        (("new-key", "no/folder.key"), "no/folder.key"),
        (("prune", ".", "--max-bytes", "1x"), "--max-bytes takes a size such as 500M or 2G"),
        (("verify", ".", "--trusted-key", "zz"), "64 hexadecimal digits"),
        (("list", "file.txt"), "it is not a folder"),
        (("list", "nothing://x"), "error: "),
    ],
)
def test_wrong_input_ends_with_the_remedy(
    words: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "nothing://x" in words:
        pytest.importorskip("fsspec")
    if {"--trusted-key", "--sign-with", "new-key"} & set(words):
        pytest.importorskip("cryptography")
    (tmp_path / "file.txt").touch()
    monkeypatch.chdir(tmp_path)
    done = tokenfst("store", *words)
    assert done.code == 2 and says in done.err and done.out == "", done.err
    assert "Traceback" not in done.err and done.err.count("error:") == 1


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only(toy: str, tmp_path: Path) -> None:
    folder = tmp_path / "artifacts"
    put(folder, toy)
    folder.chmod(0o500)
    try:
        done = tokenfst("store", "put", folder, "ba", "-v", toy)
        assert done.code == 2 and "cannot write" in done.err
    finally:
        folder.chmod(0o700)


def test_only_signed_entries_are_taken_where_a_key_is_trusted(toy: str, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    key = put(tmp_path / "s", toy)
    trusted = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"  # RFC 8032, test 1
    done = tokenfst(
        "store", "get", tmp_path / "s", key, "-o", tmp_path / "x.safetensors", "--trusted-key", trusted
    )
    assert done.code == 2 and "sign" in done.err and not (tmp_path / "x.safetensors").exists()
    assert tokenfst("store", "verify", tmp_path / "s", "--trusted-key", trusted).code == 1


def test_put_and_batches_sign_what_get_and_verify_then_accept(toy: str, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    folder, file = tmp_path / "s", tmp_path / "own.key"
    made = tokenfst("store", "new-key", file, "--json").json
    assert file.stat().st_mode & 0o077 == 0 and made["public_key"] not in file.read_text()
    trusted = ("--trusted-key", made["public_key"])
    unsigned = put(folder, toy)
    assert tokenfst("store", "verify", folder, *trusted).code == 1
    again = tokenfst("store", "put", folder, "ab+", "-v", toy, "--sign-with", file, "--json")
    assert again.json["key"] == unsigned and again.json["put"] and "is not signed" in again.err
    assert not tokenfst("store", "put", folder, "ab+", "-v", toy, "--sign-with", file, "--json").json["put"]
    batch = tmp_path / "batch.jsonl"
    batch.write_text('{"id": "one", "regex": "b+"}\n')
    signed = ("--store", folder, "--sign-with", file)
    done = tokenfst("compile", "--batch", batch, "-v", toy, *signed, "--json")
    assert done.code == 0 and done.json["put"] == 1, done.err
    assert tokenfst("store", "verify", folder, *trusted, "--json").json == {
        "command": "store verify",
        "store": str(folder),
        "entries": 2,
        "removed": False,
        "damaged": [],
    }
    got = tokenfst("store", "get", folder, unsigned, "-o", tmp_path / "x.safetensors", *trusted)
    assert got.code == 0, got.err
    assert "needs --batch" in tokenfst("compile", "a", "-v", toy, "--sign-with", file).err


def test_put_and_batches_keep_what_another_trusted_key_signed(toy: str, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    folder, batch = tmp_path / "s", tmp_path / "batch.jsonl"
    batch.write_text('{"regex": "ab+"}\n')
    publics = {
        name: tokenfst("store", "new-key", tmp_path / name, "--json").json["public_key"] for name in "ab"
    }
    words = ("store", "put", folder, "ab+", "-v", toy, "--json", "--sign-with")
    assert tokenfst(*words, tmp_path / "a").json["put"]
    both = ("--trusted-key", publics["a"])
    assert not tokenfst(*words, tmp_path / "b", *both).json["put"]
    again = (
        "compile",
        "--batch",
        batch,
        "-v",
        toy,
        "--store",
        folder,
        "--json",
        "--sign-with",
        tmp_path / "b",
    )
    assert tokenfst(*again, *both).json["known"] == 1
    assert tokenfst(*again).json["put"] == 1  # signed by a, whom it does not trust
    for command in (words[:-2], again[:-2]):
        alone = tokenfst(*command, *both)
        assert alone.code == 2 and "--trusted-key needs --sign-with FILE" in alone.err
        wrong = tokenfst(*command, "--sign-with", tmp_path / "b", "--trusted-key", "xyz")
        assert wrong.code == 2 and "--trusted-key xyz is not a public key" in wrong.err
    assert "needs --batch" in tokenfst("compile", "a", "-v", toy, *both).err


def test_put_replaces_an_entry_that_is_damaged(toy: str, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    key = put(folder, toy)
    file = folder / "artifacts" / key[:2] / key
    file.write_bytes(file.read_bytes()[:-3])
    done = tokenfst("store", "put", folder, "ab+", "-v", toy, "--json")
    assert done.code == 0 and done.json["put"] and "compiled again" in done.err
    assert tokenfst("store", "verify", folder).code == 0


def test_an_entry_that_is_refused_stays_until_another_is_made(toy: str, tmp_path: Path) -> None:
    """Who wants a signature that the entry lacks, and then runs out of the budget, has not lost it."""
    pytest.importorskip("cryptography")
    folder, secret = tmp_path / "s", tmp_path / "secret"
    assert tokenfst("store", "new-key", secret).code == 0
    words = ("store", "put", folder, "(a|b)*a(a|b){3}", "-v", toy, "--json", "--expand")
    key = tokenfst(*words).json["key"]
    entry = folder / "artifacts" / key[:2] / key
    before = entry.read_bytes()
    ended = tokenfst(*words, "--sign-with", secret, "--budget-states", "3")
    assert ended.code == 3 and "replaced" in ended.err and entry.read_bytes() == before


def test_help_of_the_command_and_of_each_of_its_commands() -> None:
    page = tokenfst("store", "--help").out
    bare = tokenfst("store")
    assert bare.code == 2 and "error" not in bare.err and "Commands" in bare.out
    for name in ("list", "contains", "get", "put", "verify", "prune", "remove", "new-key"):
        assert name in page
        own = tokenfst("store", name, "--help")
        assert own.code == 0 and f"store {name}" in own.out and "--json" in own.out


def test_shells_complete_its_commands() -> None:
    asked = {"_TOKENFST_COMPLETE": "complete_bash", "COMP_WORDS": "tokenfst store ", "COMP_CWORD": "2"}
    done = subprocess.run(
        [sys.executable, "-m", "tokenfst"], env=os.environ | asked, capture_output=True, text=True, check=True
    )
    assert {"list", "contains", "get", "put", "verify", "prune", "remove", "new-key"} <= set(
        done.stdout.split()
    )


def test_times_are_of_the_storage_in_utc() -> None:
    assert stores._time(0) == "1970-01-01T00:00:00Z"
