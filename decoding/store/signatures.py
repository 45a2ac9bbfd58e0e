"""Signatures of entries: Ed25519, by the package cryptography. Whoever trusts some keys takes nothing that none of them
has signed.

A key is 32 bytes, or 64 hexadecimal digits. What is signed says what an entry is of and which artifact it holds, so a
signature does not fit another entry.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tokenfst.arguments import shown
from tokenfst.errors import MissingDependencyError, SignatureError

Signature = tuple[str, str]
"""A public key and what it verifies, in hexadecimal digits."""


class Signatures:
    """How a store signs what it puts (``sign_with``: a private key), and whose signatures it wants (``trusted``: public
    keys; None: anybody's or nobody's). Raises ``ValueError`` for what is no key."""

    def __init__(self, sign_with: str | bytes | None, trusted: Iterable[str | bytes] | None) -> None:
        self._private: Any = None
        self._public = ""
        self._trusted: dict[str, Any] | None = None
        if sign_with is None and trusted is None:
            return
        try:
            from cryptography.hazmat.primitives.asymmetric import ed25519
        except ImportError as error:
            raise MissingDependencyError(
                "signatures need the package cryptography: pip install tokenfst[store]"
            ) from error
        if sign_with is not None:
            self._private = ed25519.Ed25519PrivateKey.from_private_bytes(_key("sign_with", sign_with))
            self._public = self._private.public_key().public_bytes_raw().hex()
        if trusted is not None:
            raw = [_key("trusted_keys", key) for key in trusted]
            self._trusted = {key.hex(): ed25519.Ed25519PublicKey.from_public_bytes(key) for key in raw}

    @property
    def can_sign(self) -> bool:
        """Whether what is put is signed."""
        return self._private is not None

    @property
    def are_wanted(self) -> bool:
        """Whether what is not signed is refused."""
        return self._trusted is not None

    def sign(self, data: bytes) -> Signature:
        """The signature of ``data``."""
        return self._public, self._private.sign(data).hex()

    def check(self, where: object, data: bytes, signature: Signature | None) -> None:
        """``SignatureError`` where signatures are wanted, and this is none of a trusted key."""
        if self._trusted is None:
            return
        from cryptography.exceptions import InvalidSignature

        if signature is None:
            raise SignatureError(
                f"{where} is not signed, and this store takes only what a trusted key has signed"
            )
        key = self._trusted.get(signature[0])
        if key is None:
            raise SignatureError(
                f"{where} is signed by {signature[0]:.64}, which is not one of the trusted keys"
            )
        try:
            key.verify(bytes.fromhex(signature[1]), data)
        except (InvalidSignature, ValueError):
            raise SignatureError(f"{where} has a signature that does not match: it was altered") from None


def _key(name: str, given: str | bytes) -> bytes:
    try:
        found = bytes.fromhex(given) if isinstance(given, str) else bytes(given)
    except ValueError:
        found = b""
    if len(found) != 32:
        what = "a private key" if name == "sign_with" else shown(given)  # which must not get into a log
        raise ValueError(
            f"Store: {name} must be of Ed25519: 32 bytes or 64 hexadecimal digits, and {what} is not"
        )
    return found
