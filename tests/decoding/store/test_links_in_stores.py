"""A folder that others may write into: links, pipes and folders in it are refused, and nothing waits for them."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from support.worlds.stores import SMALL

from tokenfst import Store, regex
from tokenfst.decoding.store.keys import path_of
from tokenfst.decoding.store.storages.local_files import LocalFiles
from tokenfst.errors import StoreError

LANGUAGE = regex("a secret")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="links of Unix")


def link_to_the_file(mine: Path, theirs: Path, name: str) -> None:
    (mine / name).parent.mkdir(parents=True)
    (mine / name).symlink_to(theirs / name)


def link_to_the_folder(mine: Path, theirs: Path, name: str) -> None:
    (mine / name).parent.parent.mkdir(parents=True)
    (mine / name).parent.symlink_to(theirs / Path(name).parent)


def link_to_all(mine: Path, theirs: Path, name: str) -> None:
    mine.mkdir()
    (mine / "artifacts").symlink_to(theirs / "artifacts")


def relative_link(mine: Path, theirs: Path, name: str) -> None:
    mine.mkdir()
    (mine / "artifacts").symlink_to(Path("..") / theirs.name / "artifacts")


def a_pipe(mine: Path, theirs: Path, name: str) -> None:
    (mine / name).parent.mkdir(parents=True)
    os.mkfifo(mine / name)


def a_folder(mine: Path, theirs: Path, name: str) -> None:
    (mine / name).mkdir(parents=True)


def a_device(mine: Path, theirs: Path, name: str) -> None:
    (mine / name).parent.mkdir(parents=True)
    (mine / name).symlink_to("/dev/zero")


@pytest.mark.parametrize(
    "make", [link_to_the_file, link_to_the_folder, link_to_all, relative_link, a_pipe, a_folder, a_device]
)
def test_nothing_but_plain_files_is_read(make: Callable[[Path, Path, str], None], tmp_path: Path) -> None:
    theirs = Store(tmp_path / "theirs")
    theirs.compile(LANGUAGE, SMALL)
    key = theirs.key(LANGUAGE, SMALL)
    make(tmp_path / "mine", tmp_path / "theirs", path_of(str(key)))
    mine = Store(tmp_path / "mine")
    for look in (lambda: mine.get(key, SMALL), lambda: mine.artifact(key), lambda: mine.contains(key)):
        with pytest.raises(StoreError, match="symbolic link or no plain file"):
            look()
    with suppress(StoreError):
        mine.prune(max_bytes=0)
    with suppress(StoreError):
        mine.remove(key)
    assert theirs.get(key, SMALL).is_expanded and theirs.verify() == []


@pytest.mark.parametrize("make", [link_to_the_file, link_to_the_folder])
def test_the_times_of_what_a_link_leads_to_stay(
    make: Callable[[Path, Path, str], None], tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs" / "entries" / "a"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs")
    os.utime(theirs, (1, 1))
    make(tmp_path / "mine", tmp_path / "theirs", "entries/a")
    LocalFiles(tmp_path / "mine").touch("entries/a")
    assert theirs.stat().st_mtime == 1
    LocalFiles(tmp_path / "theirs").touch("entries/a")
    assert theirs.stat().st_mtime > 1


def test_the_stores_own_folder_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "store").symlink_to(tmp_path / "there", target_is_directory=True)
    (tmp_path / "there").mkdir()
    store = Store(tmp_path / "store")
    store.compile(LANGUAGE, SMALL)
    assert store.get(store.key(LANGUAGE, SMALL), SMALL).is_expanded


def test_folders_with_the_names_of_unfinished_files_stay(tmp_path: Path) -> None:
    """What writers that died have left is removed; a folder of such a name did not let ``prune`` end."""
    store = Store(tmp_path)
    store.compile(LANGUAGE, SMALL)
    (tmp_path / ".tokenfst-folder").mkdir()
    (tmp_path / ".tokenfst-file").touch()
    for left in (tmp_path / ".tokenfst-folder", tmp_path / ".tokenfst-file"):
        os.utime(left, (0, 0))
    assert store.prune(max_bytes=0).removed == 1
    assert (tmp_path / ".tokenfst-folder").is_dir() and not (tmp_path / ".tokenfst-file").exists()
