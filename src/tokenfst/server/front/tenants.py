"""Tenants and their API keys.

A file contains the SHA-256 digests of keys by tenant, as one JSON object: ``{"acme": ["<64 hexadecimal digits>",
...]}``. Keys are random and long, so a plain digest does not reveal them. A presented key is compared with all digests,
each in constant time, so that the time reveals neither a digest nor a tenant.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from tokenfst.common.json_objects import RepeatedNameError, unique_names
from tokenfst.errors import TokenfstError

NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_DIGEST = re.compile(r"[0-9a-f]{64}")
ALONE = "default"
"""The tenant of a server without keys."""


class KeysError(TokenfstError, ValueError):
    """A file of API keys is invalid; the message names the file and the tenant."""


class Tenants:
    """The tenants and the digests of their keys. Without keys (``None``), every request is of one tenant, ``ALONE``."""

    def __init__(self, keys: Mapping[str, list[str]] | None) -> None:
        self._keys = None if keys is None else [(name, each) for name in keys for each in keys[name]]

    @classmethod
    def read(cls, path: Path | None) -> Tenants:
        """The tenants of a file; without a file, one tenant for everyone. Raises ``KeysError`` and OSError."""
        if path is None:
            return cls(None)
        try:
            found = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=unique_names)
        except RepeatedNameError as error:
            raise KeysError(
                f"{path}: the tenant {error.name!r:.80} is there twice: write one list of its keys"
            ) from None
        except (ValueError, RecursionError) as error:
            raise KeysError(f"{path} is not JSON: {error}") from None
        if not isinstance(found, dict) or not found:
            raise KeysError(
                f'{path} holds no tenants: it is an object such as {{"acme": ["<digest of a key>"]}}'
            )
        for name, digests in found.items():
            if not NAME.fullmatch(name):
                raise KeysError(
                    f"{path}: a tenant's name is {name!r:.80}; it must have at most 63 lower-case letters, digits and "
                    "hyphens, and neither begin nor end with a hyphen"
                )
            if not isinstance(digests, list) or not all(
                isinstance(each, str) and _DIGEST.fullmatch(each) for each in digests
            ):
                raise KeysError(
                    f"{path}: the value of {name!r} must be a list of SHA-256 digests of keys, 64 hexadecimal digits "
                    "each, not of the keys themselves (tokenfst serve --new-key prints both)"
                )
        owners: dict[str, str] = {}
        for name, digests in found.items():
            for each in digests:
                if owners.setdefault(each, name) != name:
                    raise KeysError(
                        f"{path}: {owners[each]!r} and {name!r} have the same key, {each}: give each its own "
                        "(tokenfst serve --new-key)"
                    )
        return cls(found)

    @property
    def are_known(self) -> bool:
        """Whether a key is required."""
        return self._keys is not None

    def of(self, key: str | None) -> str | None:
        """The name of the tenant that has this key; None if no tenant has it."""
        if self._keys is None:
            return ALONE
        given = digest_of(key or "")
        found = None
        for name, each in self._keys:
            if hmac.compare_digest(each, given) and key:
                found = name
        return found


def digest_of(key: str) -> str:
    """The SHA-256 digest of a key, as the file of keys has it: 64 hexadecimal digits."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def new_key() -> tuple[str, str]:
    """A new random key, and its digest."""
    key = f"tfst_{secrets.token_urlsafe(32)}"
    return key, digest_of(key)


def store_url(url: str, tenant: str, are_known: bool) -> str:
    """The URL of a tenant's store: a folder in the server's store, or that store itself if keys are not required."""
    return f"{url.rstrip('/')}/tenants/{tenant}" if are_known else url
