"""``tokenfst explore``: a page on this computer to play with constraints."""

from __future__ import annotations

import importlib.util
import sys
import webbrowser
from typing import Annotated

import typer

from tokenfst.budget import Budget
from tokenfst.cli.constraints import options
from tokenfst.cli.input import groups
from tokenfst.cli.input.budgets import BudgetOptions
from tokenfst.cli.input.tokens import VocabularyOptions
from tokenfst.cli.output.terminal import Exit, note, say, say_json
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.explore.opened import Opened
from tokenfst.explore.questions import Explorer
from tokenfst.explore.server import Server
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_USUAL = "mistral:tekken_240911"


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    groups.register(app, "explore", explore_command)


def explore_command(
    *,
    constraining: options.ConstraintOptions,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Port on 127.0.0.1; 0: any free port.")
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
    tokenizing: VocabularyOptions,
    budgeting: BudgetOptions,
    json: options.Json = False,
) -> int:
    """Serve a page to play with constraints: the automaton, the tokens allowed next, the mask at each step.

    Without --vocabulary, the vocabulary is Tekken if mistral-common is installed, and the 256 bytes otherwise.
    If a CONSTRAINT is given, the page opens with it; others are typed on the page. Only this computer can open
    the page, and only by its address, which contains a secret. Ctrl-C ends the server.
    """
    budget = budgeting.read()
    vocabulary = _vocabulary(tokenizing)
    given = _given(constraining, vocabulary, tokenizing, budget)
    server = Server(Explorer(vocabulary, budget, given), port)
    if json:
        say_json({"command": "explore", "url": server.address, "vocabulary": vocabulary.name})
    else:
        say(server.address)
        note("Ctrl-C ends it")
    sys.stdout.flush()
    if browser:
        webbrowser.open(server.address)
    server.serve_forever()
    return Exit.YES


def _vocabulary(given: VocabularyOptions) -> Vocabulary:
    """The given vocabulary, or else the default one."""
    if given.vocabulary is not None:
        return given.load(given.vocabulary)
    if importlib.util.find_spec("mistral_common") is not None:
        return given.load(_USUAL)
    note('mistral-common is not installed: tokens are the 256 bytes (pip install "tokenfst[tokenizers]")')
    return Vocabulary([*(bytes((byte,)) for byte in range(256)), b""], 256, name="bytes")


def _given(
    constraining: options.ConstraintOptions,
    vocabulary: Vocabulary,
    tokenizing: VocabularyOptions,
    budget: Budget,
) -> Opened | None:
    """The constraint of the command line, if there is one."""
    if not constraining.is_given():
        return None
    found = constraining.one(budget)
    automaton = found.token_automaton(vocabulary, budget, tokenizing)
    over_bytes = isinstance(automaton, TokenAutomaton) and not automaton.native.is_token_level
    return Opened(automaton, found.words if over_bytes else None, found.source)
