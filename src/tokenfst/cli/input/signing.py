"""Files of private keys that sign the entries of a store.

A private key is in a file and not on the command line, because every user of a computer can read the command lines of
its processes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokenfst.cli.constraints.grammars import read_text
from tokenfst.cli.output.terminal import UsageError
from tokenfst.errors import ArgumentValueError

if TYPE_CHECKING:
    from tokenfst.decoding.store.store import Store

HELP = "Sign the entries with the private key in FILE (tokenfst store new-key makes one)."
HELP_TRUSTED = (
    "Also accept entries that were signed with the private key of this public key (64 hexadecimal digits), not only "
    "those signed with the key of --sign-with; may be repeated."
)
SignWith = Annotated[Path | None, typer.Option("--sign-with", metavar="FILE", help=HELP)]
AlsoTrusted = Annotated[list[str] | None, typer.Option("--trusted-key", metavar="KEY", help=HELP_TRUSTED)]


def signing_options(file: Path | None, trusted: list[str] | None) -> dict[str, Any]:
    """The options of a ``Store`` for a command that writes. With a file of a private key, it signs with that key, and
    accepts only entries that this key or a ``trusted`` public key has signed, so that others are replaced. Raises
    UsageError and OSError.
    """
    if file is None:
        if trusted:
            raise UsageError("--trusted-key needs --sign-with FILE: what is stored here must be signed, too")
        return {}
    from tokenfst.decoding.store.signatures import Signatures, public_key

    private = read_text(file, "the private key").strip()
    try:
        public = public_key(private)
    except ArgumentValueError:
        raise UsageError(
            f"{file} is not a private key: 64 hexadecimal digits, as tokenfst store new-key writes them"
        ) from None
    for key in trusted or ():
        try:
            Signatures(None, [key])
        except ArgumentValueError:
            raise UsageError(
                f"--trusted-key {key:.80} is not a public key: 64 hexadecimal digits, as tokenfst store new-key prints "
                "them"
            ) from None
    return {"sign_with": private, "trusted_keys": [public, *(trusted or ())]}


def signing_store(url: str, file: Path | None, trusted: list[str] | None) -> Store:
    """The store at a URL with ``signing_options``. Raises their errors and StoreError."""
    from tokenfst.decoding.store.store import Store

    return Store(url, **signing_options(file, trusted))


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
