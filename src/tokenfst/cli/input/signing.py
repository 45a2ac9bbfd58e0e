"""Private keys that sign the entries of a store, in files: on a command line everyone could read them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tokenfst.cli.constraints.grammars import read_text
from tokenfst.cli.output.terminal import UsageError
from tokenfst.errors import ArgumentValueError

if TYPE_CHECKING:
    from tokenfst.decoding.store.store import Store

HELP = "Sign the entries with the private key in FILE (tokenfst store new-key makes one)."
SignWith = Annotated[Path | None, typer.Option("--sign-with", metavar="FILE", help=HELP)]


def signing_store(url: str, file: Path | None) -> Store:
    """The store at a URL for a command that writes. With a file of a private key, it signs with that key, and accepts
    only entries that the same key has signed, so that others are replaced. Raises UsageError, OSError and StoreError.
    """
    from tokenfst.decoding.store.store import Store

    if file is None:
        return Store(url)
    from tokenfst.decoding.store.signatures import public_key

    private = read_text(file, "the private key").strip()
    try:
        public = public_key(private)
    except ArgumentValueError:
        raise UsageError(
            f"{file} is not a private key: 64 hexadecimal digits, as tokenfst store new-key writes them"
        ) from None
    return Store(url, sign_with=private, trusted_keys=[public])


def write_key(file: Path) -> str:
    """Write a new private key into a new file, which only its owner can read, and return the public key.

    Raises UsageError if the file exists: the key in it would be lost.
    """
    from tokenfst.decoding.store.signatures import new_private_key, public_key

    private = new_private_key()
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise UsageError(f"{file} exists, and a key in it would be lost: name another file") from None
    with os.fdopen(handle, "w", encoding="ascii") as made:
        made.write(f"{private}\n")
    return public_key(private)
