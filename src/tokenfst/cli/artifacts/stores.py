"""``tokenfst store``: the entries of a store, one command for each question or change."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokenfst.cli.artifacts.compiling import check_output
from tokenfst.cli.constraints import options
from tokenfst.cli.constraints.constraints import SUFFIX
from tokenfst.cli.input import groups
from tokenfst.cli.input.budgets import BudgetOptions, read_size
from tokenfst.cli.input.signing import AlsoTrusted, SignWith, signing_store, write_key
from tokenfst.cli.input.tokens import VocabularyOptions
from tokenfst.cli.output.terminal import (
    Exit,
    UsageError,
    counted,
    say,
    say_json,
    say_json_list,
    say_pairs,
    warn,
    writing,
)
from tokenfst.common.sizes import byte_size
from tokenfst.decoding.artifacts import artifact
from tokenfst.errors import ArtifactError, NotInStoreError, StoreError

if TYPE_CHECKING:
    from tokenfst.decoding.store.keys import Key
    from tokenfst.decoding.store.store import Store

_FIRST, _LAST = -62_135_596_800, 253_402_300_799
"""The first and the last second of the years 1 to 9999."""
_Url = Annotated[
    str,
    typer.Argument(metavar="URL", help="The store: a folder, s3://..., gcs://...", show_default=False),
]
_OneKey = Annotated[
    str, typer.Argument(metavar="KEY", help="The key: 64 hexadecimal digits.", show_default=False)
]
_TrustedKeys = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY",
        help="A public key (Ed25519, 64 hexadecimal digits): accept only entries that this key, or another one given, "
        "has signed; may be repeated.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    commands: dict[str, Callable[..., int]] = {
        "list": list_command,
        "contains": contains_command,
        "get": get_command,
        "put": put_command,
        "verify": verify_command,
        "prune": prune_command,
        "remove": remove_command,
        "new-key": new_key_command,
    }
    for name, command in commands.items():
        groups.register(app, name, command, within="store")


def list_command(url: _Url, json: options.Json = False) -> int:
    """List the entries of a store: key, size, and when each was last stored or used, the latest first."""
    store = _open(url)
    found = sorted(store.list(), key=lambda each: (-each.used, each.key))
    total = sum(each.bytes for each in found)
    if json:
        head = _head("list", store) | {"number": len(found), "bytes": total}
        rows = ({"key": each.key, "bytes": each.bytes, "used": _time(each.used)} for each in found)
        say_json_list(head, "entries", rows)
        return Exit.YES
    if found:
        say(f"{'key':<64}  {'size':>9}  last used", "cyan")
        for each in found:
            say(f"{each.key}  {byte_size(each.bytes):>9}  {_time(each.used)}")
    say(f"{store.url}: {counted(len(found), 'entry')}, {byte_size(total)}")
    return Exit.YES


def contains_command(url: _Url, key: _OneKey, json: options.Json = False) -> int:
    """Say whether a store has an entry with a given key.

    Exit code 1: it has none.
    """
    store = _open(url)
    found = store.contains(key)
    if json:
        say_json(_head("contains", store) | {"key": key, "contains": found})
    else:
        say("yes" if found else "no")
    return Exit.YES if found else Exit.NO


def get_command(
    url: _Url,
    key: _OneKey,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help=f"The artifact to write; its name ends in {SUFFIX}."
        ),
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Replace FILE even if it is not an artifact.")
    ] = False,
    trusted_key: _TrustedKeys = None,
    json: options.Json = False,
) -> int:
    """Copy the artifact with a given key from a store to a file, which inspect, check and tokenfst.load read.

    The artifact is verified in full before it is written. No vocabulary is needed.
    """
    check_output(output, force)
    store = _open(url, trusted_key)
    data = bytes(store.artifact(key))
    with writing:
        artifact.write_bytes(output, data)
    if json:
        say_json(_head("get", store) | {"key": key, "output": str(output), "bytes": len(data)})
    else:
        say(f"{output}: {byte_size(len(data))}")
    return Exit.YES


def put_command(
    *,
    url: _Url,
    constraining: options.ConstraintOptions,
    tokenizing: VocabularyOptions,
    expand: Annotated[
        bool,
        typer.Option(
            "--expand",
            help="Compute all states and masks ahead of time where this is possible; otherwise store the program.",
        ),
    ] = False,
    sign_with: SignWith = None,
    trusted_key: AlsoTrusted = None,
    budgeting: BudgetOptions,
    json: options.Json = False,
) -> int:
    """Compile a constraint into a store, unless the store has it already, and print its key.

    An entry that is damaged, or that none of the given keys has signed, is replaced. The options of the constraint are
    those of compile. For many constraints: tokenfst compile --batch FILE --store URL.
    """
    from tokenfst.decoding.store import entries

    budget = budgeting.read()
    constraint = constraining.one(budget)
    tokens = constraint.tokens(tokenizing, "store put")
    store = signing_store(url, sign_with, trusted_key)
    key = store.key(
        constraint.automaton or constraint.value,
        tokens,
        expand=expand,
        tokenization=tokenizing.tokenization.value,
        token_classes=tokenizing.classes() or None,
    )
    refused = _refusal(store, key)
    if made := refused is not None:
        if not isinstance(refused, NotInStoreError):
            warn(f"{refused}. It is compiled again, and replaced")
        automaton, messages = constraint.compiled(tokens, budget, tokenizing)
        for message in messages:
            warn(message)
        with writing:
            made = store.put(
                key,
                entries.expanded(automaton) if expand else automaton,
                replace=not isinstance(refused, NotInStoreError),
            )
    if json:
        say_json(_head("put", store) | {"source": constraint.source, "key": key.name, "put": made})
    else:
        say_pairs([("key", key.name), ("store", f"{store.url}{'' if made else ', which had it already'}")])
    return Exit.YES


def verify_command(
    url: _Url,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the damaged entries.")] = False,
    trusted_key: _TrustedKeys = None,
    json: options.Json = False,
) -> int:
    """Read and verify every entry of a store, every stored vocabulary, and all learned data.

    Files whose names are not those of entries are reported and kept. Exit code 1: something is damaged, or no entry.
    """
    store = _open(url, trusted_key)
    number = sum(1 for _ in store.list())
    found = store.verify(remove=remove)
    if json:
        told = [{"key": each.key, "reason": str(each.error)} for each in found]
        say_json(_head("verify", store) | {"entries": number, "removed": remove, "damaged": told})
    else:
        for each in found:
            say(f"{each.key}: {each.error}", "red")
        damaged = [each for each in found if not each.is_kept]
        about = [f"{len(damaged):,} damaged{', removed' * remove}"] if damaged else ["nothing is damaged"]
        if others := len(found) - len(damaged):
            about.append(f"{counted(others, 'file')} that {'is' if others == 1 else 'are'} no entry, kept")
        say(f"{store.url}: {counted(number, 'entry')}, {', '.join(about)}")
        if damaged and not remove:
            say("Remove the damaged entries with --remove; they are compiled again when they are asked for.")
    return Exit.NO if found else Exit.YES


def prune_command(
    url: _Url,
    max_bytes: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Remove the least recently used entries until the rest has at most SIZE, such as 10G; 0: all.",
        ),
    ] = None,
    unused_days: Annotated[
        float | None,
        typer.Option(metavar="DAYS", min=0, help="Remove entries that were not used for DAYS."),
    ] = None,
    json: options.Json = False,
) -> int:
    """Remove the least recently used entries: by size (--max-bytes), by age (--unused-days), or by both."""
    if max_bytes is None and unused_days is None:
        raise UsageError("say what to remove: --max-bytes SIZE, --unused-days DAYS, or both")
    most = None if max_bytes is None else read_size("--max-bytes", max_bytes, least=0)
    store = _open(url)
    done = store.prune(max_bytes=most, unused_days=unused_days)
    if json:
        say_json(
            _head("prune", store)
            | {
                "removed": done.removed,
                "removed_bytes": done.removed_bytes,
                "kept": done.kept,
                "kept_bytes": done.kept_bytes,
            }
        )
    else:
        say_pairs(
            [
                ("removed", f"{counted(done.removed, 'entry')}, {byte_size(done.removed_bytes)}"),
                ("kept", f"{counted(done.kept, 'entry')}, {byte_size(done.kept_bytes)}"),
            ]
        )
    return Exit.YES


def new_key_command(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The new file for the private key.", show_default=False),
    ],
    json: options.Json = False,
) -> int:
    """Make a private key (Ed25519) that signs entries, in a new file, and print its public key.

    Pass the file to --sign-with of store put, compile --batch and serve. Readers of the store pass the public key to
    --trusted-key, or in Python to Store(trusted_keys=...).
    """
    with writing:
        public = write_key(file)
    if json:
        say_json({"command": "store new-key", "file": str(file), "public_key": public})
    else:
        say_pairs([("public key", public), ("private key in", str(file))])
    return Exit.YES


def _refusal(store: Store, key: Key) -> NotInStoreError | ArtifactError | None:
    """Why a store has no entry that it accepts under a key; None if it has one."""
    try:
        store.artifact(key)
    except (NotInStoreError, ArtifactError) as error:
        return error
    return None


def remove_command(url: _Url, key: _OneKey, json: options.Json = False) -> int:
    """Remove the entry with a given key, and its learned data.

    Exit code 1: there was none.
    """
    store = _open(url)
    found = store.contains(key)
    store.remove(key)
    if json:
        say_json(_head("remove", store) | {"key": key, "removed": found})
    else:
        say("removed" if found else "there is no such entry")
    return Exit.YES if found else Exit.NO


def _open(url: str, trusted: list[str] | None = None) -> Store:
    """The store at a URL. Raises StoreError for a folder that does not exist: a mistyped name would otherwise look like
    an empty store.
    """
    from tokenfst.decoding.store.store import Store

    store = Store(url, trusted_keys=trusted or None, note_use=False)
    if "://" not in store.url and not Path(store.url).is_dir():
        raise StoreError(f"there is no folder {url}: check the name (tokenfst store put makes a new store)")
    return store


def _head(command: str, store: Store) -> dict[str, Any]:
    return {"command": f"store {command}", "store": store.url}


def _time(seconds: float) -> str:
    """A moment in UTC, to the second; a clock may say a year that has no date here, and then the nearest that has."""
    moment = datetime.datetime.fromtimestamp(min(max(seconds, _FIRST), _LAST), datetime.UTC)
    return f"{moment.replace(tzinfo=None).isoformat(timespec='seconds')}Z"
