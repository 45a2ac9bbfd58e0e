"""Ed25519 signatures of store entries, by the package cryptography.

A store with trusted keys accepts only entries that one of them has signed. A key is 32 bytes, or 64 hexadecimal digits.
The signed data contain the entry's key and the artifact's digest, so a signature is not valid for another entry.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tokenfst.common.arguments import shown
from tokenfst.errors import ArgumentValueError, MissingDependencyError, SignatureError

Signature = tuple[str, str]
"""A public key and a signature by it, in hexadecimal digits."""


class Signatures:
    """The signing key of a store (``sign_with``: a private key), and the keys that it trusts (``trusted``: public keys;
    None: no signature is required). ``public``: the public key of the signing key; empty without one.

    Raises ``ValueError`` for an invalid key.
    """

    def __init__(self, sign_with: str | bytes | None, trusted: Iterable[str | bytes] | None) -> None:
        self._private: Any = None
        self.public = ""
        self._trusted: dict[str, Any] | None = None
        if sign_with is None and trusted is None:
            return
        ed25519 = _ed25519()
        if sign_with is not None:
            self._private = ed25519.Ed25519PrivateKey.from_private_bytes(_key("sign_with", sign_with))
            self.public = self._private.public_key().public_bytes_raw().hex()
        if trusted is not None:
            raw = [_key("trusted_keys", key) for key in trusted]
            self._trusted = {key.hex(): ed25519.Ed25519PublicKey.from_public_bytes(key) for key in raw}

    @property
    def can_sign(self) -> bool:
        """Whether new entries are signed."""
        return self._private is not None

    @property
    def are_wanted(self) -> bool:
        """Whether unsigned entries are rejected."""
        return self._trusted is not None

    def sign(self, data: bytes) -> Signature:
        """The signature of ``data``."""
        return self.public, self._private.sign(data).hex()

    def check(self, where: object, data: bytes, signature: Signature | None) -> None:
        """Raise ``SignatureError`` if signatures are required and this one is missing, is invalid or is not by a
        trusted key.
        """
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


def new_private_key() -> str:
    """A fresh private key for ``sign_with``: 64 hexadecimal digits."""
    made: str = _ed25519().Ed25519PrivateKey.generate().private_bytes_raw().hex()
    return made


def public_key(private: str | bytes) -> str:
    """The public key for ``trusted_keys`` that belongs to a private key. Raises ``ValueError`` for an invalid key."""
    return Signatures(private, None).public


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise MissingDependencyError(
            "signatures need the package cryptography: pip install tokenfst[store]"
        ) from error
    return ed25519


def _key(name: str, given: str | bytes) -> bytes:
    try:
        found = bytes.fromhex(given) if isinstance(given, str) else bytes(given)
    except ValueError:
        found = b""
    if len(found) != 32:
        what = "a private key" if name == "sign_with" else shown(given)  # which must not get into a log
        raise ArgumentValueError(
            f"Store: {name} must be of Ed25519: 32 bytes or 64 hexadecimal digits, and {what} is not"
        )
    return found
