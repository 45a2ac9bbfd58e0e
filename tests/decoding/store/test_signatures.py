"""Signed stores: what a trusted key has not signed is refused, whatever it is, and never walked."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from support.worlds.stores import SMALL, files_of

from tokenfst import Store, compile, regex
from tokenfst.decoding.store import entries
from tokenfst.decoding.store.documents import Document
from tokenfst.errors import ArgumentValueError, SignatureError, StoreError, StoreWarning

ed25519 = pytest.importorskip(
    "cryptography.hazmat.primitives.asymmetric.ed25519", reason="signatures need the package cryptography"
)
PRIVATE, OTHER = bytes(range(32)), bytes(range(1, 33))


def public(private: bytes) -> str:
    return ed25519.Ed25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw().hex()


def test_what_is_signed_is_taken(tmp_path: Path) -> None:
    writer = Store(tmp_path, sign_with=PRIVATE)
    reader = pickle.loads(pickle.dumps(Store(tmp_path, trusted_keys=[public(OTHER), public(PRIVATE)])))
    made = writer.compile(regex("a+b"), SMALL)
    key = writer.key(regex("a+b"), SMALL)
    assert reader.get(key, SMALL).serialize() == made.serialize()
    assert (
        Store(tmp_path).get(key, SMALL).serialize() == made.serialize()
    )  # who trusts anybody reads it as well
    assert reader.verify() == []


def test_what_is_not_signed_by_a_trusted_key_is_refused(tmp_path: Path) -> None:
    key = Store(tmp_path).key(regex("a"), SMALL)
    reader = Store(tmp_path, trusted_keys=[public(PRIVATE)])
    for writer, says in (
        (Store(tmp_path), "not signed"),
        (Store(tmp_path, sign_with=OTHER), "not one of the trusted"),
    ):
        writer.remove(key)
        writer.put(key, compile(regex("a"), SMALL))
        with pytest.raises(SignatureError, match=says):
            reader.get(key, SMALL)
        assert [type(each.error) for each in reader.verify()] == [SignatureError]
        with pytest.warns(StoreWarning) as caught:
            assert reader.compile(regex("a"), SMALL).matcher()
        assert [says in str(each.message) or "no key to sign" in str(each.message) for each in caught] == [
            True,
            True,
        ]
    both = Store(tmp_path, sign_with=PRIVATE, trusted_keys=[public(PRIVATE)])
    assert both.ensure({"regex": "a"}, SMALL) == (str(key), True)
    assert reader.get(key, SMALL).is_expanded and reader.verify() == []


def test_altered_entries_and_signatures_of_others(tmp_path: Path) -> None:
    store = Store(tmp_path, sign_with=PRIVATE, trusted_keys=[public(PRIVATE)])
    keys = [store.key(regex(text), SMALL) for text in ("a", "b")]
    for text in ("a", "b"):
        store.compile(regex(text), SMALL)
    one, two = (store._place.read(f"artifacts/{str(key)[:2]}/{key}") for key in keys)
    entry = entries.unpack("it", str(keys[1]), two)
    forged = entries.pack(keys[0], bytes(entry.artifact), lambda data: entry.signature)
    bad = entries.pack(keys[0], bytes(entry.artifact), lambda data: (public(PRIVATE), "zz"))
    name = f"artifacts/{str(keys[0])[:2]}/{keys[0]}"
    for data in (forged, bad):
        store._place.replace(name, data)
        with pytest.raises(SignatureError, match="does not match"):
            store.get(keys[0], SMALL)
    with pytest.warns(StoreWarning, match="compiled again"):
        store.compile(regex("a"), SMALL)
    assert files_of(store)[name] == one


def test_documents_are_remembered_by_signed_notes_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry of another constraint is signed as well: it must not be said to be this document's."""
    store = Store(tmp_path, sign_with=PRIVATE, trusted_keys=[public(PRIVATE)])
    one, _ = store.ensure({"regex": "a"}, SMALL)
    two, _ = store.ensure({"regex": "b"}, SMALL)
    notes = [each.name for each in store._place.list("documents")]
    (own,) = [name for name in notes if store._place.read(name).startswith(one.encode())]
    (other,) = [name for name in notes if name != own]
    for forged in (
        two.encode(),
        store._place.read(other),
        store._place.read(own).replace(one.encode(), two.encode()),
    ):
        store._place.replace(own, forged)
        assert store.ensure({"regex": "a"}, SMALL) == (one, False)
    assert store._place.read(own).startswith(one.encode())
    monkeypatch.setattr(Document, "constraint", None)
    assert store.ensure({"regex": "a"}, SMALL) == (one, False)


@pytest.mark.parametrize("key", ["", "x", b"short", "00" * 31, bytes(33)])
def test_what_is_no_key(key: str | bytes, tmp_path: Path) -> None:
    with pytest.raises(ArgumentValueError, match="32 bytes or 64 hexadecimal digits") as raised:
        Store(tmp_path, sign_with=key)
    assert len(key) < 5 or str(key) not in str(raised.value)
    with pytest.raises(ArgumentValueError, match="trusted_keys"):
        Store(tmp_path, trusted_keys=[key])


def test_who_wants_signatures_puts_nothing_unsigned(tmp_path: Path) -> None:
    """An entry without a signature would be in the way of those who can sign."""
    reader, writer = Store(tmp_path, trusted_keys=[public(PRIVATE)]), Store(tmp_path, sign_with=PRIVATE)
    with pytest.warns(StoreWarning, match="no key to sign"):
        made = reader.compile(regex("abc"), SMALL)
    key = reader.key(regex("abc"), SMALL)
    with pytest.raises(StoreError, match="no key to sign"):
        reader.put(key, made)
    assert key not in reader and writer.put(key, made) and reader.get(key, SMALL).is_expanded
