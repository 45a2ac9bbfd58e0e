"""``tokenfst serve``: the server and its API keys."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import tokenfst.cli
from tokenfst.cli.constraints.options import Json
from tokenfst.cli.input import completion, groups
from tokenfst.cli.input.budgets import read_size
from tokenfst.cli.input.signing import AlsoTrusted, SignWith, signing_options
from tokenfst.cli.output.exits import Exit, UsageError
from tokenfst.cli.output.terminal import complain, explain, say_json, say_pairs, warn
from tokenfst.errors import TokenfstError
from tokenfst.server.limits import LONGEST, Limits

_LIMITS = Limits()
_PANEL = "Limits"
_LOCAL = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class LimitOptions:
    """The bounds of the server."""

    workers: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="Worker processes (0: one for each CPU).", rich_help_panel=_PANEL
        ),
    ] = 0
    seconds: Annotated[
        float,
        typer.Option(metavar="S", help="Maximum time for one request in a worker.", rich_help_panel=_PANEL),
    ] = _LIMITS.seconds
    memory: Annotated[
        str,
        typer.Option(
            metavar="SIZE", help="Maximum memory for one request, such as 500M or 2G.", rich_help_panel=_PANEL
        ),
    ] = "1G"
    states: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Maximum number of states of an automaton.", rich_help_panel=_PANEL
        ),
    ] = _LIMITS.states
    body: Annotated[
        str, typer.Option(metavar="SIZE", help="Maximum size of a request's body.", rich_help_panel=_PANEL)
    ] = "1M"
    queue: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Maximum number of waiting requests of one tenant; further ones get status 429.",
            rich_help_panel=_PANEL,
        ),
    ] = _LIMITS.queue
    waiting: Annotated[
        float,
        typer.Option(
            metavar="S", help="Maximum time that a request waits for a worker.", rich_help_panel=_PANEL
        ),
    ] = _LIMITS.waiting
    memory_cache: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="Memory for cached answers; cached artifacts may take as much again.",
            rich_help_panel=_PANEL,
        ),
    ] = "64M"
    kept: Annotated[str | None, typer.Option(metavar="SIZE", hidden=True)] = None
    grace: Annotated[
        float,
        typer.Option(
            metavar="S",
            help="After SIGTERM: maximum time to finish the requests in progress.",
            rich_help_panel=_PANEL,
        ),
    ] = _LIMITS.grace
    connections: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Maximum number of open connections.", rich_help_panel=_PANEL),
    ] = _LIMITS.connections

    def read(self) -> Limits:
        """The limits. Raises UsageError."""
        cache = self.memory_cache
        if self.kept is not None:
            if cache != LimitOptions.memory_cache:
                raise UsageError("--kept is the old name of --memory-cache: give --memory-cache alone")
            warn("--kept is called --memory-cache now")
            cache = self.kept
        sizes = {name: read_size(f"--{name}", getattr(self, name)) for name in ("memory", "body")}
        for name in ("seconds", "waiting", "grace"):
            if not 0 < getattr(self, name) <= LONGEST:
                raise UsageError(
                    f"--{name} takes a positive number of seconds, at most {LONGEST:,}, not {getattr(self, name):g}"
                )
        return Limits(
            workers=self.workers,
            seconds=self.seconds,
            states=self.states,
            queue=self.queue,
            waiting=self.waiting,
            grace=self.grace,
            connections=self.connections,
            memory_cache=read_size("--memory-cache", cache),
            **sizes,
        )


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    groups.register(app, "serve", serve_command)


def serve_command(
    *,
    store: Annotated[
        str | None,
        typer.Option(
            "--store", metavar="URL", help="The store of the artifacts: a folder, s3://..., gcs://..."
        ),
    ] = None,
    vocabulary: Annotated[
        list[str] | None,
        typer.Option(
            "--vocabulary",
            "-v",
            metavar="SPEC",
            autocompletion=completion.vocabularies,
            help="A vocabulary to serve: mistral:NAME, hf:PATH_OR_NAME, tiktoken:NAME_OR_FILE, spm:FILE, "
            "tokens:FILE.json, symbols:A,B,C, symbols:@FILE or pack:FILE; may be repeated.",
        ),
    ] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0: any free port.")
    ] = 8000,
    keys: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A JSON file with the digests of API keys by tenant. Each tenant has its own store.",
        ),
    ] = None,
    no_keys: Annotated[
        bool,
        typer.Option(
            "--no-keys",
            help="Answer requests without a key, also on an address that other computers can reach.",
        ),
    ] = False,
    new_key: Annotated[
        bool,
        typer.Option(
            "--new-key",
            help="Print a new API key and its digest, which goes into the file of --keys, and exit.",
        ),
    ] = False,
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="A folder on this computer that caches artifacts, such as /dev/shm/tokenfst.",
        ),
    ] = None,
    sign_with: SignWith = None,
    trusted_key: AlsoTrusted = None,
    drain: Annotated[
        float,
        typer.Option(
            metavar="S",
            min=0,
            max=LONGEST,
            help="After SIGTERM: time for which /readyz reports 'not ready' while requests are still answered.",
        ),
    ] = 0.0,
    log_level: Annotated[
        str, typer.Option(metavar="LEVEL", help="Level of the log: debug, info, warning or error.")
    ] = "info",
    limiting: LimitOptions,
    json: Json = False,
) -> int:
    """Serve constraints over HTTP: compile, check, explain, compare and sample them. A constraint is a JSON Schema, a
    pattern, a grammar (Lark, GBNF, EBNF) or a structural tag. The server also validates requests to OpenAI's APIs.
    For example: tokenfst serve --store artifacts --vocabulary mistral:tekken_240911.

    Each request with a constraint runs in a worker process that is killed if it exceeds its limits. Artifacts go into
    the store. The log is JSON on stderr. With --json, one JSON object on stdout gives the server's URL once it
    listens. SIGTERM ends the server when the requests in progress are finished; SIGHUP reads the keys again. With
    --sign-with, artifacts are signed, and artifacts that none of the given keys has signed are neither served nor used.
    """
    if new_key:
        from tokenfst.server.front.tenants import new_key as made

        key, digest = made()
        if json:
            say_json({"command": "serve", "key": key, "digest": digest})
        else:
            say_pairs([("key", key), ("digest", digest)])
        return Exit.YES
    if store is None or not vocabulary:
        raise UsageError(
            "a server needs --store URL and --vocabulary SPEC, such as --store artifacts --vocabulary "
            "mistral:tekken_240911"
        )
    if keys is not None and no_keys:
        raise UsageError("--keys FILE says who may ask, and --no-keys that everyone may: give one of them")
    if keys is None and not no_keys and host not in _LOCAL:
        raise UsageError(
            f"{host} can be reached from elsewhere: give --keys FILE, or --no-keys if everyone may ask"
        )
    if log_level not in ("debug", "info", "warning", "error"):
        raise UsageError(f"--log-level is debug, info, warning or error, not {log_level!r}")
    from tokenfst.server.running import run
    from tokenfst.server.workers.process import Work

    options: dict[str, Any] = {} if cache is None else {"cache": os.fspath(cache)}
    options |= signing_options(sign_with, trusted_key)
    work = Work(tuple((each, each) for each in dict.fromkeys(vocabulary)), limiting.read(), options)

    def announce(host: str, port: int) -> None:
        named = f"[{host}]" if ":" in host else host
        say_json(
            {
                "command": "serve",
                "url": f"http://{named}:{port}",
                "store": store,
                "vocabularies": list(dict.fromkeys(vocabulary)),
            }
        )
        sys.stdout.flush()

    def serve() -> int:
        try:
            return run(
                work,
                store,
                keys,
                host=host,
                port=port,
                drain=drain,
                log_level=log_level,
                announce=announce if json else None,
            )
        except (TokenfstError, OSError) as error:
            complain(explain(error))
            return Exit.BAD_INPUT

    if threading.current_thread() is threading.main_thread():
        return serve()
    tokenfst.cli.afterwards(serve)  # the main thread hears signals
    return Exit.YES
